#!/usr/bin/env bash
# dev/check_tidy.sh - lets clang-tidy read the unity file, plain and with checks, the fake kernel, and the lab.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

plain="-DPRAIRIE_CHECK=0"
checked="-DPRAIRIE_CHECK=1 -DPRAIRIE_TINY -DPRAIRIE_OWN_NAMES"
fake=(-std=gnu17 -Itest -Isrc -Iinclude -DPRAIRIE_CHECK=1 -DPRAIRIE_TINY)
# Definitions that some of the lab's files expect from its build.
lab=(-std=gnu17 '-DALLOCATOR="prairie.h"' -Ilab -Isrc -Iinclude -DPRAIRIE_CHECK=0 -DPRAIRIE_OWN_NAMES -DWITH_BTREE
     -DRUN_TREE=bsd '-DRUNS_UNITY="../../src/prairie.c"')
mapfile -t files < <(find lab -name '*.c' | sort)

# The analyzer reads only the main file unless told; here everything that matters is included.
unity=(src/prairie.c -- -std=gnu17 -Isrc -Iinclude -Xclang -analyzer-opt-analyze-headers)

# Each is one thread's work, and the longest of lint: side by side, each with its own output.
outputs=$(mktemp -d)
readers=()
trap '[ ${#readers[@]} = 0 ] || kill "${readers[@]}" 2>/dev/null || true; rm -rf "$outputs"' EXIT
trap 'exit 1' INT TERM
# shellcheck disable=SC2086
clang-tidy --quiet "${unity[@]}" $plain >"$outputs/plain" 2>&1 & readers+=($!)
# The analyzer takes minutes, and what the checks add are statements that must be true: what ships is enough for it.
# shellcheck disable=SC2086
clang-tidy --quiet --checks='-clang-analyzer-*' "${unity[@]}" $checked >"$outputs/checked" 2>&1 & readers+=($!)
clang-tidy --quiet test/kernel/*.c -- "${fake[@]}" >"$outputs/fake" 2>&1 & readers+=($!)
clang-tidy --quiet "${files[@]}" -- "${lab[@]}" >"$outputs/lab" 2>&1 & readers+=($!)
failed=0
for reader in "${readers[@]}"; do wait "$reader" || failed=1; done
readers=()
cat "$outputs"/*
exit "$failed"
