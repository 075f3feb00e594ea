#!/usr/bin/env bash
# inline_test.sh - inline.h from an installed prairie: what it compiles to, and that it agrees with the library.
# SPDX-License-Identifier: MIT
#
#   inline_test.sh BUILD_FOLDER C_COMPILER CXX_COMPILER      and PRAIRIE_ARCHIVE in the environment: of the flavour
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
cc=$2 cxx=$3
install_from "$1"
flags=(-I"$prefix/include" -Wall -Wextra -Werror -pthread)

# compile FOLDER FLAG...: all files
compile() {
    local into=$scratch/$1
    shift
    mkdir "$into"
    quietly "$cc" -O2 -std=c11 "${flags[@]}" "$@" -c "$here/inline/shapes.c" -o "$into/shapes.o"
    quietly "$cxx" -O1 -std=c++17 "${flags[@]}" "$@" -c "$here/inline/main.cpp" -o "$into/main.o"
    quietly "$cxx" -O2 -std=c++17 "${flags[@]}" "$@" -c "$here/inline/second.cpp" -o "$into/second.o"
}

# build NAME FOLDER FLAG...: the program
build() {
    local name=$1 from=$scratch/$2
    shift 2
    quietly "$cxx" -pthread "$from/main.o" "$from/second.o" "$from/shapes.o" -o "$scratch/$name" "$@"
}

# agrees NAME: in a usual process and in others
agrees() {
    quietly "$scratch/$1"
    local conf
    for conf in hardened:true prof:true,lg_prof_sample:10 guard_sample:1,guard_interval:0 tcache:false; do
        quietly env MALLOC_CONF=$conf "$scratch/$1" "$conf"
    done
    echo "ok: $1 agrees"
}

# count NAME FUNCTION MOST: instructions of the way that falls through to the first return, that one not counted
count() {
    local counted
    counted=$(objdump -d --no-show-raw-insn --disassemble="$2" "$scratch/$1" | awk -v name="<$2>:" '
        $2 == name { inside = 1; next }
        inside && $2 == "ret" { print sum; exit }
        inside && $2 ~ /^(jmp|call)/ { print "it leaves: " $0; exit }
        inside && $2 !~ /^(nop|endbr64|xchg)/ { sum++ }')
    [ "$counted" -le "$3" ] || {
        echo "$1, $2: $counted instructions, wanted $3"
        objdump -d --no-show-raw-insn --disassemble="$2" "$scratch/$1"
        exit 1
    }
    echo "ok: $1, $2: $counted instructions"
}

compile inlined -DPRAIRIE_INLINE=1
if [ "$PRAIRIE_FLAVOUR" != plain ]; then
    build flavour inlined "$PRAIRIE_ARCHIVE"
    quietly "$scratch/flavour" flavour
    echo "ok: agrees with $PRAIRIE_FLAVOUR"
    exit 0
fi

build archive inlined "$library/libprairie.a"
agrees archive
build static inlined "$library/libprairie.a" -static
quietly "$scratch/static"
if [ "$(uname -m)" = x86_64 ]; then
    for size in 16 200; do
        count archive take_$size 6
        count archive give_$size 7
    done
fi

# Inside of a shared object the word's place is known when it is loaded.
quietly "$cc" -O2 -fPIC -shared "${flags[@]}" -DPRAIRIE_INLINE=1 "$here/inline/shapes.c" "$library/libprairie.a" \
    -o "$scratch/shapes.so"
if [ "$(uname -m)" = x86_64 ]; then
    count shapes.so take_16 7
    count shapes.so give_16 8
fi

# With the shared library, or one of another layout, it does not link; without the word it is plain calls.
if "$cc" -O2 "${flags[@]}" -DPRAIRIE_INLINE=1 -shared -Wl,-z,defs "$here/inline/shapes.c" -L"$library" -lprairie \
    -o "$scratch/mixed" 2>"$scratch/log"; then
    echo "a program that inlines was linked with the shared library"
    exit 1
fi
grep -q prairie_front_v1 "$scratch/log" || { cat "$scratch/log"; exit 1; }
compile called
build calls called -L"$library" -lprairie -Wl,-rpath,"$library"
quietly "$scratch/calls"
! nm "$scratch/calls" | grep -q prairie_front || { echo "it inlines without being asked"; exit 1; }
