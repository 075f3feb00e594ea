/* linux_text.c - finding labels and numbers in what files of /proc and /sys say.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"

const char *linux_text_after(const char *label, const char *text)
{
    size_t label_bytes = __builtin_strlen(label);

    for (const char *at = text;; at++) {
        if (__builtin_strncmp(at, label, label_bytes) == 0) return at + label_bytes;
        if (*at == '\0') return NULL;
    }
}

uint64_t linux_number_at(const char **at)
{
    uint64_t number = 0;

    for (; **at >= '0' && **at <= '9'; ++*at) number = number * 10 + (uint64_t)(**at - '0');
    return number;
}
