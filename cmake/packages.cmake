# packages.cmake - what cpack makes: a tarball that may lie anywhere, and an .rpm (dev/packages).
# SPDX-License-Identifier: MIT
set(CPACK_PACKAGE_NAME prairie)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "the prairie authors")
set(CPACK_PACKAGE_CONTACT "the prairie authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RPM_PACKAGE_DESCRIPTION "prairie answers malloc and its family, and operator new and delete of C++, for programs that
are linked with it or have it preloaded:

  LD_PRELOAD=libprairie.so.0 program

Memory that a program no longer uses goes back to the kernel. Programs that were written
for jemalloc find its functions, options and statistics. Headers, static libraries and what
CMake and pkg-config need are in this package, too.")
set(CPACK_PACKAGE_FILE_NAME prairie-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES OFF)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_RELOCATABLE ON)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${CMAKE_INSTALL_LIBDIR}/cmake /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig
    /usr/share/man /usr/share/man/man3 /usr/share/man/man5)
# Who uses the library needs no pkg-config; and who needs another jemalloc must not get what lies in a folder of ours.
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __requires_exclude ^/usr/bin/pkg-config$
%global __provides_exclude_from /${CMAKE_INSTALL_LIBDIR}/prairie/")
include(CPack)
