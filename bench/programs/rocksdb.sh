#!/bin/sh
# rocksdb.sh - runs db_bench, and prints how many keys it found instead of how fast it was.
# SPDX-License-Identifier: MIT
#
#   rocksdb.sh write PER_CENT FOLDER     random writes, flushed and compacted in the background
#   rocksdb.sh setup PER_CENT FOLDER     the same, smaller, as a database to read
#   rocksdb.sh read  PER_CENT FOLDER     two threads read it through a cache of a tenth of its size
set -eu
mode=$1 per_cent=$2 folder=$3
scaled() { echo $(($1 * per_cent / 100)); }
bench() {
    db_bench --db="$folder/database" --seed=20120501 --value_size=200 --compression_type=lz4 \
        --verify_checksum=1 --write_buffer_size=4000000 --disable_wal=1 "$@" \
        >"$folder/output" 2>/dev/null
    found=$(sed -n 's/.*[^a-z]\([a-z]*\) *: .*(\(.* found\)).*/\1 \2/p
                    s/^\([a-z]*\) *: .*(\(.* found\)).*/\1 \2/p' "$folder/output")
    [ -n "$found" ] || { tail -n 1 "$folder/output" >&2; exit 1; }
    echo "$found"
}
case $mode in
write)
    bench --num="$(scaled 250000)" --benchmarks=fillrandom,overwrite,compact,readrandom \
        --reads="$(scaled 30000)"
    ;;
setup) bench --num=120000 --benchmarks=fillrandom,compact,readrandom --reads=1000 ;;
read)
    bench --num=120000 --use_existing_db=1 --readonly=1 --cache_size=1500000 --threads=2 \
        --benchmarks=readrandom,seekrandom,multireadrandom --reads="$(scaled 90000)" \
        --seek_nexts=5 --batch_size=20
    ;;
esac
