#!/bin/sh
# bench/build.sh - builds measuring programs into build/bench: bench/build.sh TARGET...
# SPDX-License-Identifier: MIT
#
# Quiet unless it fails. Always without sanitizers and checks, whatever the rest was built with.
# Commands that run at the same time wait for each other here.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/bench
mkdir -p "$build"
exec 9>"$build/lock"
flock 9
if ! { cmake -S "$root/bench" -B "$build" &&
       cmake --build "$build" --target "$@"; } >"$build/log" 2>&1; then
    cat "$build/log" >&2
    exit 1
fi
