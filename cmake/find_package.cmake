# find_package.cmake - what find_package(prairie) finds: the targets of the export set prairie-targets, and their version.
# SPDX-License-Identifier: MIT
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/prairie)
install(EXPORT prairie-targets NAMESPACE prairie:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/prairie-config.cmake.in
                              ${PROJECT_BINARY_DIR}/prairie-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# Until 1.0 functions may change between minor versions.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/prairie-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/prairie-config.cmake
              ${PROJECT_BINARY_DIR}/prairie-config-version.cmake
        DESTINATION ${package_folder})
