#!/usr/bin/env bash
# choices_test.sh - options of a build that mean nothing are refused before anything is compiled, and ON is 1.
# SPDX-License-Identifier: MIT
#
#   choices_test.sh SOURCE_FOLDER COMPILER
set -euo pipefail
source=$1 compiler=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }

look() { cmake -DPRAIRIE_CHECK=0 -DPRAIRIE_HARDENED=0 "${@/#/-DPRAIRIE_}" -P "$source/cmake/choices.cmake" >"$scratch/log" 2>&1; }

# refused WORDS SETTING...
refused() {
    local words=$1
    shift
    if look "$@"; then fail "taken: $*"; fi
    tr -s ' \n' ' ' <"$scratch/log" | grep -qF -- "$words" || fail "$*: $(cat "$scratch/log")"
}

refused "PRAIRIE_CHECK is 0, 1 or 2, not '7'" CHECK=7
refused "PRAIRIE_CHECK is 0, 1 or 2, not 'all'" CHECK=all
refused "PRAIRIE_HARDENED is 0 or 1, not '2'" HARDENED=2
refused "PRAIRIE_PAGE_HEAPS is 1, 2, 4, 8, 16, 32 or 64, not '3'" PAGE_HEAPS=3
refused "PRAIRIE_QUANTUM is 8 or 16, not '4'" QUANTUM=4
refused "PRAIRIE_QUANTUM=8 needs a PRAIRIE_PREFIX" QUANTUM=8
refused "PRAIRIE_SANITIZE is none, thread or address, not 'memory'" SANITIZE=memory
refused "not 'je-'" PREFIX=je-
refused "PRAIRIE_PREFIX and PRAIRIE_SANITIZE=thread do not go together" PREFIX=je_ SANITIZE=thread
for settings in CHECK=2 CHECK=ON HARDENED=OFF PAGE_HEAPS=4 "PREFIX=je_ QUANTUM=8" SANITIZE=address; do
    # shellcheck disable=SC2086
    look $settings || fail "refused: $settings: $(cat "$scratch/log")"
done

# A build that asks for them.
configure() { cmake -G "Unix Makefiles" -S "$source" -B "$scratch/$1" -DCMAKE_C_COMPILER="$compiler" "${@:2}" >"$scratch/log" 2>&1; }
! configure refused -DPRAIRIE_CHECK=7 || fail "taken: -DPRAIRIE_CHECK=7"
grep -q "PRAIRIE_CHECK is 0, 1 or 2" "$scratch/log" || fail "$(cat "$scratch/log")"
configure on -DPRAIRIE_CHECK=ON -DPRAIRIE_HARDENED=on -DPRAIRIE_PREFIX=je_ -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ||
    fail "$(cat "$scratch/log")"
sed -n '/prairie_object\.dir\|prairie_prefixed_object\.dir/s/.*-DPRAIRIE_CHECK=\([^ ]*\).*-DPRAIRIE_HARDENED=\([^ ]*\).*/\1 \2/p' \
    "$scratch/on/compile_commands.json" | sort | uniq -c >"$scratch/log"
grep -q '^ *2 1 1$' "$scratch/log" && [ "$(wc -l <"$scratch/log")" = 1 ] || fail "ON is not 1: $(cat "$scratch/log")"

# What nobody asked for is not compiled: of the flavours only the hardened one has a library that is installed.
sed -n 's/^all: CMakeFiles\/\(prairie_[a-z]*-.*\)\.dir\/all$/\1/p' "$scratch/on/CMakeFiles/Makefile2" | sort >"$scratch/log"
[ "$(paste -sd ' ' "$scratch/log")" = "prairie_early-hardened prairie_object-hardened prairie_shared-hardened" ] ||
    fail "a plain build compiles $(paste -sd ' ' "$scratch/log")"

# The library with a prefix is installed without the others, which this folder does not have.
mkdir -p "$scratch/on/prairie_prefixed_include/jemalloc"
touch "$scratch/on/libje_prairie.a"
cmake --install "$scratch/on" --prefix "$scratch/place" --component prefixed >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
[ "$(cd "$scratch/place" && find . -type f | sort | paste -sd ' ')" = "./include/je_prairie/jemalloc/jemalloc.h ./lib/libje_prairie.a" ] ||
    fail "installed: $(find "$scratch/place" -type f)"
echo "ok: choices"
