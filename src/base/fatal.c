/* fatal.c - composes the line in a buffer on the stack and writes it with one call.
 * SPDX-License-Identifier: MIT
 */
#include "fatal.h"

#include "port.h"

enum { MESSAGE_BYTES_MAX = 160 };

static size_t append(char *line, size_t used, const char *text)
{
    while (*text != '\0' && used < MESSAGE_BYTES_MAX - 2) line[used++] = *text++;
    return used;
}

static size_t append_hex(char *line, size_t used, uintptr_t value)
{
    char digits[2 + 2 * sizeof value + 1];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value != 0);
    digits[--at] = 'x';
    digits[--at] = '0';
    return append(line, used, digits + at);
}

static NORETURN void say_and_abort(char *line, size_t used)
{
    line[used++] = '\n';
    port_write_error(line, used);
    port_abort();
}

void fatal_address(const char *what, const void *address)
{
    char line[MESSAGE_BYTES_MAX];
    size_t used = append(line, 0, "prairie: ");

    used = append(line, used, what);
    used = append(line, used, ": ");
    used = append_hex(line, used, (uintptr_t)address);
    say_and_abort(line, used);
}

void fatal(const char *what)
{
    char line[MESSAGE_BYTES_MAX];
    size_t used = append(line, 0, "prairie: ");

    used = append(line, used, what);
    say_and_abort(line, used);
}
