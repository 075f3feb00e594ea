#!/usr/bin/env bash
# recipes_test.sh - pages of docs/recipes: they are whole, their figures are those that were measured, and what some of
# them tell to run is run.
# SPDX-License-Identifier: MIT
#
#   recipes_test.sh SOURCE_FOLDER LIBRARY NAME...
set -euo pipefail
source=$1 library=$2
shift 2
unset LD_PRELOAD PYTHONMALLOC MALLOC_CONF PRAIRIE_CONF
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$source/dev/make_recipes.py" --check
echo "ok: pages and figures"

# The check sees a figure that is not the measured one, a part that is gone, and a page that is not in the list.
copy() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree"/{docs,bench/results,dev}
    cp -r "$source/docs/recipes" "$scratch/tree/docs"
    cp -r "$source/bench/results/recipes" "$scratch/tree/bench/results"
    cp "$source"/dev/{make_recipes,written}.py "$scratch/tree/dev"
}
refused() {
    if "$scratch/tree/dev/make_recipes.py" --check >"$scratch/said"; then
        echo "not ok: $1 is not seen"
        exit 1
    fi
    grep -q "$2" "$scratch/said" || { cat "$scratch/said"; echo "not ok: $1 is told otherwise"; exit 1; }
}
copy
sed -i 's/"rounds": 5/"rounds": 6/' "$scratch/tree/bench/results/recipes/redis.json"
refused "another figure" "redis.md: figures"
copy
sed -i 's/^## See/## Look/' "$scratch/tree/docs/recipes/redis.md"
refused "a missing part" "redis.md: wants"
copy
cp "$scratch/tree/docs/recipes/redis.md" "$scratch/tree/docs/recipes/other.md"
refused "a page outside of the list" "other.md"
echo "ok: what the check refuses"

code=0
"$source/bench/recipes/run.py" try "$library" "$@" || code=$?
exit $code
