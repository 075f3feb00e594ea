#!/usr/bin/env bash
# third_party_test.sh - every crate that is in the prairie command is named with its licence, and the texts are installed.
# SPDX-License-Identifier: MIT
#
#   third_party_test.sh SOURCE_FOLDER
set -euo pipefail
source=$1
"$source/dev/need_cargo" 1.88 || exit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

if ! "$source/dev/make_third_party.py" "$scratch/list" 2>"$scratch/log"; then
    cat "$scratch/log"
    if grep -qE 'failed to (download|get|fetch)|Could not resolve' "$scratch/log"; then exit 77; fi
    exit 1
fi
# By cargo's own list, which another part of it makes.
cargo tree --quiet --locked --manifest-path "$source/tool/Cargo.toml" -p prairie -e normal,no-proc-macro --prefix none |
    sed -n 's/^\([^ ]*\) v\([0-9][^ ]*\)\( (\*)\)\{0,1\}$/\1 \2/p' | sort -u >"$scratch/crates"
count=$(wc -l <"$scratch/crates")
[ "$count" -ge 50 ] || fail "cargo tree has $count crates only"
while read -r crate; do
    grep -qxF "$crate" "$scratch/list" || fail "not named: $crate"
    [ "$(grep -cF "$crate" "$scratch/list")" -ge 2 ] || fail "without a text: $crate"
done <"$scratch/crates"
for words in "COMMON DEVELOPMENT AND DISTRIBUTION LICENSE" "Apache License" "Permission is hereby granted, free of charge"; do
    grep -q "$words" "$scratch/list" || fail "a text is missing: $words"
done

# It is installed with the command, for which a stand-in serves here.
mkdir -p "$scratch/tree/dev" "$scratch/tree/build/tool/release"
cp "$source/dev/tool" "$scratch/tree/dev"
cp "$scratch/list" "$scratch/tree/build/tool/release/THIRD-PARTY.txt"
printf '#!/bin/sh\n[ "$1" != man ] || mkdir -p "$3"\n' >"$scratch/tree/build/tool/release/prairie"
chmod +x "$scratch/tree/build/tool/release/prairie"
DESTDIR=$scratch/place PREFIX=/usr "$scratch/tree/dev/tool" install
cmp "$scratch/list" "$scratch/place/usr/share/licenses/prairie/THIRD-PARTY.txt"
echo "ok: $count crates"
