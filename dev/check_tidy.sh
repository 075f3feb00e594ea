#!/usr/bin/env bash
# dev/check_tidy.sh - lets clang-tidy read the unity file, plain and with the fake kernel, and the lab.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

plain="-DPRAIRIE_CHECK=0"
fake="-DPRAIRIE_CHECK=1 -DPRAIRIE_TINY -DPRAIRIE_OS_FAKE -DPRAIRIE_FACE_NONE"
# The analyzer reads only the main file unless told; here everything that matters is included.
for choice in "$plain" "$fake"; do
    # shellcheck disable=SC2086
    clang-tidy --quiet src/prairie.c -- -std=gnu17 -Isrc -Iinclude $choice \
        -Xclang -analyzer-opt-analyze-headers
done

# Definitions that some of the lab's files expect from its build.
lab=(-std=gnu17 -Ilab -Isrc -Iinclude -DPRAIRIE_CHECK=0 -DPRAIRIE_FACE_NONE -DWITH_BTREE
     -DKEEPER_TREE=bsd '-DRUNS_UNITY="../../src/prairie.c"')
mapfile -t files < <(find lab -name '*.c' | sort)
clang-tidy --quiet "${files[@]}" -- "${lab[@]}"
