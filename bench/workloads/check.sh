#!/usr/bin/env bash
# bench/workloads/check.sh - checks the workloads themselves: suites, equal results, memory errors.
# SPDX-License-Identifier: MIT
#
#   bench/workloads/check.sh              the suite files are the program's; every workload prints
#                                         the same under the C library and under build/libprairie.so
#   bench/workloads/check.sh LIBRARY...   the same under other libraries
#   bench/workloads/check.sh --suites     rewrites bench/suites/workloads.toml and figures.toml
#   bench/workloads/check.sh --sanitize   every workload once, built with the compiler's sanitizers
#
# WORKLOADS=folder takes the executables from there instead of build/bench; SCALE=1 is the default.
set -euo pipefail
ulimit -c 0
cd "$(dirname "$0")/../.."
built="${WORKLOADS:-build/bench}"
scale="${SCALE:-1}"
failed=0

suite() {
    cat <<END
# $1.toml - $2
# SPDX-License-Identifier: MIT
#
# Written by \`bench/workloads/check.sh --suites\` from the tables in bench/workloads/: edit those.
[suite]
name = "$1"
what = "$2"
rounds = $3
quick_rounds = $4
timeout_s = 120
END
    "$built/workloads" --suite "$1" && "$built/workloads-cpp" --suite "$1"
}

timed() {
    suite workloads "our own programs, each a published idea about what strains an allocator" 10 1
}
figures() {
    suite figures "what workloads measure: memory when idle, per thread, at start; growth" 3 1
}

# Name and executable of all that run without arguments.
names() {
    for program in workloads workloads-cpp; do
        "$built/$program" --list | awk -v program="$program" '
            $1 !~ /^(replay|generate|startup-child)$/ { print program, $1 }' || return 1
    done
}

# A recorded trace may not be there.
has_input() {
    local file="${1#trace-}"
    case $1 in
        trace-crew) file=python-threads ;;
        trace-*) ;;
        *) return 0 ;;
    esac
    [ -e "$built/traces/$file.trace" ]
}

# What a workload prints under a library; "" is the C library.
line_of() {
    local extra=()
    [ "$3" = growth ] && extra=(--live-max 100000)
    env ${1:+LD_PRELOAD="$1"} "$2" "$3" --scale "$scale" "${extra[@]}" || echo "exit code $?"
}

compare_results() {
    local count=0 program name expected library seen listed
    listed=$(names) || { echo "check.sh: a program does not list its workloads" >&2; exit 1; }
    while read -r program name; do
        if ! has_input "$name"; then
            echo "absent: $name (bench/workloads/record.sh makes its trace)"
            continue
        fi
        expected=$(line_of "" "$built/$program" "$name")
        [[ $expected == *checksum* ]] || { echo "$name: $expected"; failed=1; }
        for library in "$@"; do
            seen=$(line_of "$library" "$built/$program" "$name" 2>&1)
            count=$((count + 1))
            [ "$seen" = "$expected" ] && continue
            printf '%s under %s:\n  %s\n  expected: %s\n' "$name" "$library" "$seen" "$expected"
            failed=1
        done
    done <<<"$listed"
    [ $count -gt 0 ] || { echo "check.sh: nothing was compared" >&2; failed=1; }
    echo "$count results compared at $scale per cent"
}

# The sanitizers' own malloc serves the blocks, so each wrong access stops the program.
sanitize() {
    local count=0 program name flags listed
    listed=$(names) || { echo "check.sh: a program does not list its workloads" >&2; exit 1; }
    scratch=$(mktemp -d) # not local: the trap reads it
    trap 'rm -rf "$scratch"' EXIT
    flags="-fsanitize=address,undefined -fno-sanitize-recover=all -O1"
    cmake -S bench -B "$scratch" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_CXX_FLAGS="$flags" > "$scratch/log"
    cmake --build "$scratch" -j2 --target workloads workloads-cpp traces >> "$scratch/log" \
        || { tail -n 20 "$scratch/log"; exit 1; }
    cp -n "$built"/traces/*.trace "$scratch/traces/" 2>/dev/null || true # the recorded ones
    while read -r program name; do
        built="$scratch" has_input "$name" || continue
        ASAN_OPTIONS=detect_leaks=0 line_of "" "$scratch/$program" "$name" > "$scratch/out" 2>&1
        grep -q checksum "$scratch/out" && ! grep -q 'exit code' "$scratch/out" \
            || { echo "$name:"; head -n 20 "$scratch/out"; failed=1; }
        count=$((count + 1))
    done <<<"$listed"
    echo "$count workloads ran under the sanitizers"
}

# Written only when the programs said all of it.
renew() {
    local file="bench/suites/$2.toml" fresh
    fresh=$(mktemp "$file.XXXXXX")
    if "$1" > "$fresh"; then
        chmod 644 "$fresh"
        mv "$fresh" "$file"
    else
        rm -f "$fresh"
        echo "check.sh: $file is left as it was" >&2
        failed=1
    fi
}

# The loader splits LD_PRELOAD at blanks and colons.
refuse_blanks() {
    case $1 in
        *[[:space:]:]*)
            echo "check.sh: '$1' cannot be preloaded: its path has a blank or a colon" >&2
            exit 2 ;;
    esac
}

[ -x "$built/workloads" ] && [ -x "$built/workloads-cpp" ] \
    || { echo "check.sh: no workloads in $built; build the bench first" >&2; exit 1; }
case ${1:-} in
    --suites)
        renew timed workloads
        renew figures figures ;;
    --sanitize) sanitize ;;
    -*) sed -n '4,11s/^# *//p' "$0" >&2; exit 2 ;;
    *)
        for name in timed:workloads figures:figures; do
            "${name%%:*}" | diff -u "bench/suites/${name##*:}.toml" - \
                || { echo "bench/suites/${name##*:}.toml is stale: check.sh --suites"; failed=1; }
        done
        [ $# -gt 0 ] || set -- "$PWD/build/libprairie.so"
        for library; do refuse_blanks "$library"; done
        compare_results "$@" ;;
esac
exit $failed
