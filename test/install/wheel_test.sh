#!/usr/bin/env bash
# wheel_test.sh - the wheel in a fresh virtual environment: a script runs on prairie, asks it, and is profiled.
# SPDX-License-Identifier: MIT
#
#   wheel_test.sh LIBRARY SOURCE_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python=/usr/bin/python3
"$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "needs python3-venv"; exit 77; }

wheel=$("$2/python/build_wheel.py" "$1" "$scratch/dist")
cp "$here/wheel"/* "$scratch"
cd "$scratch"
"$python" -m venv venv
venv/bin/pip install -q --no-index --disable-pip-version-check "$wheel"
# What another library was preloaded for is not to be seen here.
unset LD_PRELOAD PYTHONMALLOC MALLOC_CONF

venv/bin/python outside.py
# Loaded, behind another allocator that has jemalloc's names, too.
"${CC:-cc}" -O2 -fPIC -shared other_malloc.c -o other_malloc.so
LD_PRELOAD="$PWD/other_malloc.so $(venv/bin/python -m prairie path)" venv/bin/python outside.py
venv/bin/python -m prairie run script.py one two
venv/bin/python -m prairie run -c 'import sys, prairie; assert prairie.is_serving() and sys.argv == ["-c", "x"]' x
venv/bin/python -m prairie run --profile "$scratch/heap" profiled.py
LD_PRELOAD=$(venv/bin/python -m prairie path) PYTHONMALLOC=malloc venv/bin/python script.py one two
venv/bin/pip uninstall -q -y prairie-malloc
[ -z "$(find venv -name '*prairie*')" ] || { find venv -name '*prairie*'; exit 1; }
echo "ok: $(basename "$wheel")"
