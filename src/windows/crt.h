/* crt.h - the heap functions of Windows' C libraries, and who answers them here.
 *
 * ucrtbase.dll (Visual C++ since 2015, the system since Windows 10) and msvcrt.dll (mingw-w64's
 * usual one, many of the system's own libraries) export the same names. A program may use both at
 * once; each module's import table says which.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_WINDOWS_CRT_H
#define PRAIRIE_WINDOWS_CRT_H

#include "../os/windows.h"

enum { CRT_UCRTBASE, CRT_MSVCRT, CRT_COUNT };

/* Looks which of the two are there by now. Under the loader's lock, or before there are threads. */
void crt_find(void);
/* What answers in the place of that function; NULL: it is none of theirs. */
windows_function crt_answer_to(windows_function function);

#endif
