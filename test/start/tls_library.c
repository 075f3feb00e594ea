/* tls_library.c - takes TLS_BYTES of static thread-local storage away from libraries that are
 * loaded later. */
/* SPDX-License-Identifier: MIT */
static _Thread_local char taken[TLS_BYTES] __attribute__((aligned(16))) = { 1 };

int tls_library_use(int index)
{
    taken[index % TLS_BYTES]++;
    return taken[0];
}
