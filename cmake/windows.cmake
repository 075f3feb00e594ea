# windows.cmake - the libraries, the launcher and the tests of Windows, in the place of those of the other systems.
#
#   cmake -S . -B build/windows -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/platforms/windows.cmake -DPRAIRIE_TESTS=ON
#
# prairie_shared is prairie.dll, linked without a C library; prairie_static is libprairie.a; prairie_run is prairie-run.exe.
# SPDX-License-Identifier: MIT

set(PRAIRIE_NO_BUILTIN -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
# PE has no visibility, so its attribute says nothing here.
set(PRAIRIE_WINDOWS_OPTIONS -std=gnu17 -O2 -g -fno-stack-protector -fomit-frame-pointer
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= ${PRAIRIE_NO_BUILTIN} -Wno-attributes ${PRAIRIE_WARNINGS})

# What the library exports: the names of prairie.map that are no C library's and no C++'s, nor of Linux alone.
# A variable is DATA, or those who link would get a function that jumps to it.
set(PRAIRIE_DEF ${PROJECT_BINARY_DIR}/prairie.def)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/prairie.map names REGEX
     "^    (prairie_[a-z_]+|[a-z]*allocx|mallctl[a-z]*|malloc_stats_print|malloc_message);$")
list(TRANSFORM names REPLACE ";$" "")
list(FILTER names EXCLUDE REGEX "^ *prairie_early$")
list(TRANSFORM names REPLACE "^( *malloc_message)$" "\\1 DATA")
list(JOIN names "\n" names)
string(REPLACE ";" "" names "${names}")
file(WRITE ${PRAIRIE_DEF} "LIBRARY prairie.dll\nEXPORTS\n${names}\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/prairie.map)

function(prairie_windows_object name source)
    add_library(${name} OBJECT ${source})
    target_compile_options(${name} PRIVATE ${PRAIRIE_WINDOWS_OPTIONS} ${ARGN})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endfunction()

if(NOT PRAIRIE_SANITIZE STREQUAL "none")
    message(FATAL_ERROR "PRAIRIE_SANITIZE: mingw-w64's gcc has no sanitizers")
endif()
prairie_windows_object(prairie_dll_object ${PROJECT_SOURCE_DIR}/src/windows/dll.c)
prairie_windows_object(prairie_strings_object ${PROJECT_SOURCE_DIR}/src/windows/dll_strings.c
                       -fno-builtin -fno-tree-loop-distribute-patterns)

# The two libraries of a flavour, in a folder: prairie_shared<suffix> and prairie_static<suffix>.
function(prairie_windows_flavour suffix check tiny folder)
    prairie_windows_object(prairie_object${suffix} ${PROJECT_SOURCE_DIR}/src/prairie.c)
    target_compile_definitions(prairie_object${suffix} PRIVATE PRAIRIE_CHECK=${check} $<$<BOOL:${tiny}>:PRAIRIE_TINY>
                               PRAIRIE_PAGE_HEAPS=${PRAIRIE_PAGE_HEAPS} PRAIRIE_HARDENED=${PRAIRIE_HARDENED})
    add_library(prairie_shared${suffix} SHARED $<TARGET_OBJECTS:prairie_object${suffix}>
                $<TARGET_OBJECTS:prairie_dll_object> $<TARGET_OBJECTS:prairie_strings_object> ${PRAIRIE_DEF})
    target_link_options(prairie_shared${suffix} PRIVATE -nostdlib LINKER:-e,prairie_entry)
    target_link_libraries(prairie_shared${suffix} PRIVATE gcc kernel32)
    add_library(prairie_static${suffix} STATIC $<TARGET_OBJECTS:prairie_object${suffix}>)
    # A program that asks for the archive gets it, even if it only calls the C library's names.
    target_link_options(prairie_static${suffix} INTERFACE LINKER:--undefined=malloc)
    foreach(target prairie_shared${suffix} prairie_static${suffix})
        set_target_properties(${target} PROPERTIES
            PREFIX "" OUTPUT_NAME prairie LINKER_LANGUAGE C
            RUNTIME_OUTPUT_DIRECTORY ${folder} ARCHIVE_OUTPUT_DIRECTORY ${folder})
        target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    set_target_properties(prairie_static${suffix} PROPERTIES PREFIX lib)
    set_target_properties(prairie_shared${suffix} PROPERTIES IMPORT_PREFIX lib)
endfunction()
prairie_windows_flavour("" ${PRAIRIE_CHECK} ${PRAIRIE_TINY} ${PROJECT_BINARY_DIR})
add_library(prairie::shared ALIAS prairie_shared)
add_library(prairie::static ALIAS prairie_static)

add_executable(prairie_run ${PROJECT_SOURCE_DIR}/tool/windows/prairie_run.c)
target_compile_options(prairie_run PRIVATE -std=gnu17 -O2 -Wall -Wextra)
set_target_properties(prairie_run PROPERTIES OUTPUT_NAME prairie-run
                      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

set_target_properties(prairie_shared PROPERTIES EXPORT_NAME shared)
set_target_properties(prairie_static PROPERTIES EXPORT_NAME static)
if(PRAIRIE_INSTALL)
    install(TARGETS prairie_shared prairie_static EXPORT prairie-targets
            RUNTIME DESTINATION bin ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS prairie_run RUNTIME DESTINATION bin)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    include(cmake/find_package.cmake)
endif()

if(PRAIRIE_TESTS)
    enable_language(CXX)
    # As far as test/windows/posix asks for them.
    prairie_windows_flavour(-check 1 OFF ${PROJECT_BINARY_DIR}/check)
    prairie_windows_flavour(-audit-tiny 2 ON ${PROJECT_BINARY_DIR}/audit-tiny)
    foreach(suffix -check -audit-tiny)
        set_target_properties(prairie_object${suffix} prairie_shared${suffix} prairie_static${suffix}
                              PROPERTIES EXCLUDE_FROM_ALL ON)
    endforeach()
    enable_testing()
    add_subdirectory(test/windows)
endif()
