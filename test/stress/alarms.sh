#!/bin/sh
# alarms.sh - every damage that the stress test claims to see is done on purpose, and must be seen.
# SPDX-License-Identifier: MIT
set -u
stress=${1:-$PRAIRIE_TEST_BIN/stress}
failed=0

# kind of sabotage, words of the message that must name it, more options
expect_alarm() {
    said=$(LD_PRELOAD=${PRAIRIE_LIBRARY:-} "$stress" --seconds 20 --seed 3 --sabotage "$1" ${3:-} \
           2>&1 >/dev/null)
    status=$?
    if [ $status -eq 1 ] && printf '%s' "$said" | grep -q "VIOLATION: .*$2"; then
        echo "seen: $1"
    else
        echo "NOT SEEN: $1, exit $status, said: $said"
        failed=1
    fi
}

expect_alarm overlap 'overlaps a live block'
expect_alarm scribble 'while live: .*lost its contents'
expect_alarm dirty 'from calloc is not zero'
expect_alarm misalign 'is not aligned to'
expect_alarm forget 'after realloc: .*lost its contents'
expect_alarm errno 'changed errno'
expect_alarm refuse 'was refused'
expect_alarm leak 'what is held grew by' '--seconds 8 --drift'
exit $failed
