#!/usr/bin/env bash
# build.sh - ripgrep from crates.io, four times: on the system's malloc, and on the crates of three allocators.
# SPDX-License-Identifier: MIT
#
#   build.sh            build/ripgrep/rg-system, rg-prairie, rg-mimalloc, rg-jemalloc
#   build.sh --lock     takes the newest versions that fit, and writes Cargo.lock beside this file anew
#
# Cargo fetches the sources. Only #[global_allocator] and what it needs is added. Release builds as ripgrep has them,
# without LTO and debug information. Some minutes the first time, most of them for jemalloc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$root/build/ripgrep
version=14.1.1

"$root/dev/need_cargo" 1.88 || exit

# write_allocators: in ripgrep's sources, a feature for each crate
write_allocators() {
    cat >>crates/core/main.rs <<'END'

#[cfg(feature = "on-prairie")]
#[global_allocator]
static ALLOCATOR: prairie_alloc::Prairie = prairie_alloc::Prairie;
#[cfg(feature = "on-mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
#[cfg(feature = "on-jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
END
    python3 - "$root" <<'END'
import pathlib
import re
import sys
manifest = pathlib.Path("Cargo.toml")
text = manifest.read_text().replace("[features]\n", """[features]
on-prairie = ["dep:prairie-alloc"]
on-mimalloc = ["dep:mimalloc"]
on-jemalloc = ["dep:tikv-jemallocator"]
on-system = []
""").replace("debug = 1\n", "debug = 0\n", 1)
# The jemalloc that it has on musl is not used here, and there may be only one.
text = re.sub(r"\[target\.[^\n]*musl[^\n]*\.jemallocator\]\n[^\[]*", "", text)
text += f"""
[dependencies.prairie-alloc]
path = "{sys.argv[1]}/tool/prairie-alloc"
optional = true
[dependencies.mimalloc]
version = "0.1"
optional = true
[dependencies.tikv-jemallocator]
version = "0.7"
optional = true
[workspace]
"""
manifest.write_text(text)
END
}

mkdir -p "$folder/fetch"
cd "$folder/fetch"
: >lib.rs
cat >Cargo.toml <<END
[package]
name = "fetch"
version = "0.0.0"
[lib]
path = "lib.rs"
[dependencies]
ripgrep = "=$version"
[workspace]
END
if [ "$(cat version 2>/dev/null)" != $version ]; then
    cargo vendor --quiet sources >/dev/null 2>"$folder/log" || { cat "$folder/log"; exit 77; }
    echo $version >version
fi

# Written once, so that Cargo builds again only what changed.
source=$folder/source
mark="$version $(declare -f write_allocators | sha256sum)"
if [ "$(cat "$folder/mark" 2>/dev/null)" != "$mark" ]; then
    rm -rf "$source" "$folder/mark"
    cp -r "$folder/fetch/sources/ripgrep" "$source"
    cd "$source"
    write_allocators
    echo "$mark" >"$folder/mark"
fi
cd "$source"
if [ "${1:-}" = --lock ]; then
    cargo update --quiet
    cp Cargo.lock "$here/Cargo.lock"
fi
cmp -s "$here/Cargo.lock" Cargo.lock || cp "$here/Cargo.lock" .

export CARGO_TARGET_DIR=$folder/target
for crate in system prairie mimalloc jemalloc; do
    cargo build --quiet --release --locked --features on-$crate >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    cp "$folder/target/release/rg" "$folder/rg-$crate"
done

# The allocator is in the program, and in that one only.
declare -A names=([prairie]=prairie_calloc [mimalloc]=mi_malloc_aligned [jemalloc]=_rjem_mallocx)
for program in system prairie mimalloc jemalloc; do
    symbols=$(nm "$folder/rg-$program")
    for crate in "${!names[@]}"; do
        has=no
        ! grep -q " [tT] ${names[$crate]}$" <<<"$symbols" || has=yes
        wants=no
        [ $crate != $program ] || wants=yes
        [ $has = $wants ] || { echo "rg-$program: ${names[$crate]} is there: $has"; exit 1; }
    done
done
echo "ok: ripgrep $version on the system's malloc, prairie, mimalloc, jemalloc"
