/* expect: abort "prairie: free of a foreign pointer" arguments: word */
/* free_argument.c - a word of the command line is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    free(hidden(argv[1]));
    missed();
}
