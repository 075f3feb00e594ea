#!/bin/sh
# use.sh - what was installed serves a program: preloaded, linked, and inside of it.
# SPDX-License-Identifier: MIT
#
#   use.sh FOLDER_OF_LIBRARIES FOLDER_OF_PKG_CONFIG      the second may be empty: as the system is set up
set -eu
here=$(cd "$(dirname "$0")" && pwd)
library=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "$2" ]; then export PKG_CONFIG_PATH="$2"; fi

# Debian has that one beside the other.
hardened=
for file in prairie/libprairie_hardened.so libprairie_hardened.so; do
    [ ! -e "$library/$file" ] || hardened="$hardened $file"
done
case $hardened in
    '') echo "use: no libprairie_hardened.so"; exit 1 ;;
    ' '*' '*) echo "use: more than one libprairie_hardened.so:$hardened"; exit 1 ;;
esac
for file in libprairie.so.0 prairie/libjemalloc.so.2 $hardened; do
    [ -e "$library/$file" ] || { echo "use: no $file"; exit 1; }
    LD_PRELOAD=$library/$file PRAIRIE_CONF=stats_print:true ls / 2>&1 >/dev/null | grep -q '^prairie:' ||
        { echo "use: $file does not serve"; exit 1; }
done
if [ -n "$2" ] || pkg-config --exists prairie; then
    # shellcheck disable=SC2046
    cc "$here/main.c" -o "$scratch/shared" $(pkg-config --cflags --libs prairie)
    LD_LIBRARY_PATH=$library "$scratch/shared"
    # shellcheck disable=SC2046
    cc -O2 "$here/main.c" -o "$scratch/static" $(pkg-config --cflags --libs prairie-static)
    "$scratch/static"
fi
