#!/usr/bin/env bash
# dev/check_format.sh - compares the C files with .clang-format; --rewrite applies it instead.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find src include test bench lab -name '*.[ch]' 2>/dev/null | sort)
if [ ${#files[@]} -eq 0 ]; then
    echo "check_format: no C files found" >&2
    exit 1
fi
if [ "${1:-}" = --rewrite ]; then
    exec clang-format -i "${files[@]}"
fi

# Many files a process, for each takes longer to start than to read one. How much differs is looked at only where
# something does.
if printf '%s\0' "${files[@]}" | xargs -0 -n 30 -P "${JOBS:-2}" clang-format --dry-run -Werror 2>/dev/null; then
    exit 0
fi
bad=0
for file in "${files[@]}"; do
    lines=$(clang-format "$file" | diff "$file" - | grep -c '^[<>]' || true)
    if [ "$lines" -gt 0 ]; then
        echo "$file: $lines lines differ"
        bad=$((bad + 1))
    fi
done
echo "check_format: $bad of ${#files[@]} files differ; make format rewrites them"
clang-format --version
exit 1
