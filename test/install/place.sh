# place.sh - what the install tests share: a fresh folder, and prairie installed there as users get it. Sourced.
# SPDX-License-Identifier: MIT
#
# After `install_from BUILD_FOLDER` there are $prefix, $library (the folder of the libraries) and $scratch, which goes
# at the end.

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

quietly() {
    if ! "$@" >"$scratch/log" 2>&1; then
        echo "failed: $*"
        cat "$scratch/log"
        exit 1
    fi
}

# A package that only works where it was installed first has absolute paths in it.
install_from() {
    prefix=$scratch/moved
    quietly cmake --install "$1" --prefix "$scratch/first"
    mv "$scratch/first" "$prefix"
    library=$(dirname "$(find "$prefix" -name libprairie.so)")
}
