#!/bin/sh
# lab/build.sh - builds the lab's programs into build/lab/bin: lab/build.sh TARGET...
# SPDX-License-Identifier: MIT
#
# Quiet unless it fails. Always without sanitizers and checks, whatever the rest was built with.
# Parts that run at the same time wait for each other here.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/lab/bin
mkdir -p "$build"
exec 9>"$build/lock"
flock 9
if ! { cmake -S "$root/lab" -B "$build" -G Ninja &&
       cmake --build "$build" -j 2 --target "$@"; } >"$build/log" 2>&1; then
    cat "$build/log" >&2
    exit 1
fi
