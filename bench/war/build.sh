#!/bin/sh
# build.sh - fetches and builds what the war needs: engines, packages of npm, the counter of calls.
# SPDX-License-Identifier: MIT
#
# Everything is pinned by the lock files beside this script and lands in build/war/. What is there already
# and was made from the same locks with the same compiler is not made again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
war=$root/build/war
CC=${CC:-cc}
mkdir -p "$war"

# What stands for the inputs of a step: files, and the compiler.
stamp_of() { { cat "$@"; "$CC" --version; } | sha256sum | cut -d' ' -f1; }

is_fresh() { [ -e "$1" ] && [ "$(cat "$1.stamp" 2>/dev/null)" = "$2" ]; }

# qjs NAME SOURCE...: the shell of the quickjs-ng that the crate of engines/NAME carries. cargo downloads.
qjs() {
    name=$1 folder=$here/engines/$1
    shift
    stamp=$(stamp_of "$folder/Cargo.lock" "$0")
    is_fresh "$war/qjs-$name" "$stamp" && return
    echo "war: building qjs-$name"
    rm -rf "$war/$name"
    (cd "$folder" && cargo vendor --quiet --locked --versioned-dirs "$war/$name" >/dev/null)
    (cd "$war/$name"/rquickjs-sys-*/quickjs &&
        "$CC" -O2 -DNDEBUG -D_GNU_SOURCE -DQUICKJS_NG_BUILD -o "$war/qjs-$name" "$@" -lm -lpthread -ldl)
    rm -rf "$war/$name"
    echo "$stamp" >"$war/qjs-$name.stamp"
}

core="qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c dtoa.c gen/repl.c gen/standalone.c"
qjs object $core cutils.c
qjs arena $core

stamp=$(stamp_of "$here/package-lock.json")
if ! is_fresh "$war/packages" "$stamp"; then
    echo "war: fetching packages"
    mkdir -p "$war/packages"
    cp "$here/package.json" "$here/package-lock.json" "$war/packages/"
    (cd "$war/packages" && npm ci --ignore-scripts --no-audit --no-fund --silent)
    echo "$stamp" >"$war/packages.stamp"
fi

stamp=$(stamp_of "$here/calls.c" "$0")
if ! is_fresh "$war/libcalls.so" "$stamp"; then
    "$CC" -O2 -std=gnu17 -Wall -Wextra -fPIC -shared -fvisibility=hidden -o "$war/libcalls.so" "$here/calls.c" -ldl
    echo "$stamp" >"$war/libcalls.so.stamp"
fi

stamp=$(stamp_of "$here/blocks.c" "$0")
if ! is_fresh "$war/blocks" "$stamp"; then
    "$CC" -O1 -std=gnu17 -Wall -Wextra -fno-builtin -o "$war/blocks" "$here/blocks.c"
    echo "$stamp" >"$war/blocks.stamp"
fi
