/* own.c - globals of the program, by names that the library has, too, and keeps to itself. */
/* SPDX-License-Identifier: MIT */
int fatal, limits, arenas;
