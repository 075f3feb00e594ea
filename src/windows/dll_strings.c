/* dll_strings.c - the few functions of a C library that prairie calls, and compilers by themselves,
 * for prairie.dll, which is linked without one.
 *
 * Not part of the unity file. Compiled without the compiler's knowledge of them, or it would make a
 * call to memset of the loop in memset.
 * SPDX-License-Identifier: MIT
 */
#include "../base/attrs.h"

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
size_t wcslen(const wchar_t *text);
int strncmp(const char *a, const char *b, size_t most);
void *memchr(const void *bytes, int wanted, size_t count);
char *strchr(const char *text, int wanted);
char *strrchr(const char *text, int wanted);
int strcmp(const char *a, const char *b);
size_t strcspn(const char *text, const char *stops);

/* `rep` takes long to begin; vectors are faster for so many bytes. The last one overlaps the one
 * before. */
typedef uint64_t __attribute__((vector_size(16), may_alias, aligned(1))) vector;
enum { VECTORS_FROM = sizeof(vector), VECTORS_TO = 256 };

INLINE bool is_for_vectors(size_t bytes)
{
    return bytes - VECTORS_FROM <= VECTORS_TO - VECTORS_FROM;
}

/* Forwards, with the last one read first: memmove towards lower addresses may overlap. */
static void copy_vectors(char *to, const char *from, size_t bytes)
{
    size_t last_at = bytes - sizeof(vector);
    vector last = *(const vector *)(from + last_at);

    for (size_t at = 0; at < last_at; at += sizeof last)
        *(vector *)(to + at) = *(const vector *)(from + at);
    *(vector *)(to + last_at) = last;
}

static void fill_vectors(char *to, unsigned char value, size_t bytes)
{
    uint64_t half = value * (UINT64_MAX / UINT8_MAX);
    size_t last_at = bytes - sizeof(vector);
    vector filled = { half, half };

    for (size_t at = 0; at < last_at; at += sizeof filled) *(vector *)(to + at) = filled;
    *(vector *)(to + last_at) = filled;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    void *at = to;

    if (is_for_vectors(bytes)) {
        copy_vectors(to, from, bytes);
        return to;
    }
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    char *at = to;
    const char *source = from;

    if ((uintptr_t)at - (uintptr_t)source >= bytes) return memcpy(to, from, bytes);
    while (bytes > 0) {
        bytes--;
        ((volatile char *)at)[bytes] = source[bytes];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    void *at = to;

    if (is_for_vectors(bytes)) {
        fill_vectors(to, (unsigned char)value, bytes);
        return to;
    }
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const volatile unsigned char *one = a, *other = b;

    for (size_t i = 0; i < bytes; i++)
        if (one[i] != other[i]) return one[i] < other[i] ? -1 : 1;
    return 0;
}

size_t strlen(const char *text)
{
    const volatile char *at = text;

    while (*at != '\0') at++;
    return (size_t)(at - text);
}

size_t wcslen(const wchar_t *text)
{
    const volatile wchar_t *at = text;

    while (*at != 0) at++;
    return (size_t)(at - text);
}

int strncmp(const char *a, const char *b, size_t most)
{
    const volatile char *one = a, *other = b;

    for (; most > 0; most--, one++, other++) {
        unsigned char letter = (unsigned char)*one, wanted = (unsigned char)*other;

        if (letter != wanted) return letter < wanted ? -1 : 1;
        if (letter == '\0') break;
    }
    return 0;
}

void *memchr(const void *bytes, int wanted, size_t count)
{
    const volatile unsigned char *at = bytes;

    for (; count > 0; count--, at++)
        if (*at == (unsigned char)wanted) return (void *)(uintptr_t)at;
    return NULL;
}

char *strchr(const char *text, int wanted) { return memchr(text, wanted, strlen(text) + 1); }

char *strrchr(const char *text, int wanted)
{
    const char *found = NULL;

    for (const char *at = text; (at = strchr(at, wanted)) != NULL; at++) {
        found = at;
        if (*at == '\0') break;
    }
    return (char *)(uintptr_t)found;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, SIZE_MAX); }

size_t strcspn(const char *text, const char *stops)
{
    size_t length = 0;

    while (text[length] != '\0' && strchr(stops, text[length]) == NULL) length++;
    return length;
}
