#!/bin/sh
# profile.sh - starts the program `profile` in a folder of its own; PRAIRIE_LIBRARY serves it.
# SPDX-License-Identifier: MIT
set -eu
program=$PRAIRIE_TEST_BIN/story_profile
if [ "$1" = tell ]; then exec "$(dirname "$0")/profile.py" "$program" "$PRAIRIE_LIBRARY"; fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
conf=prof:true,lg_prof_sample:10
if [ "$1" = hooks ]; then conf=prof:true,lg_prof_sample:0,prof_bt_max:20; fi
if [ "$1" = peaks ]; then conf=prof:true,prof_gdump:true,prof_prefix:$folder/x; fi
if [ "$1" = controls ]; then conf=$conf,lg_prof_interval:20,prof_prefix:$folder/x; fi
MALLOC_CONF=$conf LD_PRELOAD=$PRAIRIE_LIBRARY "$program" "$1" "$folder"
if [ "$1" != controls ]; then exit 0; fi
# Nothing was taken between the reset and this dump.
test -s "$folder/quiet.heap"
if grep -q '^@' "$folder/quiet.heap"; then echo "samples while prof.active was false"; exit 1; fi
gzip -dc "$folder/named.pb.gz" | grep -q "a name of mine"
# Functions of the program may have any name: viewers are told to drop none.
if gzip -dc "$folder/named.pb.gz" | grep -q 'take_\.\*'; then echo "frames that viewers drop"; exit 1; fi

# Files at the end, and what leaks; who asks for that need not ask for the profile.
cd "$folder"
MALLOC_CONF=prof:true,lg_prof_sample:0,prof_final:true,prof_pprof:true LD_PRELOAD=$PRAIRIE_LIBRARY ls / >ls.out
gzip -t jeprof.*.0.f.pb.gz
code=0
MALLOC_CONF=lg_prof_sample:0,prof_leak:true,prof_leak_error:true LD_PRELOAD=$PRAIRIE_LIBRARY \
    ls / >ls.out 2>ls.err || code=$?
test $code = 1
grep -q "Leak approximation summary: ~[0-9]* bytes, ~[0-9]* objects, >= [0-9]* contexts" ls.err

# Who asks for leaks alone gets no dumps on the way.
MALLOC_CONF=lg_prof_sample:0,prof_leak:true,prof_gdump:true,lg_prof_interval:12,prof_prefix:leaks LD_PRELOAD=$PRAIRIE_LIBRARY \
    ls -l / >ls.out 2>ls.err
ls leaks.*.f.heap >/dev/null
test "$(ls leaks.*)" = "$(ls leaks.*.f.heap)"

# The code at the end is asked for by itself; and without a prefix there is no file, whoever wants one.
mkdir "$folder/no_files"
cd "$folder/no_files"
code=0
MALLOC_CONF=prof:true,lg_prof_sample:0,prof_leak_error:true,prof_final:true,prof_prefix: LD_PRELOAD=$PRAIRIE_LIBRARY \
    ls / >/dev/null 2>../ls.err || code=$?
test $code = 1
grep -q "Leak approximation summary" ../ls.err
MALLOC_CONF=prof:true,lg_prof_sample:0,lg_prof_interval:12,prof_gdump:true,prof_prefix: LD_PRELOAD=$PRAIRIE_LIBRARY ls -l / >/dev/null
test -z "$(ls -A)"
