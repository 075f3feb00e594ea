#!/usr/bin/env bash
# musl.sh - programs of musl, on the libraries of build/: preloaded, static in C, C++ and Rust, and compiled by it.
# SPDX-License-Identifier: MIT
#
#   musl.sh          all
#   musl.sh smoke    preloaded and static, in C, a few seconds
#
# C++ wants `zig c++`, which brings a libc++ for musl: ZIG="zig" or
# another command; Rust wants the target x86_64-unknown-linux-musl. What is missing is said and passed over.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath ../build)
library=$build/libprairie.so
archive=$build/libprairie.a
out=$build/platforms/musl
flags=(-O1 -g -std=gnu17 -D_GNU_SOURCE= -fno-builtin -I../include)
mkdir -p "$out"

if ! command -v musl-gcc >/dev/null; then
    echo "musl.sh: there is no musl-gcc"
    exit 77
fi

program() { # name, static or dynamic, sources
    local name=$1 way=$2
    shift 2
    if [ "$way" = static ]; then
        musl-gcc -static "${flags[@]}" -DPRAIRIE_INSIDE "$@" "$archive" -o "$out/$name-static" -pthread
    else
        musl-gcc "${flags[@]}" "$@" -o "$out/$name" -pthread
    fi
}
try() {
    echo "musl.sh: $*"
    timeout 120 "$@" | tail -n 1
}
stress=(stress/stress.c stress/drift.c stress/lane.c stress/sizes.c stress/ways.c stress/oracle.c)

program first_call dynamic start/first_call.c
program linked static start/linked.c
# Compiled with musl's own headers; Debian's musl-gcc leaves the kernel's out.
musl-gcc -O0 -w -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu" -c ../src/prairie.c -o "$out/prairie.o"
musl-gcc -static "${flags[@]}" -DPRAIRIE_INSIDE start/linked.c "$out/prairie.o" -o "$out/built-static" -pthread
for way in dynamic static; do program stress $way "${stress[@]}"; done
try env LD_PRELOAD="$library" "$out/first_call"
try "$out/linked-static"
try "$out/built-static"
try env LD_PRELOAD="$library" "$out/stress" --threads 1 --steps 50000 --seed 1
try "$out/stress-static" --threads 1 --steps 50000 --seed 1
if [ "${1:-}" = smoke ]; then exit 0; fi

for name in fork_storm thread_storm exit_handlers spawn; do
    for way in dynamic static; do program $name $way story/$name.c; done
    try env LD_PRELOAD="$library" PRAIRIE_TEST_PERCENT=30 "$out/$name"
    PRAIRIE_TEST_PERCENT=30 try "$out/$name-static"
done
try env LD_PRELOAD="$library" "$out/stress" --threads 3 --seconds 5 --forks 2 --seed 1
try "$out/stress-static" --threads 3 --seconds 5 --forks 2 --seed 1

# Rust has musl in its target and links programs statically.
if command -v rustc >/dev/null &&
        [ -d "$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-musl" ]; then
    rustc --target x86_64-unknown-linux-musl -O platforms/linked.rs -L "$build" -o "$out/linked-rust"
    try "$out/linked-rust"
else
    echo "musl.sh: left out: Rust has no target x86_64-unknown-linux-musl (rustup target add)"
fi

# A static libc++ throws bad_alloc only if asked for what does.
if command -v ${ZIG:-zig} >/dev/null; then
    ${ZIG:-zig} c++ -target x86_64-linux-musl -static -O1 -std=gnu++20 -DPRAIRIE_INSIDE -I../include \
        start/linked_cxx.cpp "$archive" -Wl,-u,_ZSt17__throw_bad_allocv -o "$out/linked-cxx"
    try "$out/linked-cxx"
else
    echo "musl.sh: left out: C++ wants zig (pip install ziglang)"
fi
