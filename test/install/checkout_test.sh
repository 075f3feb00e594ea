#!/usr/bin/env bash
# checkout_test.sh - programs of other projects, built against a checkout of prairie and, by Meson, an installed one.
# SPDX-License-Identifier: MIT
#
#   checkout_test.sh BUILD_FOLDER VERSION COMPILER SOURCE_FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
version=$2 compiler=$3
install_from "$1"

# What a checkout or a release has in it, and nothing that was built.
checkout=$scratch/checkout
mkdir -p "$checkout"/{docs,tool}
cp -r "$4/docs/man" "$checkout/docs"
cp -r "$4"/{CMakeLists.txt,CMakePresets.json,LICENSE,meson.build,cmake,include,src} "$checkout"
mkdir -p "$checkout/tool/prairie-sys"
cp "$4/tool/prairie-sys/names.h" "$checkout/tool/prairie-sys"

expect() {
    local way=$1 wanted=$2 got
    shift 2
    got=$("$@") || { echo "$way: exit code $?"; exit 1; }
    [ "$got" = "$wanted $version" ] || { echo "$way: got '$got', wanted '$wanted $version'"; exit 1; }
    echo "$way: $got"
}

quietly cmake -S "$here/fetched" -B "$scratch/fetched" -G Ninja -DPRAIRIE_CHECKOUT="$checkout" -DCMAKE_C_COMPILER="$compiler"
quietly cmake --build "$scratch/fetched" --target with_shared with_static
expect "FetchContent, prairie::shared" libprairie.so.0 "$scratch/fetched/with_shared"
expect "FetchContent, prairie::static" with_static "$scratch/fetched/with_static"

# Nothing but the project itself is installed, unless it wants that.
quietly cmake --install "$scratch/fetched" --prefix "$scratch/fetched_place"
found=$(cd "$scratch/fetched_place" && find . -type f)
[ "$found" = ./bin/with_static ] || { echo "FetchContent installs: $found"; exit 1; }
quietly cmake -DPRAIRIE_INSTALL=ON "$scratch/fetched"
grep -q prairie-config "$scratch/fetched/_deps/prairie-build/cmake_install.cmake" || { echo "FetchContent never installs"; exit 1; }

# The one file, by README's line. All names that it brings are to be called, or begin with ours.
line=$(grep -m1 '^cc .*src/prairie\.c$' "$4/README.md")
cd "$checkout"
quietly sh -c "$compiler ${line#cc }"
cd "$OLDPWD"
for name in $(nm -g --defined-only "$checkout/prairie.o" | awk '$3 !~ /^prairie_/ { print $3 }'); do
    grep -q "^ *$name;" "$checkout/src/prairie.map" || { echo "one file: $name may clash"; exit 1; }
done
quietly "$compiler" -I"$checkout/include" "$here/consumer/main.c" "$checkout/prairie.o" -o "$scratch/one_file"
expect "one file" one_file "$scratch/one_file"

if ! command -v meson >/dev/null; then
    echo "left out: Meson (dev/setup test brings it)"
    exit 0
fi
mkdir -p "$scratch/meson/subprojects"
cp "$here"/meson/meson* "$here/consumer/main.c" "$scratch/meson"
export CC=$compiler
PKG_CONFIG_PATH=$library/pkgconfig quietly meson setup --wrap-mode=nofallback -Dinstalled=prairie "$scratch/meson_shared" \
    "$scratch/meson"
quietly meson compile -C "$scratch/meson_shared"
expect "Meson, installed, shared" libprairie.so.0 env LD_LIBRARY_PATH="$library" "$scratch/meson_shared/with_meson"
PKG_CONFIG_PATH=$library/pkgconfig quietly meson setup --wrap-mode=nofallback "$scratch/meson_static" "$scratch/meson"
quietly meson compile -C "$scratch/meson_static"
expect "Meson, installed, static" with_meson "$scratch/meson_static/with_meson"
mv "$checkout" "$scratch/meson/subprojects/prairie"
quietly meson setup --wrap-mode=forcefallback "$scratch/meson_sub" "$scratch/meson"
quietly meson compile -C "$scratch/meson_sub"
expect "Meson, subproject" with_meson "$scratch/meson_sub/with_meson"
