#!/usr/bin/env bash
# library.sh - what the loader has to do for each shared library given.
# SPDX-License-Identifier: MIT
#
# It needs the C library and nothing else; its thread-local storage fits what ld.so keeps for a late
# dlopen; it is never unloaded, and bound at once. Its names are those of src/prairie.map, which
# comes first.
set -euo pipefail
tls_bytes_max=64

names=$(sed -n 's/^ *\([A-Za-z_0-9]*\);$/\1/p' "$1" | LC_ALL=C sort)
shift
bad=0
complain() {
    echo "library.sh: $*" >&2
    bad=1
}

for library in "$@"; do
    exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort)
    difference=$(diff <(echo "$names") <(echo "$exported") | grep '^[<>]' || true)
    [ -z "$difference" ] || complain "$library: '<' is missing, '>' is new:"$'\n'"$difference"
    needed=$(readelf -dW "$library" | awk -F'[][]' '/\(NEEDED\)/ { print $2 }')
    [ "$needed" = libc.so.6 ] || complain "$library needs" $needed "and should need libc.so.6 only"
    tls_bytes=$(($(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')))
    [ "$tls_bytes" -le $tls_bytes_max ] ||
        complain "$library has $tls_bytes bytes of thread-local storage"
    flags=$(readelf -dW "$library" | grep -E '\((FLAGS|FLAGS_1)\)')
    for flag in NODELETE NOW STATIC_TLS; do
        grep -qw "$flag" <<<"$flags" || complain "$library is not marked $flag"
    done
done
exit $bad
