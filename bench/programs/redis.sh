#!/bin/sh
# redis.sh - starts redis-server, which takes this process, and a client that drives it.
# SPDX-License-Identifier: MIT
#
#   redis.sh MODE PER_CENT DIR INPUT     modes as in redis_client.sh
#
# The allocator under test serves the server only. Debian links redis-server with libjemalloc; a
# preloaded library still answers first. When nothing is preloaded, the C library itself is, since
# jemalloc would serve otherwise.
set -eu
mode=$1 per_cent=$2 dir=$3 input=$4
client=$(cd "$(dirname "$0")" && pwd)/redis_client.sh

if [ -z "${LD_PRELOAD:-}" ]; then
    LD_PRELOAD=$(sed -n 's|.* \(/.*/libc\.so\.6\)$|\1|p' /proc/self/maps | head -n 1)
    export LD_PRELOAD
fi
cd "$dir"
served_by=$(readlink -f "$LD_PRELOAD")
env -u LD_PRELOAD sh "$client" "$mode" "$per_cent" "$input" $$ "$served_by" &

exec redis-server --port 0 --unixsocket socket --save '' --appendonly no --daemonize no \
    --logfile /dev/null --enable-debug-command local --proto-max-bulk-len 64mb --dir "$dir"
