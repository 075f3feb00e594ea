#!/usr/bin/env bash
# dev/check_warnings.sh - compiles the unity file with every compiler, side by side, and flavour; a warning fails, and
# so does an atomic change of a byte.
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
    local compiler=$1 choice source bad=0
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
    for source in test/kernel/*.c; do
        if ! "$compiler" "${flags[@]}" -DPRAIRIE_CHECK=1 -DPRAIRIE_TINY -Isrc "${output[@]}" "$source"; then
            echo "check_warnings: $compiler, the fake kernel: not clean"
            bad=1
        fi
    done
    return $bad
}

# gcc 12 has no call-free change of a byte for riscv64: an exchanged bool would want libatomic there. Without inline atomics
# each change is a call here, too, with its width in bytes in the name. Loads and stores of bytes are free everywhere.
read_widths() {
    local narrow
    gcc -std=gnu17 -O0 -fno-inline-atomics -c -o "$outputs/widths.o" src/prairie.c || return 1
    narrow=$(nm -u "$outputs/widths.o" | grep -oE '__atomic_(exchange|compare|fetch|test|[a-z]+_fetch).*_[12]$') || return 0
    echo "check_warnings: atomic changes of less than four bytes:" "${narrow//$'\n'/ }"
    return 1
}

outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
readers=()
for compiler in $compilers; do
    read_all "$compiler" >"$outputs/$compiler.said" 2>&1 & readers+=($!)
done
read_widths >"$outputs/widths.said" 2>&1 & readers+=($!)
failed=0
for reader in "${readers[@]}"; do wait "$reader" || failed=1; done
cat "$outputs"/*.said
exit "$failed"
