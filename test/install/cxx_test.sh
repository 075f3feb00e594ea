#!/usr/bin/env bash
# cxx_test.sh - prairie.hpp from an installed prairie, with the C++ libraries that are here.
# SPDX-License-Identifier: MIT
#
#   cxx_test.sh BUILD_FOLDER COMPILER      and PRAIRIE_LIBRARY in the environment: the flavour that answers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
compiler=$2
install_from "$1"
ln -s "$PRAIRIE_LIBRARY" "$scratch/libprairie.so.0"

# try_file FILE NAME COMPILER FLAG...: compiles and runs it, on the flavour and in a hardened process too
try_file() {
    local file=$here/cxx/$1 name=$2
    shift 2
    quietly "$@" -O1 -Wall -Wextra -Werror -pthread -I"$prefix/include" "$file" -o "$scratch/$name" -L"$library" -lprairie
    LD_LIBRARY_PATH=$scratch "$scratch/$name"
    LD_LIBRARY_PATH=$scratch MALLOC_CONF=hardened:true "$scratch/$name" >"$scratch/log" || { echo "$name, hardened:"; cat "$scratch/log"; exit 1; }
}

try() { try_file main.cpp "$@"; }
# Neither exceptions nor types at run time.
try_quiet() { try_file quiet.cpp "$@" -fno-exceptions -fno-rtti; }

# The oldest standard where sizes are looked at, all others where they are not.
if [ "$PRAIRIE_FLAVOUR" != plain ]; then
    try gnu17 "$compiler" -std=c++17
    exit 0
fi
try gnu23 "$compiler" -std=c++23
try_quiet gnu17_quiet "$compiler" -std=c++17

# Beside jemalloc's header, in both orders and with all of prairie's, by both compilers.
for clang in clang++ clang++-16; do
    command -v $clang >/dev/null || clang=
    for order in "prairie/prairie.hpp jemalloc/jemalloc.h" "jemalloc/jemalloc.h prairie/prairie.hpp" \
        "prairie/reserve.h prairie/prairie.hpp jemalloc/jemalloc.h prairie/inline.h prairie/prairie.h"; do
        # shellcheck disable=SC2086
        printf '#include <%s>\n' $order >"$scratch/order.cpp"
        for tried in "$compiler" $clang; do
            quietly "$tried" -std=c++17 -Wall -Wextra -Wshadow -Werror -fsyntax-only -I"$prefix/include" \
                -I"$prefix/include/prairie/compatible" "$scratch/order.cpp"
        done
    done
    [ -n "$clang" ] || echo "left out: a clang (dev/setup lint and test bring them)"
done

# The other library, in the oldest release that has memory resources.
if command -v clang++-16 >/dev/null && [ -e /usr/lib/llvm-16/include/c++/v1/memory_resource ]; then
    try llvm17 clang++-16 -stdlib=libc++ -std=c++17
    try llvm23 clang++-16 -stdlib=libc++ -std=c++2b
    try_quiet llvm23_quiet clang++-16 -stdlib=libc++ -std=c++2b
else
    echo "left out: libc++ (dev/setup test brings it)"
fi
