# jemalloc.cmake - prairie in the place of a libjemalloc.so.2, for programs that were linked with one.
# SPDX-License-Identifier: MIT

# The same objects under another soname. It lies in a folder of its own, so that it comes before another
# libjemalloc.so.2 only for those who ask: LD_LIBRARY_PATH, or -L and a run path.
set(PRAIRIE_JEMALLOC_FOLDER ${PROJECT_BINARY_DIR}/jemalloc)
add_library(prairie_jemalloc SHARED $<TARGET_OBJECTS:prairie_object> $<TARGET_OBJECTS:prairie_early>)
target_link_options(prairie_jemalloc PRIVATE
                    -nostartfiles LINKER:-z,nodelete LINKER:-z,now LINKER:-z,relro LINKER:--as-needed)
prairie_exports(prairie_jemalloc)
prairie_layout(prairie_jemalloc)
set_target_properties(prairie_jemalloc PROPERTIES
    OUTPUT_NAME jemalloc SOVERSION 2 LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${PRAIRIE_JEMALLOC_FOLDER})

# The version that <jemalloc/jemalloc.h> tells, for those who ask pkg-config.
file(STRINGS ${PROJECT_SOURCE_DIR}/include/jemalloc/jemalloc.h version_line
     REGEX "^#define JEMALLOC_VERSION \"[0-9.]+")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" PRAIRIE_JEMALLOC_VERSION "${version_line}")

set(jemalloc_folder ${CMAKE_INSTALL_LIBDIR}/prairie)
file(RELATIVE_PATH PRAIRIE_JEMALLOC_PC_ROOT
     ${CMAKE_INSTALL_FULL_LIBDIR}/prairie/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/jemalloc.pc.in
               ${PRAIRIE_JEMALLOC_FOLDER}/jemalloc.pc @ONLY)
if(PRAIRIE_INSTALL)
    install(TARGETS prairie_jemalloc LIBRARY DESTINATION ${jemalloc_folder})
    install(FILES ${PRAIRIE_JEMALLOC_FOLDER}/jemalloc.pc DESTINATION ${jemalloc_folder}/pkgconfig)
endif()
