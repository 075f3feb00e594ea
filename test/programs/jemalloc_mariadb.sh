#!/usr/bin/env bash
# jemalloc_mariadb.sh - Debian's MariaDB server on the libjemalloc.so.2 that prairie builds: it asks for the allocator's
# name, as it does with jemalloc, and its tables are the same as on the C library's malloc.
# SPDX-License-Identifier: MIT
#
#   jemalloc_mariadb.sh FOLDER_OF_LIBJEMALLOC
#
# The server has a folder, a socket and no port of its own; no service is started or asked.
set -euo pipefail
folder=$1
rows=20000

# Debian's server lies where only root's PATH leads.
PATH=$PATH:/usr/sbin
for program in mariadbd mariadb; do
    command -v $program >/dev/null || {
        echo "no $program: install mariadb-server-core mariadb-client-core"
        exit 77
    }
done

server=
scratch=$(mktemp -d)
finish() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
ask() { timeout 60 mariadb --no-defaults --socket="$scratch/socket" --skip-column-names "$@"; }
fail() {
    echo "not ok: $1"
    tail -20 "$scratch/log" || true
    exit 1
}

# begin LIBRARY: a server with an empty folder; "" stands for the C library's malloc
begin() {
    rm -rf "$scratch/data"
    mkdir "$scratch/data"
    LD_PRELOAD=$1 mariadbd --no-defaults --user="$(id -un)" --datadir="$scratch/data" --tmpdir="$scratch" \
        --skip-networking --skip-grant-tables --socket="$scratch/socket" --pid-file="$scratch/pid" \
        --innodb-buffer-pool-size=32M --innodb-log-file-size=8M --innodb-use-native-aio=0 \
        >"$scratch/log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        ask -e 'select 1' >/dev/null 2>&1 && return
        kill -0 $server 2>/dev/null || fail "the server ended"
        sleep 0.1
    done
    fail "the server does not answer"
}

end() {
    ask -e shutdown
    wait $server || fail "the server ended with $?"
    server=
    grep -q 'Shutdown complete' "$scratch/log" || fail "no clean end"
}

# Two engines, an index that grows, a join, sorting, JSON, rows that go, and clients side by side.
work() {
    ask <<SQL
create database shop;
use shop;
create table orders(id int primary key auto_increment, word varchar(80), amount decimal(12,2), body text, key(word))
    engine=innodb;
create table goods(key(word)) engine=aria
    as select seq id, md5(seq) word, seq * 1.25 amount, repeat(md5(seq), 8) body from seq_1_to_$rows;
insert into orders(word, amount, body) select md5(seq), seq * 1.25, repeat(md5(seq), 8) from seq_1_to_$rows;
select count(*), sum(amount), sum(length(body)) from orders;
select count(*), sum(orders.amount) from orders join goods using(word) where orders.id % 3 = 0;
select left(word, 1) first, count(*), max(amount) from orders group by first order by first;
select md5(json_arrayagg(word)) from (select word from orders order by id limit 2000) some;
alter table orders add column extra varchar(20) default 'x', add index(extra, id);
update orders set word = reverse(word) where id % 5 = 0;
delete from orders where id % 7 = 0;
checksum table orders, goods;
SQL
    local clients=() number
    for number in 1 2 3 4; do
        ask shop -e "select count(distinct word) from (select word from goods order by rand($number) limit 9000) some" \
            >"$scratch/client.$number" &
        clients+=($!)
    done
    wait "${clients[@]}"
    cat "$scratch"/client.*
}

begin ""
work >"$scratch/expected"
end

begin "$folder/libjemalloc.so.2"
grep -q "$folder/libjemalloc" /proc/$server/maps || fail "another malloc serves"
name=$(ask -e "show variables like 'version_malloc_library'")
grep -qE '^version_malloc_library.jemalloc 5\.3\.1-0-gprairie-' <<<"$name" || fail "it says: $name"
echo "ok: $name"
work >"$scratch/answers"
diff "$scratch/expected" "$scratch/answers" || fail "other answers than on the C library's malloc"
echo "ok: the answers of the C library"
echo "ok: $(grep VmHWM /proc/$server/status)"
end
echo "ok: a clean end"
