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
# size_t is unsigned int with 32 bits, and the mangled names say so.
if readelf -h "$1" | grep ELF32 >/dev/null; then
    names=$(sed -E 's/^(_Zn[wa]|_Zd[la]Pv)m/\1j/' <<<"$names" | LC_ALL=C sort)
fi
bad=0
complain() {
    echo "library.sh: $*" >&2
    bad=1
}

for library in "$@"; do
    # The two versions of prairie_early count as one; PRAIRIE_EARLY is what the version is called.
    exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed '/^PRAIRIE_EARLY$/d; s/@.*//' |
               LC_ALL=C sort -u)
    # Its resolver runs when that relocation is reached, and needs the place of the thread's slot. musl refuses
    # relocations of ifuncs that name no symbol.
    relocations=$(readelf -rW "$library")
    [ "$(grep -nE 'TPOFF|TLS_|_TPREL' <<<"$relocations" | tail -1 | cut -d: -f1)" -lt \
      "$(grep -n 'prairie_early@PRAIRIE_EARLY' <<<"$relocations" | head -1 | cut -d: -f1)" ] ||
        complain "$library: the resolver runs before the thread's slot has its place"
    ! grep -q IREL <<<"$relocations" || complain "$library has a relocation that musl does not know"
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
