# riscv64.cmake - 64-bit RISC-V, under qemu
# SPDX-License-Identifier: MIT
set(PRAIRIE_TRIPLE riscv64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(PRAIRIE_EMULATOR qemu-riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.inc)
