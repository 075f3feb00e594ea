#!/usr/bin/env bash
# dev/check_warnings.sh - compiles the unity file with every compiler, side by side, and flavour; a warning fails.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

compilers=${COMPILERS:-gcc clang}
flags=(-std=gnu17 -O2 -fPIC -fvisibility=hidden -ftls-model=initial-exec -Werror -Wall -Wextra
       -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
       -Wold-style-definition -Wundef -Wvla -Wpointer-arith
       -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion)
choices=("" "-DPRAIRIE_CHECK=1" "-DPRAIRIE_CHECK=2" "-DPRAIRIE_CHECK=1 -DPRAIRIE_TINY"
         "-DPRAIRIE_CHECK=2 -DPRAIRIE_TINY" "-DPRAIRIE_OWN_NAMES")

# No -I: one file with relative includes is a promise to those who build it by hand. Some of gcc's warnings come from its
# optimiser; clang gives all of its own before it makes code.
read_all() {
    local compiler=$1 choice bad=0
    local output=(-c -o /dev/null)
    case $("$compiler" --version 2>/dev/null) in *clang*) output=(-fsyntax-only) ;; esac
    if ! command -v "$compiler" >/dev/null; then
        echo "check_warnings: no $compiler here" >&2
        return 1
    fi
    for choice in "${choices[@]}"; do
        # shellcheck disable=SC2086
        if ! "$compiler" "${flags[@]}" $choice "${output[@]}" src/prairie.c; then
            echo "check_warnings: $compiler ${choice:-plain}: not clean"
            bad=1
        fi
    done
    if ! "$compiler" "${flags[@]}" -DPRAIRIE_CHECK=1 -DPRAIRIE_TINY -Isrc "${output[@]}" test/kernel/fake.c; then
        echo "check_warnings: $compiler, the fake kernel: not clean"
        bad=1
    fi
    return $bad
}

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
readers=()
for compiler in $compilers; do
    read_all "$compiler" >"$outputs/$compiler" 2>&1 & readers+=($!)
done
failed=0
for reader in "${readers[@]}"; do wait "$reader" || failed=1; done
cat "$outputs"/*
exit "$failed"
