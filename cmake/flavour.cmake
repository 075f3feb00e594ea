# flavour.cmake - one compilation of the unity file, and the two libraries made from it.
# SPDX-License-Identifier: MIT

set(PRAIRIE_UNITY ${PROJECT_SOURCE_DIR}/src/prairie.c)

# The names that a shared library exports are those that the sources export; the list is there to compare with
# (test/start/library.sh). One of them has a version.
set(PRAIRIE_EXPORTS ${PROJECT_SOURCE_DIR}/src/prairie.map)
set(PRAIRIE_VERSIONS ${PROJECT_SOURCE_DIR}/src/os/linux_early.map)
function(prairie_exports target)
    target_link_options(${target} PRIVATE LINKER:--version-script=${PRAIRIE_VERSIONS})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PRAIRIE_VERSIONS})
endfunction()

# What usual programs call lies together (the script says why). On other processors the linker's own script has
# other sections.
set(PRAIRIE_LAYOUT ${PROJECT_SOURCE_DIR}/src/os/linux_layout.ld)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    include(CheckLinkerFlag)
    check_linker_flag(C LINKER:-T,${PRAIRIE_LAYOUT} PRAIRIE_LINKER_HAS_INSERT)
endif()
function(prairie_layout target)
    if(PRAIRIE_LINKER_HAS_INSERT)
        target_link_options(${target} PRIVATE LINKER:-T,${PRAIRIE_LAYOUT})
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PRAIRIE_LAYOUT})
    endif()
endfunction()

# Our own code must not become a call to the functions that it implements: to a compiler that knows
# malloc, a loop that clears what malloc gave is calloc.
set(PRAIRIE_NO_BUILTIN "")
foreach(name malloc calloc realloc free aligned_alloc posix_memalign memalign valloc pvalloc cfree
             reallocarray malloc_usable_size free_sized free_aligned_sized)
    list(APPEND PRAIRIE_NO_BUILTIN -fno-builtin-${name})
endforeach()

# An exception must get through `new`: on 32-bit Arm C has no unwind tables unless it is told to. Whoever builds us with
# -flto gets objects all the same: objcopy does not know what a plugin would make of others, and says nothing. And a project's
# sanitizer has no place in its allocator, which runs before the sanitizer does.
set(PRAIRIE_COMPILE_OPTIONS
    -std=gnu17 -g -fno-lto -fno-sanitize=all -fPIC -funwind-tables -fvisibility=hidden -ftls-model=initial-exec -fno-plt
    -fno-semantic-interposition -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fno-stack-protector -fcf-protection=none -fomit-frame-pointer
    -ffunction-sections -fdata-sections ${PRAIRIE_NO_BUILTIN} ${PRAIRIE_WARNINGS})

# CMakePresets.json says what each flavour is: PRAIRIE_FLAVOURS are its names, and prairie_preset(<name>) sets
# preset_CHECK, preset_TINY, preset_SANITIZE, preset_PAGE_HEAPS, preset_HARDENED and preset_COPIES in the caller's scope.
file(READ ${PROJECT_SOURCE_DIR}/CMakePresets.json presets)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CMakePresets.json)
set(PRAIRIE_FLAVOURS "")
string(JSON count LENGTH "${presets}" configurePresets)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
    string(JSON hidden ERROR_VARIABLE none GET "${presets}" configurePresets ${index} hidden)
    if(NOT hidden)
        string(JSON name GET "${presets}" configurePresets ${index} name)
        list(APPEND PRAIRIE_FLAVOURS ${name})
        string(JSON preset_of_${name} GET "${presets}" configurePresets ${index} cacheVariables)
    endif()
endforeach()
macro(prairie_preset name)
    if(NOT "${name}" IN_LIST PRAIRIE_FLAVOURS)
        message(FATAL_ERROR "there is no flavour '${name}'; CMakePresets.json has ${PRAIRIE_FLAVOURS}")
    endif()
    foreach(word CHECK TINY SANITIZE)
        string(JSON preset_${word} GET "${preset_of_${name}}" PRAIRIE_${word})
    endforeach()
    foreach(word PAGE_HEAPS HARDENED)
        string(JSON preset_${word} ERROR_VARIABLE none GET "${preset_of_${name}}" PRAIRIE_${word})
        if(none)
            set(preset_${word} ${PRAIRIE_${word}})
        endif()
    endforeach()
    string(JSON preset_COPIES ERROR_VARIABLE none GET "${preset_of_${name}}" PRAIRIE_COPIES)
    if(none)
        set(preset_COPIES OFF)
    endif()
endmacro()

# Definitions and flags of a choice of options, as two lists in the caller's scope.
function(prairie_choice definitions_out flags_out check tiny sanitize page_heaps hardened)
    set(definitions PRAIRIE_CHECK=${check} PRAIRIE_PAGE_HEAPS=${page_heaps} PRAIRIE_HARDENED=${hardened})
    set(flags "")
    if(tiny)
        list(APPEND definitions PRAIRIE_TINY)
    endif()
    if(sanitize STREQUAL "thread")
        list(APPEND definitions PRAIRIE_OWN_NAMES)
        list(APPEND flags -fsanitize=thread)
    elseif(sanitize STREQUAL "address")
        list(APPEND definitions PRAIRIE_OWN_NAMES)
        list(APPEND flags -fsanitize=address,undefined -fno-sanitize-recover=all)
    endif()
    set(${definitions_out} ${definitions} PARENT_SCOPE)
    set(${flags_out} ${flags} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_OBJCOPY)
    message(WARNING "no objcopy: functions of libprairie.a that are its own may clash with those of a program")
endif()

# prairie_library(<suffix> <folder> [CHECK n] [TINY bool] [SANITIZE kind] [PAGE_HEAPS n]
# [HARDENED n] [COPIES bool])
# makes the targets prairie_shared<suffix> and prairie_static<suffix>, both named prairie, in that
# folder. One position-independent object serves both: the linker turns its thread-local access into
# the cheapest form.
function(prairie_library suffix folder)
    cmake_parse_arguments(arg "" "CHECK;TINY;SANITIZE;PAGE_HEAPS;HARDENED;COPIES" "" ${ARGN})
    if(NOT DEFINED arg_PAGE_HEAPS)
        set(arg_PAGE_HEAPS ${PRAIRIE_PAGE_HEAPS})
    endif()
    if(NOT DEFINED arg_HARDENED)
        set(arg_HARDENED 0)
    endif()
    if(NOT DEFINED arg_CHECK)
        set(arg_CHECK 0)
    endif()
    if(NOT DEFINED arg_SANITIZE)
        set(arg_SANITIZE none)
    endif()
    prairie_choice(definitions flags ${arg_CHECK} "${arg_TINY}" ${arg_SANITIZE} ${arg_PAGE_HEAPS}
                   ${arg_HARDENED})

    set(object prairie_object${suffix})
    add_library(${object} OBJECT ${PRAIRIE_UNITY})
    target_compile_definitions(${object} PRIVATE ${definitions})
    target_compile_options(${object} PRIVATE -O2 ${PRAIRIE_COMPILE_OPTIONS} ${flags})
    target_include_directories(${object} PRIVATE
                               ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

    # What the dynamic loader runs while it relocates; a static program could not (see the file).
    set(early prairie_early${suffix})
    add_library(${early} OBJECT ${PROJECT_SOURCE_DIR}/src/os/linux_early.c)
    target_compile_definitions(${early} PRIVATE ${definitions})
    target_compile_options(${early} PRIVATE -O2 ${PRAIRIE_COMPILE_OPTIONS})
    if(arg_SANITIZE STREQUAL "none")
        set(early_object $<TARGET_OBJECTS:${early}>)
    else()
        set(early_object "")
    endif()

    # The C library's copying functions, which look where blocks end; our own copies do not come there.
    if(arg_COPIES)
        add_library(prairie_copies${suffix} OBJECT ${PROJECT_SOURCE_DIR}/src/libc/copies.c)
        target_compile_definitions(prairie_copies${suffix} PRIVATE ${definitions})
        target_compile_options(prairie_copies${suffix} PRIVATE -O2 ${PRAIRIE_COMPILE_OPTIONS} -fno-builtin)
        target_include_directories(prairie_copies${suffix} PRIVATE
                                   ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
        list(APPEND early_object $<TARGET_OBJECTS:prairie_copies${suffix}>)
    endif()

    add_library(prairie_shared${suffix} SHARED $<TARGET_OBJECTS:${object}> ${early_object})
    add_library(prairie_static${suffix} STATIC $<TARGET_OBJECTS:${object}>)
    # nodelete: threads that still run keep our thread-end hook after a dlclose.
    target_link_options(prairie_shared${suffix} PRIVATE ${flags}
                        LINKER:-z,nodelete LINKER:-z,now LINKER:-z,relro LINKER:--as-needed)
    if(arg_COPIES)
        target_link_options(prairie_shared${suffix} PRIVATE
                            LINKER:--wrap=memcpy LINKER:--wrap=memmove LINKER:--wrap=memset)
    endif()
    if(arg_SANITIZE STREQUAL "none")
        # linux_early.c has what the start files would bring that is of use.
        target_link_options(prairie_shared${suffix} PRIVATE -nostartfiles LINKER:-z,defs)
        prairie_exports(prairie_shared${suffix})
        if(arg_CHECK EQUAL 0)
            prairie_layout(prairie_shared${suffix})
        endif()
    endif()
    # Hidden names are still global in an archive; local ones cannot clash with the program's. i386 has functions in
    # groups, of which a program keeps one copy: with a local name it would be nobody else's.
    if(CMAKE_OBJCOPY AND arg_SANITIZE STREQUAL "none")
        add_custom_command(TARGET prairie_static${suffix} POST_BUILD VERBATIM
                           COMMAND ${CMAKE_OBJCOPY} --localize-hidden --remove-section .group
                                   $<TARGET_FILE:prairie_static${suffix}>
                           # What <prairie/inline.h> reads.
                           COMMAND ${CMAKE_OBJCOPY} --globalize-symbol=prairie_front_v1
                                   --globalize-symbol=prairie_frees_v1 $<TARGET_FILE:prairie_static${suffix}>)
    endif()
    target_compile_definitions(prairie_static${suffix} INTERFACE PRAIRIE_INLINE=1)
    target_link_options(prairie_static${suffix} INTERFACE ${flags})
    # Before 2.34 the C library has threads in a library of their own.
    target_link_libraries(prairie_static${suffix} INTERFACE -pthread)
    # A program that asks for the archive gets it, even if only the C library calls malloc in it.
    if(arg_SANITIZE STREQUAL "none")
        target_link_options(prairie_static${suffix} INTERFACE LINKER:--undefined=malloc)
    endif()
    foreach(target prairie_shared${suffix} prairie_static${suffix})
        set_target_properties(${target} PROPERTIES
            OUTPUT_NAME prairie
            LINKER_LANGUAGE C
            INTERPROCEDURAL_OPTIMIZATION OFF
            LIBRARY_OUTPUT_DIRECTORY ${folder}
            ARCHIVE_OUTPUT_DIRECTORY ${folder})
        target_include_directories(${target} INTERFACE
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    set_target_properties(${object} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# prairie_flavour(<name> [CHECK n] [TINY bool] [PAGE_HEAPS n] [HARDENED n] [COPIES bool]): the two libraries of a flavour, in
# <build>/<name>/.
# They are built by the target 'flavours', not by default.
function(prairie_flavour name)
    prairie_library(-${name} ${PROJECT_BINARY_DIR}/${name} ${ARGN})
    foreach(part object early copies shared static)
        if(TARGET prairie_${part}-${name})
            set_target_properties(prairie_${part}-${name} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endforeach()
    if(NOT TARGET flavours)
        add_custom_target(flavours DEPENDS prairie_shared prairie_static)
    endif()
    add_dependencies(flavours prairie_shared-${name} prairie_static-${name})
endfunction()
