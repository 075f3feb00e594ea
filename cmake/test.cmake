# test.cmake - the three functions that register tests; test/README.md describes them with examples.
# SPDX-License-Identifier: MIT

find_package(Threads REQUIRED)

# On a foreign platform (cmake/platforms/) cmocka is built from its sources, which dev/platforms fetches.
if(PRAIRIE_FOREIGN)
    set(PRAIRIE_CMOCKA_SOURCES "" CACHE PATH "Where cmocka's sources are")
    add_library(prairie_cmocka STATIC ${PRAIRIE_CMOCKA_SOURCES}/src/cmocka.c)
    target_compile_definitions(prairie_cmocka PRIVATE _GNU_SOURCE HAVE_SETJMP_H HAVE_SIGNAL_H HAVE_STRSIGNAL
                               HAVE_INTTYPES_H HAVE_STRINGS_H HAVE_CLOCK_GETTIME HAVE_STRUCT_TIMESPEC HAVE_TIME_H
                               HAVE_UNISTD_H HAVE_MALLOC_H HAVE_GCC_THREAD_LOCAL_STORAGE PUBLIC HAVE_STDINT_H)
    target_include_directories(prairie_cmocka PUBLIC ${PRAIRIE_CMOCKA_SOURCES}/include)
    add_library(PkgConfig::CMOCKA ALIAS prairie_cmocka)
else()
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

set(PRAIRIE_TEST_BIN ${PROJECT_BINARY_DIR}/test/bin)
set(PRAIRIE_FAKE_KERNEL ${PROJECT_SOURCE_DIR}/test/kernel/fake.c
                        ${PROJECT_SOURCE_DIR}/test/kernel/fake_memory.c
                        ${PROJECT_SOURCE_DIR}/test/kernel/fake_threads.c)
set(PRAIRIE_TEST_WARNINGS -Wall -Wextra -Wno-unused-function)
# How a library is put under a test program. qemu gets a setting for the program that it runs, not for itself.
set(PRAIRIE_PRELOAD LD_PRELOAD)
if(CMAKE_CROSSCOMPILING_EMULATOR MATCHES "^qemu-")
    set(PRAIRIE_PRELOAD QEMU_SET_ENV=LD_PRELOAD)
endif()

# What a test runs in where the outcome may depend on everything. audit is check with walkers, and audit-tiny is
# check-tiny with walkers: what these two see, those see.
set(PRAIRIE_EVERY_FLAVOUR plain audit audit-tiny)

# Emulators and Debian's cross packages have no sanitizers that work.
set(PRAIRIE_SANITIZED asan tsan)

# An emulator takes ten times as long, or more: what ctest waits, and what tests wait themselves, is multiplied.
set(PRAIRIE_SLOWER 1)
if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(PRAIRIE_SLOWER 10)
endif()

# What `make check` runs: the tests of these kinds in the check flavour.
set(PRAIRIE_QUICK_KINDS unit contract crash)
add_custom_target(quick_tests DEPENDS prairie_shared-check prairie_static-check)

# The folder of a preloadable flavour, in the caller's variable.
function(prairie_flavour_folder out flavour)
    if(flavour STREQUAL "plain")
        set(${out} ${PROJECT_BINARY_DIR} PARENT_SCOPE)
    elseif(TARGET prairie_shared-${flavour})
        set(${out} ${PROJECT_BINARY_DIR}/${flavour} PARENT_SCOPE)
    else()
        message(FATAL_ERROR "there is no flavour '${flavour}' to preload")
    endif()
endfunction()

# The kind of a test is the sub-directory of test/ that registers it.
function(prairie_test_kind out)
    file(RELATIVE_PATH kind ${PROJECT_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR})
    string(REGEX REPLACE "/.*" "" kind "${kind}")
    set(${out} ${kind} PARENT_SCOPE)
endfunction()

# What all three functions share: name, labels, time and environment of one ctest test.
function(prairie_register name kind flavour)
    cmake_parse_arguments(arg "SERIAL;SLEEPS;WILL_FAIL" "TIMEOUT;SKIP" "COMMAND;ENVIRONMENT;LABELS"
                          ${ARGN})
    if(NOT DEFINED arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${PRAIRIE_SLOWER}")
    math(EXPR timeout_max "${arg_TIMEOUT} * 3") # for a machine that does much else besides
    set(test ${kind}.${name}@${flavour})
    add_test(NAME ${test} COMMAND ${arg_COMMAND})
    set(environment
        PRAIRIE_TEST_BIN=${PRAIRIE_TEST_BIN} PRAIRIE_FLAVOUR=${flavour} ${arg_ENVIRONMENT})
    if(PRAIRIE_SLOWER GREATER 1)
        list(APPEND environment PRAIRIE_TEST_SLOWER=${PRAIRIE_SLOWER})
    endif()
    set_tests_properties(${test} PROPERTIES
        LABELS "kind:${kind};flavour:${flavour};${arg_LABELS}"
        ENVIRONMENT "${environment}")
    # The longer a test may take, the earlier it begins, so that no other waits for the last one.
    if(arg_TIMEOUT GREATER 0)
        set_tests_properties(${test} PROPERTIES TIMEOUT ${timeout_max} COST ${arg_TIMEOUT})
    else()
        set_tests_properties(${test} PROPERTIES COST 600)
    endif()
    if(arg_SERIAL)
        set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
    endif()
    # One core does for many of those that mostly sleep, but the others shall not wait for them: as many at a time as
    # there are locks.
    if(arg_SLEEPS)
        get_property(sleepers GLOBAL PROPERTY prairie_sleepers)
        math(EXPR sleepers "(0${sleepers} + 1) % 2")
        set_property(GLOBAL PROPERTY prairie_sleepers ${sleepers})
        set_tests_properties(${test} PROPERTIES RESOURCE_LOCK sleeper-${sleepers} COST 1000)
    endif()
    if(arg_WILL_FAIL)
        set_tests_properties(${test} PROPERTIES WILL_FAIL ON)
    endif()
    if(DEFINED arg_SKIP)
        set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE ${arg_SKIP})
    endif()
endfunction()

# Sorts the arguments of a registering function: its own go to the caller's arg_*, those of
# prairie_register into a list.
function(prairie_sort_arguments flavours_out rest_out defaults)
    cmake_parse_arguments(arg "NO_PRELOAD;KNOWS_EMULATOR;SERIAL;SLEEPS;WILL_FAIL;CMOCKA" "NAME;TIMEOUT;SKIP;QUANTUM;LEVEL"
                          "FLAVOURS;SOURCES;COMMAND;COMMAND_ARGS;ENVIRONMENT;LABELS" ${ARGN})
    if(NOT arg_NAME)
        message(FATAL_ERROR "a test needs a NAME: ${ARGN}")
    endif()
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "test ${arg_NAME}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_FLAVOURS)
        set(arg_FLAVOURS ${defaults})
    endif()
    # asan has the constants of check-tiny.
    if(PRAIRIE_FOREIGN)
        list(TRANSFORM arg_FLAVOURS REPLACE "^asan$" check-tiny)
        list(REMOVE_ITEM arg_FLAVOURS tsan)
        list(REMOVE_DUPLICATES arg_FLAVOURS)
    endif()
    set(rest "")
    foreach(flag SERIAL SLEEPS WILL_FAIL)
        if(arg_${flag})
            list(APPEND rest ${flag})
        endif()
    endforeach()
    foreach(word TIMEOUT SKIP LABELS)
        if(DEFINED arg_${word})
            list(APPEND rest ${word} ${arg_${word}})
        endif()
    endforeach()
    set(${flavours_out} ${arg_FLAVOURS} PARENT_SCOPE)
    set(${rest_out} ${rest} PARENT_SCOPE)
    foreach(word NAME QUANTUM LEVEL NO_PRELOAD KNOWS_EMULATOR SOURCES COMMAND COMMAND_ARGS ENVIRONMENT)
        set(arg_${word} ${arg_${word}} PARENT_SCOPE)
    endforeach()
endfunction()

function(prairie_test_program)
    cmake_parse_arguments(arg "CMOCKA" "NAME" "SOURCES;LIBRARIES;OPTIONS" ${ARGN})
    if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "prairie_test_program: wrong arguments: ${ARGN}")
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_compile_options(${arg_NAME} PRIVATE
        -O1 -g $<$<COMPILE_LANGUAGE:C>:-std=gnu17>
        ${PRAIRIE_NO_BUILTIN} ${PRAIRIE_TEST_WARNINGS} ${arg_OPTIONS})
    target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
    if(arg_CMOCKA)
        target_link_libraries(${arg_NAME} PRIVATE PkgConfig::CMOCKA)
    endif()
    set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PRAIRIE_TEST_BIN})
    prairie_test_kind(kind)
    if(kind IN_LIST PRAIRIE_QUICK_KINDS)
        add_dependencies(quick_tests ${arg_NAME})
    endif()
endfunction()

function(prairie_flavour_test)
    prairie_sort_arguments(flavours rest "plain;check;check-tiny" ${ARGN})
    prairie_test_kind(kind)
    # What starts programs itself cannot start those that need an emulator, unless it knows of it.
    list(GET arg_COMMAND 0 program)
    if(CMAKE_CROSSCOMPILING_EMULATOR AND NOT TARGET ${program} AND NOT arg_KNOWS_EMULATOR)
        return()
    endif()
    foreach(flavour ${flavours})
        prairie_flavour_folder(folder ${flavour})
        set(environment
            PRAIRIE_LIBRARY=${folder}/libprairie.so PRAIRIE_ARCHIVE=${folder}/libprairie.a)
        if(arg_KNOWS_EMULATOR)
            list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
            list(APPEND environment "PRAIRIE_EMULATOR=${emulator}")
        endif()
        if(NOT arg_NO_PRELOAD)
            list(APPEND environment ${PRAIRIE_PRELOAD}=${folder}/libprairie.so)
        endif()
        prairie_register(${arg_NAME} ${kind} ${flavour} COMMAND ${arg_COMMAND} ${rest}
                         ENVIRONMENT ${arg_ENVIRONMENT} ${environment})
        set_tests_properties(${kind}.${arg_NAME}@${flavour} PROPERTIES
                             FIXTURES_REQUIRED served-${flavour})
    endforeach()
endfunction()

# Proves that a preload of the flavour takes effect; tests of that flavour do not run without it.
function(prairie_served_test flavour)
    prairie_flavour_folder(folder ${flavour})
    add_test(NAME served@${flavour} COMMAND served ${folder}/libprairie.so)
    set_tests_properties(served@${flavour} PROPERTIES
        LABELS "kind:served;flavour:${flavour}" TIMEOUT 60 FIXTURES_SETUP served-${flavour}
        ENVIRONMENT ${PRAIRIE_PRELOAD}=${folder}/libprairie.so)
endfunction()

# The options of a flavour, as in prairie_choice, for a test that contains prairie.
function(prairie_named_choice definitions_out flags_out flavour)
    prairie_preset(${flavour})
    prairie_choice(definitions flags ${preset_CHECK} ${preset_TINY} ${preset_SANITIZE}
                   ${preset_PAGE_HEAPS} ${preset_HARDENED})
    list(APPEND definitions PRAIRIE_OWN_NAMES)
    list(REMOVE_DUPLICATES definitions)
    set(${definitions_out} ${definitions} PARENT_SCOPE)
    set(${flags_out} ${flags} PARENT_SCOPE)
endfunction()

# One program that contains prairie in a named choice, and its ctest test. What contains the library is among its
# sources or libraries; the test's own code is not optimised, because it runs for a moment. Lines are enough for a
# backtrace.
function(prairie_containing_test flavour kind)
    cmake_parse_arguments(arg "" "NAME" "SOURCES;LIBRARIES;DEFINITIONS;ARGS;INCLUDES;REGISTER;LEVEL" ${ARGN})
    set(program ${kind}.${arg_NAME}-${flavour})
    prairie_named_choice(definitions flags ${flavour})
    if(NOT arg_LEVEL)
        set(arg_LEVEL -O0)
    endif()
    add_executable(${program} ${arg_SOURCES})
    target_compile_definitions(${program} PRIVATE ${definitions} ${arg_DEFINITIONS})
    target_compile_options(${program} PRIVATE ${arg_LEVEL} -g1 $<$<COMPILE_LANGUAGE:C>:-std=gnu17>
                           ${PRAIRIE_NO_BUILTIN} ${PRAIRIE_TEST_WARNINGS} ${flags})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/include ${arg_INCLUDES})
    target_link_options(${program} PRIVATE ${flags})
    target_link_libraries(${program} PRIVATE ${arg_LIBRARIES}
                          PkgConfig::CMOCKA Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(${program} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PRAIRIE_TEST_BIN} OUTPUT_NAME ${kind}.${arg_NAME}@${flavour})
    prairie_register(${arg_NAME} ${kind} ${flavour} COMMAND ${program} ${arg_ARGS} ${arg_REGISTER})
    if(kind IN_LIST PRAIRIE_QUICK_KINDS AND flavour STREQUAL "check")
        add_dependencies(quick_tests ${program})
    endif()
endfunction()

# The library on the fake kernel and the frame of a unit test, compiled once for all unit tests of a flavour.
function(prairie_unit_library out flavour quantum)
    set(library prairie_unit-${flavour})
    if(NOT quantum EQUAL 16)
        string(APPEND library -${quantum})
    endif()
    set(${out} ${library} PARENT_SCOPE)
    if(TARGET ${library})
        return()
    endif()
    prairie_named_choice(definitions flags ${flavour})
    set(folder ${PROJECT_SOURCE_DIR}/test/unit)
    # It counts pages one by one, of terabytes.
    set_source_files_properties(${PRAIRIE_FAKE_KERNEL} PROPERTIES COMPILE_OPTIONS -O3)
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${PRAIRIE_FAKE_KERNEL} ${folder}/library.c
                ${folder}/unit.c)
    target_compile_definitions(${library} PRIVATE ${definitions})
    target_compile_definitions(${library} PUBLIC PRAIRIE_OS_ELSEWHERE PRAIRIE_QUANTUM=${quantum})
    target_compile_options(${library} PRIVATE -O1 -g1 -std=gnu17 ${PRAIRIE_NO_BUILTIN}
                           ${PRAIRIE_TEST_WARNINGS} ${flags})
    target_include_directories(${library} PUBLIC ${folder} ${PROJECT_SOURCE_DIR}/test
                               ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${library} PUBLIC PkgConfig::CMOCKA)
endfunction()

# Unit tests know what lies where in the address space: they have one page heap, unless the flavour says how many.
function(prairie_unit_test)
    set(PRAIRIE_PAGE_HEAPS 1)
    prairie_sort_arguments(flavours rest "check;asan" ${ARGN})
    if(NOT arg_QUANTUM)
        set(arg_QUANTUM 16)
    endif()
    prairie_test_kind(kind)
    foreach(flavour ${flavours})
        prairie_unit_library(library ${flavour} ${arg_QUANTUM})
        prairie_containing_test(${flavour} ${kind} NAME ${arg_NAME} SOURCES ${arg_SOURCES}
            LIBRARIES ${library} LEVEL ${arg_LEVEL} ARGS ${arg_COMMAND_ARGS}
            REGISTER ${rest} ENVIRONMENT ${arg_ENVIRONMENT})
    endforeach()
endfunction()

# The library under its own names, compiled once for all own tests of a flavour.
function(prairie_own_object flavour)
    if(TARGET prairie_own-${flavour})
        return()
    endif()
    prairie_named_choice(definitions flags ${flavour})
    add_library(prairie_own-${flavour} OBJECT ${PRAIRIE_UNITY})
    target_compile_definitions(prairie_own-${flavour} PRIVATE ${definitions})
    target_compile_options(prairie_own-${flavour} PRIVATE -O1 ${PRAIRIE_COMPILE_OPTIONS} ${flags})
    target_include_directories(prairie_own-${flavour} PRIVATE
                               ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
endfunction()

function(prairie_own_test)
    prairie_sort_arguments(flavours rest "asan;tsan" ${ARGN})
    prairie_test_kind(kind)
    foreach(flavour ${flavours})
        prairie_own_object(${flavour})
        prairie_containing_test(${flavour} ${kind} NAME ${arg_NAME}
            SOURCES ${arg_SOURCES} $<TARGET_OBJECTS:prairie_own-${flavour}>
            DEFINITIONS PRAIRIE_OWN_NAMES
            ARGS ${arg_COMMAND_ARGS}
            REGISTER ${rest} ENVIRONMENT ${arg_ENVIRONMENT})
    endforeach()
endfunction()
