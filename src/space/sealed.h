/* sealed.h - data that decides, closed against writing once it is as it will stay.
 *
 * What is marked SEALED (base/attrs.h) lies on pages of its own. A hardened process closes them
 * before main; from then on a write to them ends it with SIGSEGV, wherever it comes from. Where a
 * control changes one of the values later, it opens the pages for that moment.
 *
 * The pages are those of 4 KiB: where the kernel's are larger, those of them that hold nothing
 * else, which may be none. Only in ELF files is there such a section; a program that is optimised
 * while it is linked may have parts of it elsewhere.
 *
 * The lock of the control tree guards the opening and closing; who opens must hold it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_SEALED_H
#define PRAIRIE_SPACE_SEALED_H

#include "../base/attrs.h"

/* Sealed itself, and stays true while the pages are open for a moment. */
extern PRIVATE bool sealed_is_closed;

/* From now on; once, when the heap has started and the options are obeyed. */
void sealed_begin(void);
/* Before a write. False: the kernel would not, nothing may be written, and nothing is to be closed.
 * True, with nothing done, where nothing was closed. */
bool sealed_open(void);
/* After it. */
void sealed_close(void);

#endif
