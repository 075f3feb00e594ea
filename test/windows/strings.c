/* strings.c - the functions of a C library that prairie.dll brings itself: those that write. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#define memcpy dll_memcpy
#define memmove dll_memmove
#define memset dll_memset
#define memcmp dll_memcmp
#define strlen dll_strlen
#define wcslen dll_wcslen
#define strncmp dll_strncmp
#define memchr dll_memchr
#define strchr dll_strchr
#define strrchr dll_strrchr
#define strcmp dll_strcmp
#define strcspn dll_strcspn
#include "windows/dll_strings.c"

enum { ROOM = 512, MOST = 300, EDGE = 40 };

static unsigned char room[ROOM];

static void number(void)
{
    for (unsigned i = 0; i < ROOM; i++) room[i] = (unsigned char)(i * 7 + i / 256);
}

static unsigned char numbered(size_t at) { return (unsigned char)(at * 7 + at / 256); }

/* To all distances, that overlap or not, and nothing beside it. */
static void every_length_moves_by_every_distance(void)
{
    for (size_t bytes = 0; bytes <= MOST; bytes++)
        for (size_t to = 0; to <= 2 * EDGE; to++) {
            number();
            must(dll_memmove(room + to, room + EDGE, bytes) == room + to);
            for (size_t i = 0; i < ROOM; i++)
                must(room[i] == numbered(i >= to && i < to + bytes ? i - to + EDGE : i));
        }
}

static void every_length_is_copied(void)
{
    for (size_t bytes = 0; bytes <= MOST; bytes++) {
        unsigned char copy[MOST + 2] = { 0 };

        number();
        must(dll_memcpy(copy + 1, room, bytes) == copy + 1);
        for (size_t i = 0; i < bytes; i++) must(copy[i + 1] == numbered(i));
        must(copy[0] == 0 && copy[bytes + 1] == 0);
    }
}

static void every_length_is_filled(void)
{
    for (size_t bytes = 0; bytes <= MOST; bytes++) {
        number();
        must(dll_memset(room + EDGE, 0x1A5, bytes) == room + EDGE);
        for (size_t i = 0; i < ROOM; i++)
            must(room[i] == (i >= EDGE && i < EDGE + bytes ? 0xA5 : numbered(i)));
    }
}

int main(void)
{
    every_length_moves_by_every_distance();
    every_length_is_copied();
    every_length_is_filled();
    return 0;
}
