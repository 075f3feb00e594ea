# i386.cmake - 32-bit x86, whose programs a 64-bit kernel runs as well.
# SPDX-License-Identifier: MIT
#
# Debian's cross compiler, because the package of the 64-bit one for both words keeps out all other cross compilers.
# Programs find their loader and libraries where the cross packages have them.
set(triple i686-linux-gnu)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,--dynamic-linker=/usr/${triple}/lib/ld-linux.so.2 -Wl,--disable-new-dtags,-rpath,/usr/${triple}/lib")
set(PRAIRIE_FOREIGN ON)
