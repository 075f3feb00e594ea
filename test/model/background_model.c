/* background_model.c - the background thread's end, and those who want it meanwhile: no wish is
 * lost, and there is one at a time. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

static bool promised[2];

static void setup(void) { prairie_free(prairie_malloc(1)); }

/* The first begins it, and it looks and ends; the other wants it at any moment of that. */
static void body(unsigned thread) { promised[thread] = inside_want_background(); }

/* Who was promised one was seen: it looked after the wish. */
static void finish(void)
{
    expect(promised[0] && promised[1]);
    expect(!inside_background_runs());
    expect(!inside_background_asked());
    expect(inside_holds_no_lock());
    prairie_check_all();
}

static void delay_wish(void) { explore_delay(inside_background_wish()); }

const struct model background_model = {
    .name = "background",
    .threads = 2,
    .interruptions = 2,
    .setup = setup,
    .body = body,
    .finish = finish,
    .breakages = { { "the wish is seen late", delay_wish } },
};
