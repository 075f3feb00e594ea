/* launch.c - prairie-run.exe says by its exit code why it did not start a program. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <process.h>

static intptr_t exit_code_for(const char *program)
{
    return _spawnl(_P_WAIT, "prairie-run.exe", "prairie-run.exe", program, NULL);
}

int main(int argc, char **argv)
{
    FILE *text;

    if (argc > 1) return is_served() ? 42 : 1;
    must(exit_code_for("no_such_program.exe") == 127);
    must(exit_code_for("no_such_folder\\program.exe") == 127);
    text = fopen("launch_text.exe", "w");
    must(text != NULL && fputs("not a program\n", text) >= 0 && fclose(text) == 0);
    must(exit_code_for("launch_text.exe") == 126);
    must(remove("launch_text.exe") == 0);
    must(_spawnl(_P_WAIT, "prairie-run.exe", "prairie-run.exe", argv[0], "again", NULL) == 42);
    return 0;
}
