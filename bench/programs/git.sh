#!/bin/sh
# git.sh - reads a history with git, or packs it anew.
# SPDX-License-Identifier: MIT
#
#   git.sh setup PER_CENT INPUT
#   git.sh log INPUT             every change as a patch, renames found, and who wrote each line
#   git.sh pack INPUT DIR        all objects packed anew
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat
case $1 in
setup)
    git init -q --bare "$3/repository"
    /usr/bin/python3 "$(dirname "$0")/history.py" "$2" >"$3/stream"
    git -C "$3/repository" fast-import --quiet --done <"$3/stream"
    rm "$3/stream"
    ;;
log)
    cd "$2/repository"
    git log -p --stat -M -C main >/dev/null
    git log --format='%H %s' --stat main | sha256sum
    git grep -c rain main | sha256sum
    exec git blame -s main -- d0/e0/file0.txt
    ;;
pack)
    cd "$2/repository"
    # A single thread: the order in which two find deltas depends on chance.
    git rev-list --objects main >"$3/objects"
    git -c pack.threads=1 pack-objects -q --no-reuse-delta --no-reuse-object --window=20 \
        --stdout <"$3/objects" >"$3/objects.pack"
    git index-pack --strict "$3/objects.pack"
    sha256sum <"$3/objects.pack"
    ;;
esac
