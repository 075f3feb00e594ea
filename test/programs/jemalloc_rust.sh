#!/usr/bin/env bash
# jemalloc_rust.sh - the own tests of tikv-jemallocator and of the two crates beside it, which give Rust programs
# jemalloc, on prairie's static libraries: under the C library's names, and under the prefix that is their default.
# SPDX-License-Identifier: MIT
#
#   jemalloc_rust.sh PREFIXED_LIBRARY FOLDER      and PRAIRIE_ARCHIVE in the environment
#
# The crates come through cargo, in the versions of tikv/Cargo.lock, and are built in FOLDER. Their feature alloc_trait
# is left out: it wants a trait that Rust no longer has.
set -euo pipefail
prefixed=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
crates="tikv-jemallocator tikv-jemalloc-ctl tikv-jemalloc-sys"

"$here/../../dev/need_cargo" 1.78 || exit

# fetch: the sources of the crates and of what they need, in $folder/fetched
fetch() {
    mkdir -p "$folder/fetch"
    cp "$here/tikv/Cargo.toml" "$here/tikv/Cargo.lock" "$folder/fetch"
    : >"$folder/fetch/nothing.rs"
    rm -rf "$folder/fetched"
    if (cd "$folder/fetch" && timeout 90 cargo vendor --locked --quiet ../fetched) >/dev/null 2>"$folder/errors"; then
        return
    fi
    cat "$folder/errors"
    rm -rf "$folder/fetched"
    if grep -q -e --locked "$folder/errors"; then
        echo "not ok: tikv/Cargo.lock does not fit tikv/Cargo.toml"
        exit 1
    fi
    echo "cargo could not fetch the crates: no registry within reach"
    exit 77
}

# unpack: one workspace of copies of the three. What cargo publishes has lost the dependency of the first crate's
# tests on the second.
unpack() {
    local crate
    for crate in $crates; do
        rm -rf "${folder:?}/$crate"
        cp -r "$folder/fetched/$crate" "$folder"
    done
    printf '\n[dev-dependencies.tikv-jemalloc-ctl]\nversion = "0.7"\n' >>"$folder/tikv-jemallocator/Cargo.toml"
    {
        echo '[workspace]'
        echo 'resolver = "2"'
        echo "members = [$(printf '"%s", ' $crates)]"
        echo '[patch.crates-io]'
        for crate in $crates; do echo "$crate = { path = \"$crate\" }"; done
    } >"$folder/Cargo.toml"
    mkdir -p "$folder/.cargo"
    cat >"$folder/.cargo/config.toml" <<END
[source.crates-io]
replace-with = "fetched"
[source.fetched]
directory = "fetched"
[net]
offline = true
END
}

# run NAME LIBRARY TESTS_AT_LEAST FEATURE...: all tests of the three, and the examples in their documents
run() {
    local name=$1 library=$2 least=$3 features passed failed program
    shift 3
    features=$(IFS=, && echo "$*")
    JEMALLOC_OVERRIDE=$library CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0 \
        cargo test --workspace --offline --no-fail-fast --target-dir "$folder/target" --features "$features" \
        >"$folder/$name.log" 2>&1 || {
        grep -E '^error|FAILED|panicked|signal' "$folder/$name.log" || tail -40 "$folder/$name.log"
        echo "not ok: $name; all of it is in $folder/$name.log"
        exit 1
    }
    passed=$(awk '/^test result: ok/ { sum += $4 } END { print sum + 0 }' "$folder/$name.log")
    failed=$(awk '/^test result:/ { sum += $6 } END { print sum + 0 }' "$folder/$name.log")
    program=$(sed -n 's/.*Running tests\/malloctl.rs (\(.*\))$/\1/p' "$folder/$name.log")
    # Programs that had another allocator would pass, too.
    grep -qa '5\.3\.1-0-gprairie-' "$program" || {
        echo "not ok: $name: the tests are not linked with prairie"
        exit 1
    }
    if [ "$failed" -ne 0 ] || [ "$passed" -lt "$least" ]; then
        echo "not ok: $name: $passed passed, $failed failed, wanted $least"
        exit 1
    fi
    echo "ok: $name: $passed tests"
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
# What was fetched before is good as long as the list is the same.
if ! cmp -s "$here/tikv/Cargo.lock" "$folder/fetch/Cargo.lock" || [ ! -d "$folder/fetched" ]; then fetch; fi
unpack
cd "$folder"
run plain "$PRAIRIE_ARCHIVE" 50 tikv-jemallocator/stats tikv-jemallocator/unprefixed_malloc_on_supported_platforms
run prefixed "$prefixed" 80 tikv-jemallocator/stats tikv-jemalloc-ctl/stats tikv-jemalloc-ctl/profiling \
    tikv-jemalloc-ctl/use_std
