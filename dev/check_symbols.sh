#!/usr/bin/env bash
# dev/check_symbols.sh - compares what build/libprairie.so exports and needs with what is committed.
# SPDX-License-Identifier: MIT
#
#   dev/check_symbols.sh             fails on a difference
#   dev/check_symbols.sh --rewrite   writes dev/symbols.txt from the library
#
# It needs the C library and nothing else; its thread-local storage fits what ld.so keeps for a late
# dlopen.
set -euo pipefail
cd "$(dirname "$0")/.."

library=${PRAIRIE_LIBRARY:-build/libprairie.so}
list=${PRAIRIE_SYMBOLS:-dev/symbols.txt}
tls_bytes_max=64

exported() {
    nm -D --defined-only "$library" | awk '{ print $2, $3 }' | LC_ALL=C sort -k2
}

if [ "${1:-}" = --rewrite ]; then
    exported >"$list"
    echo "$(wc -l <"$list") symbols written to $list"
    exit 0
fi

bad=0
if ! difference=$(diff "$list" <(exported)); then
    echo "exported symbols differ ('<' is missing, '>' is new); make symbols accepts them:"
    grep '^[<>]' <<<"$difference" || true
    bad=1
fi

needed=$(readelf -dW "$library" | awk -F'[][]' '/\(NEEDED\)/ { print $2 }')
if [ "$needed" != libc.so.6 ]; then
    echo "$library needs" $needed "and should need libc.so.6 only"
    bad=1
fi

tls_bytes=$(($(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')))
if [ "$tls_bytes" -gt $tls_bytes_max ]; then
    echo "$library has $tls_bytes bytes of thread-local storage, more than $tls_bytes_max"
    bad=1
fi

flags=$(readelf -dW "$library" | grep -E '\((FLAGS|FLAGS_1)\)' || true)
for flag in NODELETE NOW STATIC_TLS; do
    if ! grep -qw "$flag" <<<"$flags"; then
        echo "$library is not marked $flag"
        bad=1
    fi
done
exit $bad
