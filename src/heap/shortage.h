/* shortage.h - what happens when memory runs short, or a limit is near.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_SHORTAGE_H
#define PRAIRIE_HEAP_SHORTAGE_H

#include "../base/attrs.h"

struct alloc_request;

/* The request was not to be served: the reserve, and what callbacks let go. NULL: there is none all
 * the same. */
COLD void *shortage_serve(const struct alloc_request *request);
/* Near a limit, before memory for `size` bytes is taken: gives back, fills the reserve up, tells
 * callbacks. */
COLD void shortage_look(size_t size);
/* No clean pages were leased since shortage_look: before blocks are taken out of slabs it need not
 * look again. Who takes pages that a limit counts in another way asks for a look itself. */
COLD bool shortage_is_seen(void);
/* Called once, at the start of the process. */
void shortage_start(void);
/* What the options ask for, once they are read and the heap has started. */
void shortage_obey_options(void);
/* Arranges that shortage_look is called when it is worth it, after something about that has
 * changed. */
void shortage_set_look(void);
/* Gives back what this thread, depots and stocks hold ready, so that whole pages become free. */
void shortage_gather(void);
/* Room under the hard limit for prairie's own records, out of what is free or else of the reserve.
 * Tells nobody. False: there is none. */
bool shortage_make_room(void);
/* How much the reserve is to hold. False: it could not be filled. */
bool shortage_reserve(size_t bytes);
/* RESERVE_BYTES_DEFAULT, unless that was said already. */
void shortage_reserve_default(void);

#endif
