#!/bin/sh
# redis_client.sh - drives a redis-server by its socket, prints what it holds, and ends it.
# SPDX-License-Identifier: MIT
#
#   redis_client.sh MODE PER_CENT INPUT SERVER LIBRARY     (in the folder of the socket)
#
#   mix      SET, GET, LPUSH and LRANGE, 16 requests at a time
#   large    SET and GET of values of 3,000 to 700,000 bytes under the same keys
#   delete   small values, most of them deleted, then larger ones
#   kept     the same, and a rest after the deletion
#
# Figures: cpu, the server's processor time; after_delete, what is resident after the deletion.
set -eu
mode=$1 per_cent=$2 input=$3 server=$4 library=$5
rest_s=4

die() { echo "redis_client.sh: $*" >&2; exit 1; }
# Unless everything is right, the server's end must not look like success.
trap '[ $? = 0 ] || kill -9 $server' EXIT

ask() { redis-cli -s socket "$@"; }
load() { redis-benchmark -s socket -q "$@" >/dev/null || die "redis-benchmark failed"; }
fill() {
    answer=$(redis-cli -s socket --pipe <"$input/$1" | tail -n 1)
    case $answer in "errors: 0, "*) ;; *) die "redis-cli --pipe: $answer" ;; esac
}
# Whole pipelines for every client: redis-benchmark rounds what is left over by chance.
whole=320
scaled() { n=$(($1 * per_cent / 100 / whole * whole)); [ $n -gt 0 ] || n=$whole; echo $n; }
info() { ask INFO "$1" | tr -d '\r' | sed -n "s/^$2://p"; }
cpu() {
    ask INFO cpu | tr -d '\r' |
        awk -F: '/^used_cpu_(sys|user):/ { sum += $2 } END { printf "%.6f\n", sum }'
}
resident_mb() { awk '/^VmRSS:/ { printf "%.2f\n", $2 / 1024 }' "/proc/$server/status"; }
figure() { [ -z "${PRAIRIE_FIGURES:-}" ] || echo "$@" >>"$PRAIRIE_FIGURES"; }

tries=0
until [ -S socket ] && [ "$(ask PING 2>/dev/null)" = PONG ]; do
    tries=$((tries + 1))
    [ $tries -lt 400 ] || die "redis-server does not answer"
    sleep 0.02
done
grep -qF "$library" "/proc/$server/maps" || die "$library does not serve redis-server"

before=$(cpu)
case $mode in
mix)
    fill commands
    keys=$((20000 * per_cent / 100))
    load -n "$(scaled 700000)" -r $keys -c 20 -P 16 -d 120 -t set,get
    load -n "$(scaled 60000)" -r $keys -c 20 -P 16 -d 40 -t lpush,lrange_100
    ;;
large)
    for bytes in 3000 700000 25000 140000 8000 300000 60000; do
        # Many rounds of each key: that one is left out is less likely than 1 to 10^9.
        load -n 1800 -r 60 -c 4 -d $bytes -t set
        load -n "$(scaled 5000)" -r 60 -c 4 -d $bytes -t get
    done
    ;;
delete|kept)
    fill commands
    fill deletions
    [ $mode = delete ] || sleep $rest_s
    figure after_delete "$(resident_mb)" MB
    fill more
    ;;
*) die "no such mode: $mode" ;;
esac
after=$(cpu)
figure cpu "$(echo "$before $after" | awk '{ print $2 - $1 }')" s
figure resident "$(resident_mb)" MB

ask DBSIZE
ask LLEN mylist
ask DEBUG DIGEST
[ "$(info stats total_error_replies)" = 0 ] || die "the server answered with errors"
[ "$(info stats evicted_keys)" = 0 ] || die "keys were evicted"
# A signal, since a client that waits for the server's end could outlive it.
kill -TERM "$server"
