#!/usr/bin/env bash
# jemalloc_scripts.sh - ruby or python3 on the libjemalloc.so.2 that prairie builds, loaded as their users load
# jemalloc and with the options that they give it; the same answers as on the C library's malloc.
# SPDX-License-Identifier: MIT
#
#   jemalloc_scripts.sh FOLDER_OF_LIBJEMALLOC ruby|python3
set -euo pipefail
folder=$1 language=$2
inputs=$(dirname "$0")/inputs
case $language in
    ruby) script=$inputs/jemalloc.rb ;;
    python3) script=$inputs/jemalloc.py ;;
esac
command -v "$language" >/dev/null || { echo "no $language: install $language"; exit 77; }
# Or else Python's own allocator stands before malloc for all that is small.
export PYTHONMALLOC=malloc

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

"$language" "$script" >"$scratch/expected"
[ "$(head -1 "$scratch/expected")" = "allocator none grown 0" ] || { echo "something is preloaded"; exit 1; }

# try NAME VARIABLE=VALUE...: the script with these variables
try() {
    local name=$1 first grown
    shift
    if ! env "$@" "$language" "$script" >"$scratch/answers" 2>"$scratch/errors"; then
        echo "not ok: $name: it ended with an error"
        failed=1
    fi
    first=$(head -1 "$scratch/answers")
    grown=${first##* }
    if [[ $first != "allocator 5.3.1-0-gprairie-"* ]] || [ "$grown" -lt 20000000 ]; then
        echo "not ok: $name: it says '$first'"
        failed=1
    elif [ -s "$scratch/errors" ] || ! diff <(tail -n +2 "$scratch/expected") <(tail -n +2 "$scratch/answers"); then
        echo "not ok: $name: other answers, or words on the standard error:"
        head -5 "$scratch/errors"
        failed=1
    else
        echo "ok: $name: $first"
    fi
}

try "by its path" LD_PRELOAD="$folder/libjemalloc.so.2"
try "by its name" LD_LIBRARY_PATH="$folder" LD_PRELOAD=libjemalloc.so.2
try "as for web servers" LD_PRELOAD="$folder/libjemalloc.so.2" \
    MALLOC_CONF=narenas:2,background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,thp:never
exit $failed
