/* fuzz.h - what a fuzz target is: a function that makes what happens of the bytes of an input. */
/* SPDX-License-Identifier: MIT */
/*
 * A target draws from random_below() (unit.h) until random_is_over(), and aborts when something is
 * wrong: by cmocka's assertions, by a checker of the library, by a sanitizer. Each input runs in a
 * process of its own, in which nothing was called before. The program takes
 *
 *      replay FILE...                every input of these corpora
 *      fuzz FILE SECONDS [SEED]      mutates them, keeps those that reach what none has reached;
 *                                    ends at the first that fails, made as short as can be
 *      one HEX                       one input in this very process, for a debugger
 *
 * A corpus is a text: one input a line, in hexadecimal digits.
 */
#ifndef PRAIRIE_TEST_FUZZ_H
#define PRAIRIE_TEST_FUZZ_H

#include "unit.h"

void fuzz_one(void);
/* Longer inputs are not tried. */
extern const unsigned fuzz_bytes_max;

/* The rest of the input as a text. */
static inline void draw_text(char *text, size_t room)
{
    size_t length = 0;

    while (!random_is_over() && length + 1 < room) {
        char letter = (char)random_below(256);
        if (letter == '\0') break;
        text[length++] = letter;
    }
    text[length] = '\0';
}

#endif
