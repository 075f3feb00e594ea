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

# Debian has these in a folder of their own.
beside=
for name in libprairie_hardened.so libprairie_copies.so; do
    found=
    for file in prairie/$name $name; do
        [ ! -e "$library/$file" ] || found="$found $file"
    done
    case $found in
        '') echo "use: no $name"; exit 1 ;;
        ' '*' '*) echo "use: more than one $name:$found"; exit 1 ;;
    esac
    beside="$beside$found"
done
for file in libprairie.so.0 prairie/libjemalloc.so.2 $beside; do
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
