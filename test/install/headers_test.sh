#!/usr/bin/env bash
# headers_test.sh - the installed headers in every standard of C and C++ that they are for, without a warning.
# SPDX-License-Identifier: MIT
#
#   headers_test.sh BUILD_FOLDER C_COMPILER CXX_COMPILER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
install_from "$1"
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align
    -Wformat=2 -Wmissing-declarations -Werror)
of_c=(-Wstrict-prototypes -Wmissing-prototypes -Wc++-compat)
of_cxx=(-Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual)
places=(-I"$prefix/include" -I"$prefix/include/prairie/compatible")

# compile COMPILER LANGUAGE FILE FLAG...: nothing but looked at
compile() {
    local compiler=$1 language=$2 file=$3
    shift 3
    quietly "$compiler" -fsyntax-only "${strict[@]}" "$@" "${places[@]}" -x "$language" "$file"
}

# try C_COMPILER CXX_COMPILER FLAG_FOR_C90...
try() {
    local standard way
    local c90=("${@:3}")
    for way in "-O1" "-O1 -DPRAIRIE_INLINE=1"; do
        for standard in c90 gnu90; do
            # shellcheck disable=SC2086
            compile "$1" c "$here/headers/all.c" -std=$standard $way "${of_c[@]}" "${c90[@]}"
        done
        for standard in c99 gnu99 c11 gnu11 c17 c2x gnu2x; do
            # shellcheck disable=SC2086
            compile "$1" c "$here/headers/all.c" -std=$standard $way "${of_c[@]}"
        done
        for standard in c++98 c++11 c++14 c++17 gnu++17 c++20 c++2b; do
            # shellcheck disable=SC2086
            compile "$2" c++ "$here/headers/all.c" -std=$standard $way "${of_cxx[@]}"
        done
        for standard in c++17 c++20 c++2b; do
            # shellcheck disable=SC2086
            compile "$2" c++ "$here/headers/all.cpp" -std=$standard $way "${of_cxx[@]}"
            # shellcheck disable=SC2086
            compile "$2" c++ "$here/headers/all.cpp" -std=$standard $way "${of_cxx[@]}" -fno-exceptions -fno-rtti
        done
    done
    for standard in c++98 c++11 c++14; do # it says what it wants, first of all
        if "$2" -std=$standard -fsyntax-only "${places[@]}" -x c++ "$here/headers/all.cpp" 2>"$scratch/log"; then
            echo "$2: prairie.hpp compiles as $standard"
            exit 1
        fi
        grep error "$scratch/log" | head -1 | grep -q 'prairie.hpp is for C++17 and later: compile with -std=c++17' || {
            echo "$2, $standard: no word about C++17"
            cat "$scratch/log"
            exit 1
        }
    done
    echo "ok: $1, $2"
}

try "$2" "$3"
if command -v clang-16 >/dev/null && command -v clang++-16 >/dev/null; then
    try clang-16 clang++-16 -Wno-c99-extensions # the type bool is one
else
    echo "left out: clang (dev/setup test brings it)"
fi
