#!/usr/bin/env bash
# jemalloc_redis.sh - Debian's redis-server, which is linked with libjemalloc.so.2, on the one that prairie builds:
# every command that asks the allocator something.
# SPDX-License-Identifier: MIT
#
#   jemalloc_redis.sh FOLDER_OF_LIBJEMALLOC
set -euo pipefail
folder=$1

# The server is the checker of redis-tools, called by its other name; the package redis-server has only that
# link to it, and a service that nobody here wants started.
for program in redis-check-rdb redis-cli; do
    command -v $program >/dev/null || { echo "no $program: install redis-tools"; exit 77; }
done
if ! ldd "$(command -v redis-check-rdb)" | grep libjemalloc.so.2 >/dev/null; then
    echo "this redis-server is not linked with libjemalloc.so.2"
    exit 77
fi

scratch=$(mktemp -d)
ln -s "$(command -v redis-check-rdb)" "$scratch/redis-server"
LD_LIBRARY_PATH=$folder "$scratch/redis-server" --port 0 --unixsocket "$scratch/socket" --save '' \
    --dir "$scratch" --enable-debug-command yes >"$scratch/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$scratch"' EXIT
ask() { redis-cli -s "$scratch/socket" "$@" | tr -d '\r'; }

for _ in $(seq 100); do
    [ "$(ask ping 2>/dev/null)" = PONG ] && break
    sleep 0.1
done
grep -q "$folder/libjemalloc" /proc/$server/maps || { echo "another libjemalloc serves"; exit 1; }

failed=0
# expect NAME PATTERN COMMAND...: some line of the answer matches the whole pattern
expect() {
    local name=$1 pattern=$2 answer
    shift 2
    answer=$(ask "$@")
    if grep -qxE "$pattern" <<<"$answer"; then
        echo "ok: $name"
    else
        echo "not ok: $name: wanted a line '$pattern', got:"
        head -5 <<<"$answer"
        failed=1
    fi
}
number() { ask info memory | awk -F: -v key="$1" '$1 == key { print $2 }'; }

expect "filled" OK debug populate 50000 key 200
expect "info memory names the allocator" 'mem_allocator:jemalloc-5\..*' info memory
expect "memory doctor" '.*(Sam|issue).*' memory doctor
expect "memory stats" 'allocator\.resident' memory stats
expect "memory purge" OK memory purge
expect "memory malloc-stats" '___ Begin jemalloc statistics ___' memory malloc-stats
expect "debug mallctl reads" '[1-9][0-9]*' debug mallctl stats.allocated
expect "debug mallctl reads text" '5\.3\..*' debug mallctl-str version
expect "debug mallctl writes" '10000' debug mallctl arena.0.dirty_decay_ms 5000
expect "debug mallctl has written" '5000' debug mallctl arena.0.dirty_decay_ms
expect "debug mallctl refuses" 'ERR No such file or directory' debug mallctl no.such.name
expect "a script" '50000' eval "local n = 0; for i = 0, 49999 do if redis.call('exists', 'key:' .. i) == 1 then n = n + 1 end end; return n" 0
expect "background thread switched" OK config set jemalloc-bg-thread no
expect "and on" OK config set jemalloc-bg-thread yes

allocated=$(number allocator_allocated)
active=$(number allocator_active)
resident=$(number allocator_resident)
used=$(number used_memory)
if ! [ "$used" -le "$allocated" ] || ! [ "$allocated" -le "$active" ] || ! [ "$active" -le "$resident" ]; then
    echo "not ok: used $used, allocated $allocated, active $active, resident $resident"
    failed=1
fi
expect "emptied" OK flushall
expect "purged" OK memory purge
# Redis asks ten times a second, and answers with what it knows.
for _ in $(seq 50); do
    [ "$(number allocator_resident)" -gt $((resident / 2)) ] || break
    sleep 0.1
done
if [ "$(number allocator_resident)" -gt $((resident / 2)) ]; then
    echo "not ok: resident $resident before, $(number allocator_resident) when empty"
    failed=1
fi
exit $failed
