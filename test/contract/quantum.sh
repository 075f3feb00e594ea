#!/bin/sh
# quantum.sh COMPILER SOURCES - a quantum of 8 wants a prefix, when cmake is told of it and when a compiler is.
# SPDX-License-Identifier: MIT
set -eu
compiler=$1 sources=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

configure() { cmake -S "$sources" -B "$folder/build" -DCMAKE_C_COMPILER="$compiler" "$@" >"$folder/out" 2>&1; }
refuses() {
    if "$@"; then echo "accepted: $*"; exit 1; fi
    grep -q "PRAIRIE_QUANTUM" "$folder/out" || { cat "$folder/out"; exit 1; }
    rm -rf "$folder/build"
}
compile() { "$compiler" -std=gnu17 -fsyntax-only -I"$sources/include" "$@" "$sources/src/prairie.c" >"$folder/out" 2>&1; }

refuses configure -DPRAIRIE_QUANTUM=8
refuses configure -DPRAIRIE_QUANTUM=4 -DPRAIRIE_PREFIX=je_
refuses compile -DPRAIRIE_QUANTUM=8
refuses compile -DPRAIRIE_QUANTUM=32
configure -DPRAIRIE_QUANTUM=8 -DPRAIRIE_PREFIX=je_
compile -DPRAIRIE_QUANTUM=16
compile -DPRAIRIE_QUANTUM=8 -DPRAIRIE_OWN_NAMES
