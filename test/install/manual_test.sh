#!/usr/bin/env bash
# manual_test.sh - the manual pages are installed, without a fault, and name every function and every option.
# SPDX-License-Identifier: MIT
#
#   manual_test.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
source=$2
install_from "$1"
pages=$prefix/share/man

"$source/dev/make_man.py" --check

for page in man3/prairie.3 man3/prairie_reserve.3 man3/prairie_jemalloc.3 man5/prairie.conf.5; do
    [ -s "$pages/$page" ] || { echo "$page is not installed"; exit 1; }
    mandoc -Tlint -W warning "$pages/$page"
done
# They lead to each other, and a link that a page cannot have leaves no word behind.
for page in man3/prairie_reserve.3 man3/prairie_jemalloc.3 man5/prairie.conf.5; do
    grep -qE '^\.Xr prairie 3( ,)?$' "$pages/$page" || { echo "$page does not lead to prairie(3)"; exit 1; }
done
if grep -nE '\((which|why|how|servers)\)' "$pages"/man*/prairie*; then echo "words of links without them"; exit 1; fi
# The alarm works: a page with a list that is not closed is told.
sed '/^\.El$/d' "$pages/man3/prairie.3" >"$scratch/broken.3"
if mandoc -Tlint -W warning "$scratch/broken.3" >/dev/null; then echo "a broken page passed"; exit 1; fi

# What the library exports under our names, not what a parser finds in a header; prairie_early is the loader's.
missing=0
look() {
    if ! grep -qE "$1" "$pages"/$2; then echo "$2 does not have: $1"; missing=1; fi
}
names=$(nm -D --defined-only "$library/libprairie.so" | awk '$2 == "T" && $3 ~ /^prairie_/ && $3 != "prairie_early" { print $3 }')
[ "$(wc -w <<<"$names")" -ge 40 ] || { echo "found only these functions: $names"; exit 1; }
for name in $names; do look "^\\.Fo (prairie_)?${name#prairie_}\$" 'man3/*'; done
for name in mallocx rallocx sdallocx mallctl mallctlbymib malloc_stats_print; do
    look "^\\.Fo $name\$" man3/prairie_jemalloc.3
done

options=$(sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' "$source/docs/options.md")
[ "$(wc -w <<<"$options")" -ge 50 ] || { echo "found only these options: $options"; exit 1; }
for option in $options; do look "^\\.It Cm $option\$" man5/prairie.conf.5; done
[ $missing = 0 ]
echo "$(wc -w <<<"$names") functions and $(wc -w <<<"$options") options are in the manual pages"
