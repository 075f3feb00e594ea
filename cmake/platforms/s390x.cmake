# s390x.cmake - IBM Z: 64 bits, big-endian, under qemu
# SPDX-License-Identifier: MIT
set(PRAIRIE_TRIPLE s390x-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(PRAIRIE_EMULATOR qemu-s390x)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.inc)
