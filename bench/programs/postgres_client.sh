#!/bin/sh
# postgres_client.sh - drives a PostgreSQL server, prints what its tables hold, and ends it.
# SPDX-License-Identifier: MIT
#
#   postgres_client.sh MODE PER_CENT FOLDER SERVER LIBRARY
#
#   pgbench    TPC-B's transactions in two sessions
#   sessions   the same with a new session, which is a new process, for each transaction
#   queries    those of queries.sql in one session
#
# Figure: cpu, the processor time of the server and of its sessions that have ended, in hundredths
# of a second.
set -eu
mode=$1 per_cent=$2 folder=$3 server=$4 library=$5
here=$(cd "$(dirname "$0")" && pwd)
export PGHOST="$folder" PGUSER=prairie PGDATABASE=postgres

die() { echo "postgres_client.sh: $*" >&2; exit 1; }
# Unless everything is right, the server's end must not look like success.
trap '[ $? = 0 ] || kill -QUIT $server' EXIT

scaled() { n=$(($1 * per_cent / 100)); [ $n -gt 0 ] || n=1; echo $n; }
sql() { psql -AtqX -c "$1"; }
# The name in brackets may contain blanks; its own time and that of children it waited for.
cpu_ticks() { sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 + $14 + $15 }'; }
transactions() {
    count=$1
    shift
    pgbench -n "$@" -c 2 -j 1 -t "$count" --random-seed=19960708 >"$folder/report" 2>&1 ||
        die "pgbench: $(tail -n 1 "$folder/report")"
    grep -q "actually processed: $((2 * count))/$((2 * count))" "$folder/report" ||
        die "pgbench: $(grep processed "$folder/report")"
}

tries=0
until sql 'SELECT 1' >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || die "the server does not answer"
    sleep 0.02
done
[ "$library" = none ] || grep -qF "$library" "/proc/$server/maps" ||
    die "$library does not serve the server"

before=$(cpu_ticks)
case $mode in
pgbench)  transactions "$(scaled 12000)" -M prepared ;;
sessions) transactions "$(scaled 300)" -C ;;
queries)
    for turn in $(seq "$(scaled 3)"); do
        psql -AtqX -v turn="$turn" -v ON_ERROR_STOP=1 -f "$here/queries.sql" || die "a query failed"
    done
    ;;
esac
sleep 0.05                       # the server has to notice that the last connection is over
after=$(cpu_ticks)
[ -z "${PRAIRIE_FIGURES:-}" ] ||
    echo "cpu $(((after - before) * 100 / $(getconf CLK_TCK))) cs" >>"$PRAIRIE_FIGURES"

sql 'SELECT sum(abalance), count(*) FROM pgbench_accounts'
sql 'SELECT sum(bbalance), (SELECT sum(tbalance) FROM pgbench_tellers) FROM pgbench_branches'
sql 'SELECT sum(delta), count(*) FROM pgbench_history'
# The quick way to end; the server answers by exit code 0.
kill -INT "$server"
