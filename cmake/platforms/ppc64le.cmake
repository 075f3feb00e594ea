# ppc64le.cmake - 64-bit POWER, little-endian, under qemu
# SPDX-License-Identifier: MIT
set(PRAIRIE_TRIPLE powerpc64le-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(PRAIRIE_EMULATOR qemu-ppc64le)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.inc)
