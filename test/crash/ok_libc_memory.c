/* expect: ok */
/* ok_libc_memory.c - what the C library allocates for its callers is freed by them. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <dirent.h>
#include <glob.h>
#include <locale.h>
#include <netdb.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>

static int compare(const void *a, const void *b) { return memcmp(a, b, 8); }

static void use_streams(void)
{
    char *text = NULL, *line = NULL;
    size_t length = 0, line_length = 0;
    FILE *stream = open_memstream(&text, &length);
    must(stream != NULL);
    for (int i = 0; i < 10000; i++) fprintf(stream, "line %d\n", i);
    fclose(stream);
    stream = fmemopen(text, length, "r");
    must(stream != NULL);
    int lines = 0;
    while (getline(&line, &line_length, stream) > 0) lines++;
    fclose(stream);
    must(lines == 10000);
    free(line);
    free(text);
}

static void use_files(void)
{
    struct dirent **entry = NULL;
    int count = scandir("/proc/self", &entry, NULL, alphasort);
    must(count > 0);
    for (int i = 0; i < count; i++) free(entry[i]);
    free(entry);
    free(realpath("/proc/self/..", NULL));
    free(getcwd(NULL, 0));
    glob_t found;
    if (glob("/proc/[0-9]*", 0, NULL, &found) == 0) globfree(&found);
}

int main(void)
{
    require_prairie();
    char *text = NULL;
    must(asprintf(&text, "%d %s", 12345, "words") > 0);
    free(text);
    free(strdup("copy"));
    free(strndup("copy", 2));
    free(wcsdup(L"wide copy"));
    use_streams();
    use_files();

    regex_t expression;
    must(regcomp(&expression, "^(a|b)*c{2,30}[[:alpha:]]+$", REG_EXTENDED) == 0);
    must(regexec(&expression, "ababccxyz", 0, NULL, 0) == 0);
    regfree(&expression);

    struct addrinfo *address = NULL;
    if (getaddrinfo("127.0.0.1", "80", NULL, &address) == 0) freeaddrinfo(address);
    must(setlocale(LC_ALL, "C") != NULL);
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (locale != (locale_t)0) freelocale(locale);

    void *root = NULL;
    static char keys[100][8];
    for (int i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof keys[i], "%07d", i * 37 % 100);
        must(tsearch(keys[i], &root, compare) != NULL);
    }
    for (int i = 0; i < 100; i++) tdelete(keys[i], &root, compare);
    return 0;
}
