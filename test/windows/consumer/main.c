/* main.c - asks prairie for its version and for numbers. */
/* SPDX-License-Identifier: MIT */
#include <prairie/prairie.h>
#include <string.h>

int main(void)
{
    struct prairie_stats numbers = { .struct_bytes = sizeof numbers };

    prairie_free(prairie_malloc(100));
    return !prairie_stats_read(&numbers) || numbers.mapped == 0
        || strcmp(prairie_version(), PRAIRIE_VERSION) != 0;
}
