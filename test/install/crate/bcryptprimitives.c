/* bcryptprimitives.c - the one function that Rust's library wants of a DLL which older wines have
 * not got. */
/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length);

BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
