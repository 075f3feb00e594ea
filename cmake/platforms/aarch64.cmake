# aarch64.cmake - 64-bit Arm, under qemu
# SPDX-License-Identifier: MIT
set(PRAIRIE_TRIPLE aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(PRAIRIE_EMULATOR qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.inc)
