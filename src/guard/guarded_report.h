/* guarded_report.h - what is said of a guarded block and who did wrong with it.
 *
 * It allocates nothing and waits for nobody longer than a moment, so it may run in a signal
 * handler. One report at a time: another thread waits for its turn, and when that does not come,
 * goes on.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_GUARD_GUARDED_REPORT_H
#define PRAIRIE_GUARD_GUARDED_REPORT_H

#include "guarded.h"

/* What happened (docs/errors.md): of an access how the line begins, of a call the words for it; and
 * how the line about the block begins. */
struct guarded_deed {
    const char *what, *how;
    bool is_access; /* by.return_address[0] is that of the access itself */
    const void *address;
    struct guarded_trace by;
};

void guarded_report(const struct guarded_finding *finding, const struct guarded_deed *deed);
/* Of an access, by where it was. */
const char *guarded_access_words(enum guarded_kind kind);

#endif
