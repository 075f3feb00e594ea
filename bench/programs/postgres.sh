#!/bin/sh
# postgres.sh - starts a PostgreSQL server, which takes this process, and a client that drives it.
# SPDX-License-Identifier: MIT
#
#   postgres.sh setup INPUT                          makes a small cluster with pgbench's tables
#   postgres.sh MODE PER_CENT INPUT DIR              runs on a copy of it; modes: postgres_client.sh
#
# The allocator under test serves the server only. PostgreSQL refuses to run as root, who becomes
# the user `postgres`, or `nobody`, with the right to read what is root's: the folders of a run and
# the library are.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
PATH=${bin:+$bin:}$PATH
[ "$(id -u)" = 0 ] && is_root=true || is_root=false
if $is_root; then user=$(id -un postgres 2>/dev/null || echo nobody); else user=$(id -un); fi

own() { if $is_root; then chown -R "$user" "$1"; fi; chmod 700 "$1"; }
as_user() {
    if $is_root; then
        set -- setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
            --inh-caps +dac_override --ambient-caps +dac_override "$@"
    fi
    exec "$@"
}

case $1 in
setup)
    data=$2/data
    mkdir "$data"
    own "$data"
    (as_user initdb -D "$data" -U prairie --no-sync --auth=trust --locale=C -E UTF8 >/dev/null)
    cat >>"$data/postgresql.conf" <<'SETTINGS'
listen_addresses = ''
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
shared_buffers = 24MB
work_mem = 16MB
max_parallel_workers_per_gather = 0
jit = off
log_min_messages = fatal
SETTINGS
    (as_user "$0" fill "$data" "$2")
    ;;
fill)
    trap 'pg_ctl -D "$2" stop -m fast -s >/dev/null 2>&1' EXIT
    pg_ctl -D "$2" -o "-k '$3'" -w -s -l /dev/null start
    pgbench -h "$3" -U prairie -i -q -s 1 postgres >/dev/null 2>&1
    psql -h "$3" -U prairie -q -d postgres -f "$here/tables.sql"
    ;;
pgbench|sessions|queries)
    mode=$1 per_cent=$2 input=$3 dir=$4
    cp -a "$input/data" "$dir/data"
    served_by=none
    [ -z "${LD_PRELOAD:-}" ] || served_by=$(readlink -f "$LD_PRELOAD")
    env -u LD_PRELOAD sh "$here/postgres_client.sh" "$mode" "$per_cent" "$dir" $$ "$served_by" &
    as_user postgres -D "$dir/data" -k "$dir"
    ;;
esac
