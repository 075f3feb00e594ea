#!/bin/sh
# one_file.sh - compiles prairie as one file, with no options but -O2, and links programs with it.
# SPDX-License-Identifier: MIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
cc=${CC:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cc" -O2 -c "$root/src/prairie.c" -o "$scratch/prairie.o"
link() {
    "$cc" -O2 -I"$root/include" -DPRAIRIE_INSIDE "$here/linked.c" "$@" -lpthread
}
link "$scratch/prairie.o" -o "$scratch/dynamic"
"$scratch/dynamic"
link "$scratch/prairie.o" -static -o "$scratch/static"
"$scratch/static"
# Another place to start from must not matter.
(cd / && "$cc" -fsyntax-only "$root/src/prairie.c")
# Sources handed over at once and without optimising, as in a small project's own Makefile.
link -O0 "$root/src/prairie.c" -o "$scratch/at_once"
"$scratch/at_once"
# Optimised while it is linked, where this compiler can: names that only the assembler's lines have must stay.
if echo 'int main(void) { return 0; }' | "$cc" -flto -x c - -o "$scratch/empty" 2>/dev/null; then
    link -flto "$root/src/prairie.c" -o "$scratch/linking"
    "$scratch/linking"
fi
