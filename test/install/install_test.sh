#!/usr/bin/env bash
# install_test.sh - installs into a fresh folder, then builds a program on that in every way.
# SPDX-License-Identifier: MIT
#
#   install_test.sh BUILD_FOLDER VERSION COMPILER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/place.sh"
version=$2 compiler=$3
install_from "$1"

# consumer/main.c prints who answers malloc, and the version that it finds at run time.
expect() {
    local way=$1 wanted=$2 got
    shift 2
    got=$("$@") || { echo "$way: exit code $?"; exit 1; }
    if [ "$got" != "$wanted $version" ]; then
        echo "$way: got '$got', wanted '$wanted $version'"
        exit 1
    fi
    echo "$way: $got"
}

soname_of() { readelf -dW "$1" | awk -F'[][]' '/\(SONAME\)/ { print $2 }'; }

soname=$(soname_of "$library/libprairie.so")
[ -e "$library/$soname" ] || { echo "soname $soname is not installed"; exit 1; }
# ldconfig makes a library's soname a link to it, whatever has that name before.
for file in "$library"/libprairie*.so; do
    name=$(soname_of "$file")
    [ -z "$name" ] || [ "$library/$name" -ef "$file" ] \
        || { echo "$(basename "$file") would take the place of $name"; exit 1; }
done

quietly cmake -S "$here/consumer" -B "$scratch/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
    -DPRAIRIE_WANTED="$version" -DCMAKE_C_COMPILER="$compiler"
quietly cmake --build "$scratch/consumer"
expect "find_package, prairie::shared" "$soname" "$scratch/consumer/with_shared"
expect "find_package, prairie::static" with_static "$scratch/consumer/with_static"

# Until 1.0 a minor version may be another interface.
IFS=. read -r major minor _ <<<"$version"
for other in "$major.$((minor + 1))" "$((major + 1)).0" $([ "$minor" = 0 ] || echo "$major.$((minor - 1))"); do
    if cmake -S "$here/consumer" -B "$scratch/other" -DCMAKE_PREFIX_PATH="$prefix" \
        -DPRAIRIE_WANTED="$other" -DCMAKE_C_COMPILER="$compiler" >"$scratch/log" 2>&1; then
        echo "find_package wants $other and takes $version"
        exit 1
    fi
    grep -q 'prairie-config.cmake, version: '"$version" "$scratch/log" || { cat "$scratch/log"; exit 1; }
    rm -rf "$scratch/other"
done

export PKG_CONFIG_PATH=$library/pkgconfig
found=$(pkg-config --modversion prairie)
[ "$found" = "$version" ] || { echo "pkg-config says version $found"; exit 1; }
# shellcheck disable=SC2046
quietly "$compiler" "$here/consumer/main.c" -o "$scratch/with_pc" \
    $(pkg-config --cflags --libs prairie)
expect "pkg-config" "$soname" env LD_LIBRARY_PATH="$library" "$scratch/with_pc"

# shellcheck disable=SC2046
quietly "$compiler" "$here/consumer/main.c" -o "$scratch/with_static_pc" \
    $(pkg-config --cflags --libs prairie-static)
expect "pkg-config, static" with_static_pc "$scratch/with_static_pc"

quietly "$compiler" -I"$prefix/include" "$here/consumer/main.c" -o "$scratch/with_archive" \
    "$library/libprairie.a"
expect "archive by path" with_archive "$scratch/with_archive"

# In the place of a libjemalloc.so.2, for those who ask for it.
found=$(PKG_CONFIG_PATH=$library/prairie/pkgconfig pkg-config --modversion jemalloc)
case $found in 5.3.*) ;; *) echo "pkg-config says jemalloc is $found"; exit 1 ;; esac
# shellcheck disable=SC2046
quietly "$compiler" -DWITH_JEMALLOC_HEADER -I"$prefix/include" "$here/consumer/main.c" -o "$scratch/with_jemalloc" \
    $(PKG_CONFIG_PATH=$library/prairie/pkgconfig pkg-config --cflags --libs jemalloc)
expect "jemalloc.pc" libjemalloc.so.2 env LD_LIBRARY_PATH="$library/prairie" "$scratch/with_jemalloc"

# Its header also lies in the usual place, unless another jemalloc's does.
quietly "$compiler" -DWITH_JEMALLOC_HEADER -I"$prefix/include" -fsyntax-only "$here/consumer/main.c"
usual=include/jemalloc/jemalloc.h
mkdir -p "$scratch/taken/include/jemalloc"
echo "/* another one */" >"$scratch/taken/$usual"
quietly cmake --install "$1" --prefix "$scratch/taken"
[ "$(cat "$scratch/taken/$usual")" = "/* another one */" ] || { echo "another jemalloc's header was replaced"; exit 1; }
[ -e "$scratch/taken/include/prairie/compatible/jemalloc/jemalloc.h" ] || { echo "no header for who asks"; exit 1; }
DESTDIR=$scratch/root quietly cmake --install "$1" --prefix /usr
[ -e "$scratch/root/usr/$usual" ] || { echo "no header of jemalloc under DESTDIR"; exit 1; }

# All of it in a folder with a space in its name.
cp -r "$prefix" "$scratch/a folder"
for name in prairie prairie-static jemalloc; do
    lies=$scratch/a\ folder${library#"$prefix"}
    line=$(PKG_CONFIG_PATH=$lies/pkgconfig:$lies/prairie/pkgconfig pkg-config --cflags --libs $name)
    header=
    [ $name != jemalloc ] || header="-DWITH_JEMALLOC_HEADER -I'$scratch/a folder/include'"
    eval "quietly '$compiler' $header '$here/consumer/main.c' -o '$scratch/with_space' $line"
    LD_LIBRARY_PATH="$lies:$lies/prairie" "$scratch/with_space" >"$scratch/log" || { echo "$name.pc in a folder with a space"; exit 1; }
done

# What SECURITY.md says of shadow stacks: neither the library is marked for them, nor what has it in it.
if [ "$(uname -m)" = x86_64 ]; then
    marked() { readelf -nW "$1" | grep 'x86 feature:.*SHSTK' >/dev/null; }
    echo 'int x;' >"$scratch/x.c"
    for way in alone inside; do
        with=()
        [ $way = alone ] || with=(-Wl,--undefined=malloc "$library/libprairie.a")
        quietly "$compiler" -fcf-protection -nostdlib -shared -fPIC "$scratch/x.c" -o "$scratch/$way.so" "${with[@]}"
    done
    ! marked "$library/libprairie.so" && marked "$scratch/alone.so" && ! marked "$scratch/inside.so" ||
        { echo "SECURITY.md says something else of shadow stacks"; exit 1; }
fi

# Folders that are absolute, in the prefix and out of it: where they are is told from where the .pc file is.
quietly cmake -S "$here/../.." -B "$scratch/absolute" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_INSTALL_PREFIX=/some/where \
    -DCMAKE_INSTALL_LIBDIR=/some/where/lib64 -DCMAKE_INSTALL_INCLUDEDIR=/else/where/include
folder=$scratch/tree/some/where/lib64/pkgconfig
mkdir -p "$folder/../prairie/pkgconfig"
cp "$scratch"/absolute/prairie*.pc "$folder"
cp "$scratch/absolute/jemalloc/jemalloc.pc" "$folder/../prairie/pkgconfig"
for wanted in prairie:lib64 prairie-static:lib64 jemalloc:lib64/prairie; do
    name=${wanted%:*} found=
    for variable in libdir includedir; do
        value=$(PKG_CONFIG_PATH=$folder:$folder/../prairie/pkgconfig pkg-config --variable=$variable "$name")
        found="$found $(realpath -m "$value")"
    done
    include=$scratch/tree/else/where/include
    [ "$name" != jemalloc ] || include=$include/prairie/compatible
    [ "$found" = " $scratch/tree/some/where/${wanted#*:} $include" ] \
        || { echo "$name.pc of absolute folders says$found"; exit 1; }
done
