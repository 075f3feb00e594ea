#!/usr/bin/env bash
# abi_test.sh - the library has what test/abi recorded, and dev/abi sees what would break programs.
# SPDX-License-Identifier: MIT
#
#   abi_test.sh SOURCE_FOLDER      and PRAIRIE_LIBRARY in the environment
set -euo pipefail
"$1/dev/abi" "$PRAIRIE_LIBRARY" || exit $?

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# judged STATUS WORDS WHAT FILE SED: with one thing changed in a copy of the tree it ends so, and says that
judged() {
    local wanted=$1 words=$2 what=$3 status=0
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/dev" "$scratch/tree/test"
    cp "$source/dev/abi" "$scratch/tree/dev"
    cp -r "$source/include" "$scratch/tree"
    cp -r "$source/test/abi" "$scratch/tree/test"
    sed -i -E "$5" "$scratch/tree/$4"
    ! cmp -s "$source/$4" "$scratch/tree/$4" || { echo "$what: nothing was changed in $4"; exit 1; }
    "$scratch/tree/dev/abi" "$PRAIRIE_LIBRARY" >"$scratch/said" 2>&1 || status=$?
    if [ $status != "$wanted" ] || ! grep -qF "$words" "$scratch/said"; then
        echo "$what: wanted status $wanted and '$words', got $status and:"
        cat "$scratch/said"
        exit 1
    fi
    echo "ok: $what"
}
source=$1
header=include/prairie/prairie.h
judged 1 "prairie_gone" "a function vanished" test/abi/functions.abi 's/prairie_purge/prairie_gone/'
judged 1 "member" "a member in the middle of a struct" $header 's/^    size_t active;/    size_t other;\n&/'
judged 1 "type of" "a member of another type" $header 's/^    unsigned arenas;/    uint64_t arenas;/'
judged 1 "member insertion" "a member at the end, which is to be looked at" $header 's/^    uint64_t event_calls;.*/&\n    uint64_t other;/'
judged 0 "as recorded" "a function that nobody can have been linked with" test/abi/functions.abi "/name='prairie_purge'/d"
judged 1 "purge_lazy" "a hook less" include/jemalloc/jemalloc.h '/^    extent_purge_t \*purge_lazy;/d'
judged 1 "ZERO" "a flag of another value" include/jemalloc/jemalloc.h 's/^#define MALLOCX_ZERO .*/#define MALLOCX_ZERO 0x80/'
judged 1 "RESERVE_CND_CRIT" "conditions in another order" include/prairie/reserve.h 's/^    RESERVE_CND_LOW, /    RESERVE_CND_NEW, &/'
