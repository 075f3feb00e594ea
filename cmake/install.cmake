# install.cmake - what is installed, and how find_package and pkg-config find it.
# SPDX-License-Identifier: MIT

# The flavours keep the bare name; only what is installed carries a version in its soname.
set_target_properties(prairie_shared PROPERTIES
                      SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME shared)
set_target_properties(prairie_static PROPERTIES EXPORT_NAME static)

if(NOT PRAIRIE_INSTALL)
    return()
endif()

install(TARGETS prairie_shared prairie_static EXPORT prairie-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The same with the option `hardened` on: for preloading, so it is no target of the package. And with checked copies
# besides, where that was built: `make install` and packages build it.
foreach(name hardened copies)
    if(TARGET prairie_shared-${name})
        # ldconfig makes libprairie.so a link to whatever has that soname; without one it goes by the file's name.
        set_target_properties(prairie_shared-${name} PROPERTIES NO_SONAME ON)
        install(FILES $<TARGET_FILE:prairie_shared-${name}> RENAME libprairie_${name}.so OPTIONAL
                DESTINATION ${CMAKE_INSTALL_LIBDIR} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
                GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
endforeach()
if(TARGET prairie_shared-hardened)
    set_target_properties(prairie_shared-hardened prairie_object-hardened prairie_early-hardened PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()
# jemalloc's header lies in a folder for those who ask (jemalloc.pc), and in the usual place as well, unless a jemalloc has
# its own there.
set(PRAIRIE_COMPATIBLE_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/prairie/compatible)
set(PRAIRIE_JEMALLOC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR} CACHE STRING
    "folder in which jemalloc/jemalloc.h is installed where no other lies; empty: none")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/jemalloc DESTINATION ${PRAIRIE_COMPATIBLE_INCLUDEDIR})
if(PRAIRIE_JEMALLOC_INCLUDEDIR)
    install(CODE "
        get_filename_component(folder \"${PRAIRIE_JEMALLOC_INCLUDEDIR}/jemalloc\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
        set(lies \"\$ENV{DESTDIR}\${folder}/jemalloc.h\")
        set(text prairie)
        if(EXISTS \"\${lies}\")
            file(READ \"\${lies}\" text)
        endif()
        if(text MATCHES prairie)
            file(INSTALL DESTINATION \"\${folder}\" TYPE FILE FILES \"${PROJECT_SOURCE_DIR}/include/jemalloc/jemalloc.h\")
        else()
            message(STATUS \"\${lies} is another jemalloc's, and stays\")
        endif()")
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/prairie DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 FILES_MATCHING PATTERN "*.3")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 FILES_MATCHING PATTERN "*.5")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/prairie)
include(cmake/find_package.cmake)

# Installed files may be moved together: the pkg-config file finds its root from its own place, and all else from
# there. Folders may be absolute, as those of Nix and Guix.
function(prairie_from_prefix variable folder)
    get_filename_component(full "${folder}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
    file(RELATIVE_PATH relative "${CMAKE_INSTALL_PREFIX}" "${full}")
    set(${variable} "${relative}" PARENT_SCOPE)
endfunction()
file(RELATIVE_PATH PRAIRIE_PC_ROOT
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
prairie_from_prefix(PRAIRIE_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
prairie_from_prefix(PRAIRIE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
prairie_from_prefix(PRAIRIE_JEMALLOC_PC_INCLUDEDIR ${PRAIRIE_COMPATIBLE_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/prairie.pc.in ${PROJECT_BINARY_DIR}/prairie.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/prairie-static.pc.in ${PROJECT_BINARY_DIR}/prairie-static.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/prairie.pc ${PROJECT_BINARY_DIR}/prairie-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
