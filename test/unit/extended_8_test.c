/* extended_8_test.c - the same with the size classes of a quantum of 8. */
/* SPDX-License-Identifier: MIT */
#define PRAIRIE_QUANTUM 8
#include "extended_test.c"
