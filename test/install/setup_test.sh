#!/usr/bin/env bash
# setup_test.sh - what dev/setup names for whom, and that it is in nobody's way where there is no dpkg.
# SPDX-License-Identifier: MIT
#
#   setup_test.sh SOURCE_FOLDER
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

# The quick tests do without emulators, servers and other compilers.
groups=$(sed -n "s/^    groups='\(.*\)'/\1/p" "$1/dev/test")
# shellcheck disable=SC2086
named=$("$1/dev/setup" --list ${groups:?none in dev/test})
for name in cmake ninja-build libcmocka-dev python3; do
    grep -qx $name <<<"$named" || fail "the quick tests need $name"
done
[ "$(wc -l <<<"$named")" -le 8 ] || fail "for the quick tests: $(echo $named)"

for name in bash awk sort; do ln -s "$(command -v $name)" "$scratch/$name"; done
PATH=$scratch "$scratch/bash" "$1/dev/setup" build quick 2>"$scratch/said" || fail "without dpkg: exit code $?"
grep -q '^dev/setup: this is not Debian' "$scratch/said" || fail "without dpkg: $(cat "$scratch/said")"
for name in $named; do
    grep -qE "^  $name +[a-z]" "$scratch/said" || fail "without dpkg $name is not named: $(cat "$scratch/said")"
done
echo "ok: $(echo $named)"
