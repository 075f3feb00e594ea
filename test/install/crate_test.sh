#!/usr/bin/env bash
# crate_test.sh - the crates as cargo packages them, and a program of somebody else that uses what came out.
# SPDX-License-Identifier: MIT
#
#   crate_test.sh SOURCE_FOLDER FOLDER VERSION      what is built stays in FOLDER, for the next time
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$1 version=$3
mkdir -p "$2"
folder=$(cd "$2" && pwd)

"$source/dev/need_cargo" 1.90 || exit # packs crates of which one needs the other
export CARGO_TARGET_DIR=$folder/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_TERM_COLOR=never

"$source/dev/make_crate_names" --check

# Packed as for publishing. cargo would build each once to see that it can be; below they are built for every target.
if ! cargo package --quiet --locked --allow-dirty --no-verify --manifest-path "$source/tool/Cargo.toml" -p prairie-sys -p prairie-alloc \
        >"$folder/log" 2>&1; then
    cat "$folder/log"
    if grep -qE 'failed to (download|get|fetch)|Could not resolve' "$folder/log"; then exit 77; fi
    exit 1
fi
! grep -E '^(warning|error)' "$folder/log" | grep -v 'no documentation, homepage or repository' || exit 1
rm -rf "$folder/unpacked"
mkdir -p "$folder/unpacked/program/src"
for crate in prairie-sys prairie-alloc; do
    tar -xf "$folder/target/package/$crate-$version.crate" -C "$folder/unpacked"
done
# Files of a crate have no time by which cargo could tell that they changed.
sums=$(cd "$folder/target/package" && sha256sum prairie-*.crate)
if [ "$sums" != "$(cat "$folder/sums" 2>/dev/null)" ]; then
    rm -rf "$folder/target"/{debug,x86_64-*}
    echo "$sums" >"$folder/sums"
fi
[ -z "$(find "$folder/unpacked" -type l)" ] || { echo "links in a crate"; exit 1; }

cp "$here/crate/main.rs" "$folder/unpacked/program/src"
cat >"$folder/unpacked/program/Cargo.toml" <<END
[package]
name = "program"
version = "0.0.0"
edition = "2021"
[dependencies]
prairie-alloc = "$version"
[patch.crates-io]
prairie-sys = { path = "../prairie-sys-$version" }
prairie-alloc = { path = "../prairie-alloc-$version" }
[workspace]
END
cd "$folder/unpacked/program"
cp "$source/tool/Cargo.lock" . # versions that were fetched already

# try TARGET RUNNER: the program on that target, if Rust and a C compiler have it
try() {
    local target=$1 runner=$2 said
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || ! command -v "$3" >/dev/null; then
        echo "left out: $target"
        return
    fi
    cargo build --quiet -j1 --offline --target "$target" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    ! grep -E '^(warning|error)' "$folder/log" || exit 1
    # shellcheck disable=SC2086
    said=$($runner "$folder/target/$target/debug/program$4" 2>/dev/null) || { echo "$target: $said"; exit 1; }
    [ "$(tr -d '\r' <<<"$said")" = "ok: prairie $version" ] || { echo "$target: '$said'"; exit 1; }
    echo "ok: $target"
}
try x86_64-unknown-linux-gnu "" cc ""
try x86_64-unknown-linux-musl "" musl-gcc ""
if command -v wine >/dev/null && command -v x86_64-w64-mingw32-gcc >/dev/null; then
    mkdir -p "$folder/target/x86_64-pc-windows-gnu/debug"
    x86_64-w64-mingw32-gcc -shared "$here/crate/bcryptprimitives.c" -ladvapi32 \
        -o "$folder/target/x86_64-pc-windows-gnu/debug/bcryptprimitives.dll"
    try x86_64-pc-windows-gnu "$source/dev/wine" x86_64-w64-mingw32-gcc .exe
fi

# No name of the library's but those that begin with prairie_.
archive=$(find "$folder/target/x86_64-unknown-linux-gnu/debug/build" -name libprairie.a -printf '%T@ %p\n' | sort -n | tail -1)
names=$(nm -g --defined-only "${archive#* }" | awk 'NF == 3 && $3 !~ /^prairie_/ { print $3 }')
[ -z "$names" ] || { echo "names that may clash: $names"; exit 1; }
echo "ok: names"
