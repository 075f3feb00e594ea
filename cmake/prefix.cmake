# prefix.cmake - a static library all of whose names have a prefix, for programs that carry their allocator along
# beside the C library's: -DPRAIRIE_PREFIX=je_
# SPDX-License-Identifier: MIT

# prairie_prefixed(<target> <prefix> <quantum> <folder>): lib<prefix>prairie.a, say libje_prairie.a.
# What src/prairie.map lists gets the prefix; C++'s operators and the names that belong to the C library alone are
# left out. The environment variable is <PREFIX>MALLOC_CONF, the file /etc/<prefix>malloc.conf.
function(prairie_prefixed target prefix quantum folder)
    string(TOUPPER "${prefix}" upper)
    add_library(${target}_object OBJECT ${PRAIRIE_UNITY})
    target_compile_definitions(${target}_object PRIVATE
        PRAIRIE_CHECK=${PRAIRIE_CHECK} PRAIRIE_PAGE_HEAPS=${PRAIRIE_PAGE_HEAPS} PRAIRIE_HARDENED=${PRAIRIE_HARDENED}
        PRAIRIE_QUANTUM=${quantum} PRAIRIE_PREFIX="${prefix}"
        PRAIRIE_MALLOC_CONF_NAME="${upper}MALLOC_CONF"
        PRAIRIE_MALLOC_CONF_FILE="/etc/${prefix}malloc.conf")
    target_compile_options(${target}_object PRIVATE -O2 ${PRAIRIE_COMPILE_OPTIONS})
    target_include_directories(${target}_object PRIVATE
                               ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

    file(STRINGS ${PRAIRIE_EXPORTS} lines REGEX "^ +[A-Za-z_0-9]+;$")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PRAIRIE_EXPORTS})
    set(renamed "get_defrag_hint ${prefix}get_defrag_hint\n")
    set(hidden "")
    foreach(name ${lines})
        string(REGEX REPLACE "[ ;]" "" name "${name}")
        if(name MATCHES "^(_|mallinfo|mallopt|malloc_info|malloc_stats$|malloc_trim)")
            string(APPEND hidden "${name}\n")
        else()
            string(APPEND renamed "${name} ${prefix}${name}\n")
        endif()
    endforeach()
    file(WRITE ${folder}/${target}.renamed "${renamed}")
    file(WRITE ${folder}/${target}.hidden "${hidden}")

    # A header that says so, for programs that include the usual one.
    file(READ ${PROJECT_SOURCE_DIR}/include/jemalloc/jemalloc.h header)
    string(REPLACE "#ifndef JEMALLOC_H_\n" "#ifndef JEMALLOC_H_\n#define JEMALLOC_MANGLE_PREFIX ${prefix}\n"
           header "${header}")
    file(WRITE ${folder}/${target}_include/jemalloc/jemalloc.h "${header}")

    add_library(${target} STATIC $<TARGET_OBJECTS:${target}_object>)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${prefix}prairie LINKER_LANGUAGE C
                          ARCHIVE_OUTPUT_DIRECTORY ${folder})
    # What the compiler shares between objects is hidden too, and must keep its name (i386).
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
        COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${folder}/${target}.renamed
                --localize-symbols=${folder}/${target}.hidden --localize-hidden
                $<TARGET_FILE:${target}>
        COMMAND ${CMAKE_OBJCOPY} --wildcard --globalize-symbol=__x86.get_pc_thunk.*
                $<TARGET_FILE:${target}>)
endfunction()

if(NOT PRAIRIE_PREFIX STREQUAL "")
    if(NOT CMAKE_OBJCOPY)
        message(FATAL_ERROR "PRAIRIE_PREFIX needs objcopy")
    endif()
    prairie_prefixed(prairie_prefixed ${PRAIRIE_PREFIX} ${PRAIRIE_QUANTUM} ${PROJECT_BINARY_DIR})
    if(PRAIRIE_INSTALL)
        # By itself with --component prefixed, for those who build nothing else.
        install(TARGETS prairie_prefixed ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT prefixed)
        # Not where another library's jemalloc.h has its place: -I with this folder.
        install(DIRECTORY ${PROJECT_BINARY_DIR}/prairie_prefixed_include/jemalloc
                DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${PRAIRIE_PREFIX}prairie COMPONENT prefixed)
    endif()
endif()
