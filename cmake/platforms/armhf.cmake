# armhf.cmake - 32-bit Arm with hardware floating point, under qemu
# SPDX-License-Identifier: MIT
set(PRAIRIE_TRIPLE arm-linux-gnueabihf)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(PRAIRIE_EMULATOR qemu-arm)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.inc)
