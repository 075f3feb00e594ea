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
# Who asks for help gets it; who is wrong gets it as an error.
for asked in --help -h "run --help"; do
    # shellcheck disable=SC2086
    venv/bin/python -m prairie $asked 2>err >out
    grep -q '^python -m prairie path' out && [ ! -s err ] || { cat out err; exit 1; }
done
for wrong in "" frobnicate "run --frobnicate script.py" "run -m" "run -c"; do
    # shellcheck disable=SC2086
    if venv/bin/python -m prairie $wrong 2>err >out || [ -s out ] || ! grep -q '^python' err; then cat out err; exit 1; fi
done
venv/bin/python -m prairie run -c 'import sys, prairie; assert prairie.is_serving() and sys.argv == ["-c", "x"]' x
mkdir 'a b' && cp -r venv/lib/python*/site-packages/prairie 'a b'
if PYTHONPATH="$PWD/a b" venv/bin/python -m prairie run -c pass 2>err || ! grep -q "^python.*/a b/.*: the loader splits" err; then cat err; exit 1; fi
# The interpreter's own flags, and a module that others find by its name.
venv/bin/python -u -X own -m prairie run -c '
import pickle, sys
assert sys.stdout.write_through and "own" in sys._xoptions
class Kept: pass
assert type(pickle.loads(pickle.dumps(Kept()))) is Kept'
# The main module stays to the end, and processes that begin anew import it.
mkdir folder && cp spawns.py folder/__main__.py
for main in spawns.py "-m spawns"; do
    # shellcheck disable=SC2086
    venv/bin/python -m prairie run $main >out
    [ "$(cat out)" = "kept spawned, after the end kept" ] || { cat out; exit 1; }
done
venv/bin/python -m prairie run folder x >out
[ "$(cat out)" = "after the end kept" ] || { cat out; exit 1; }
for missing in "no.py" "-m no"; do
    # shellcheck disable=SC2086
    if venv/bin/python -m prairie run $missing 2>err || grep -q Traceback err; then cat err; exit 1; fi
done
# With -I the folder of a script is not where modules are looked for, and with -c the current one is not.
venv/bin/python -I -m prairie run -c 'import sys; assert "" not in sys.path and any(p.endswith(".zip") for p in sys.path), sys.path'
venv/bin/python -m prairie run --profile "$scratch/heap" profiled.py
# A forked worker keeps its parent's profile, and names need not be UTF-8.
venv/bin/python -m prairie run --profile "$scratch/"$'forked\377' -c 'import os; child = os.fork(); child and os.waitpid(child, 0)'
[ "$(find . -name 'forked*.end.heap' | wc -l)" = 2 ] || { ls; exit 1; }
LD_PRELOAD=$(venv/bin/python -m prairie path) PYTHONMALLOC=malloc venv/bin/python script.py one two
# Packed relocations are a wish for a newer C library that no version tells.
"${CC:-cc}" -O2 -fPIC -shared -Wl,-z,pack-relative-relocs other_malloc.c -o packed.so
if readelf -VW packed.so | grep -q GLIBC_ABI_DT_RELR; then
    "$python" "$2/python/build_wheel.py" packed.so packed_dist | grep -q manylinux_2_36
fi
venv/bin/pip uninstall -q -y prairie-malloc
[ -z "$(find venv -name '*prairie*')" ] || { find venv -name '*prairie*'; exit 1; }
echo "ok: $(basename "$wheel")"
