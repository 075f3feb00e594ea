/* sqlite.c - runs a file of SQL in memory and prints the rows; its crate has the library alone. */
/* SPDX-License-Identifier: MIT */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    if (file == NULL || text == NULL) exit(2);
    if (fread(text, 1, (1 << 20) - 1, file) == 0) exit(2);
    fclose(file);
    return text;
}

static int print_row(void *context, int count, char **values, char **names)
{
    (void)context, (void)names;
    for (int i = 0; i < count; i++)
        printf("%s%s", i > 0 ? "|" : "", values[i] != NULL ? values[i] : "");
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    char *text = text_of(argc > 1 ? argv[1] : ""), *error = NULL;
    sqlite3 *database = NULL;

    if (sqlite3_open(":memory:", &database) != SQLITE_OK
        || sqlite3_exec(database, text, print_row, NULL, &error) != SQLITE_OK) {
        fprintf(stderr, "%s\n", error != NULL ? error : "not opened");
        return 1;
    }
    free(text);
    return sqlite3_close(database) == SQLITE_OK ? 0 : 1;
}
