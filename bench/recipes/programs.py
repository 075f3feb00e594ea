"""programs.py - the programs of the recipes: what they need in their folder, and what is asked of them.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

FILES = Path(__file__).resolve().parent / "files"
CLIENTS = 4


class Failure(Exception):
    """What a recipe promises is not so."""


def ran(*words, text=None, folder=None, patience_s=100):
    """What a command says. Failure: it failed."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, cwd=folder,
                          timeout=patience_s)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def version(program):
    """The program's name and version, from the first words of what it says about itself."""
    done = subprocess.run(program.version, capture_output=True, text=True, check=False)
    number = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return f"{program.process} {number[0]}"


def replies(wanted, ask, *words):
    """Whether a server that may not be there yet says so."""
    try:
        return ask(*words) == wanted
    except Failure:
        return False


class Web:
    """A web server that answers each request alike."""

    def __init__(self, process, needs, files, version, requests):
        self.process = process      # name of its process, as its command line shows it
        self.needs = needs          # programs
        self.files = files          # copied into the folder of the run
        self.version = version      # a command that tells it
        self.requests = requests    # how many a measured run makes

    def prepare(self, folder):
        for name in self.files:
            shutil.copy(FILES / name, folder)

    @staticmethod
    def answer(port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as response:
            return response.read()

    def is_ready(self, _folder, port):
        try:
            return bool(self.answer(port))
        except OSError:
            return False

    def work(self, _folder, port, share):
        """Asks the server as often as a measured run does, or a share of that. The answer's checksum."""
        said = ran("ab", "-q", "-n", str(int(self.requests * share)), "-c", str(CLIENTS), f"http://127.0.0.1:{port}/")
        if not re.search(r"Failed requests: +0\n", said) or "Non-2xx" in said:
            raise Failure(said)
        return hashlib.sha256(self.answer(port)).hexdigest()


class Java(Web):
    def prepare(self, folder):
        super().prepare(folder)
        ran("javac", "Server.java", folder=folder)


FILL_REDIS = "for i = 1, tonumber(ARGV[1]) do redis.call('set', 'filled:' .. i, string.rep('x', i % 200)) end"


class Redis:
    process = "redis-server"
    needs = ("redis-cli", "redis-benchmark", "redis-check-rdb")
    version = ("redis-cli", "--version")

    def prepare(self, folder):
        shutil.copy(FILES / "redis.conf", folder)

    @staticmethod
    def ask(folder, *words):
        return ran("redis-cli", "-s", folder / "redis.sock", *words)

    def is_ready(self, folder, _port):
        return replies("PONG\n", self.ask, folder, "ping")

    def load(self, folder, *words):
        ran("redis-benchmark", "-s", folder / "redis.sock", "-q", "-c", "20", "-P", "16", *words)

    def work(self, folder, _port, share):
        # So many rounds of each key that none is left out by chance; whole pipelines for each of the 20 clients.
        count = 320 * int(1500 * share)
        self.ask(folder, "eval", FILL_REDIS, "0", str(int(200_000 * share)))
        self.load(folder, "-n", str(count), "-r", str(count // 50), "-d", "120", "-t", "set,get")
        self.load(folder, "-n", str(320 * int(160 * share)), "-d", "40", "-t", "lpush,lrange_100")
        return self.ask(folder, "dbsize") + self.ask(folder, "llen", "mylist")


QUERY_CLICKHOUSE = """select k, uniqExact(text), any(length(text)), max(arrayElement(some, 1)) from
    (select number % 20000 k, toString(number * 7919) text, splitByChar('9', toString(number)) some
     from system.numbers limit ROWS) group by k order by k limit 50 format TSV"""


class ClickHouse:
    rest_s = 11         # after the work, until what it holds at rest is told: longer than dirty_decay_ms
    process = "clickhouse-server"
    needs = ("clickhouse-server", "clickhouse-client")
    version = ("clickhouse-client", "--version")

    def prepare(self, folder):
        for name in ("clickhouse.xml", "users.xml"):
            shutil.copy(FILES / name, folder)
        for name in ("data", "tmp"):
            (folder / name).mkdir()

    @staticmethod
    def ask(port, query):
        return ran("clickhouse-client", "--host", "127.0.0.1", "--port", str(port), "-q", query)

    def is_ready(self, _folder, port):
        return replies("1\n", self.ask, port, "select 1")

    def work(self, _folder, port, share):
        answers = [self.ask(port, QUERY_CLICKHOUSE.replace("ROWS", str(int(2_000_000 * share)))) for _ in range(3)]
        return hashlib.sha256("".join(answers).encode()).hexdigest()


QUERY_MARIADB = """create database if not exists shop; use shop; drop table if exists orders, goods;
create table orders(id int primary key auto_increment, word varchar(80), amount decimal(12,2), body text, key(word));
insert into orders(word, amount, body) select md5(seq), seq * 1.25, repeat(md5(seq), 8) from seq_1_to_ROWS;
create table goods(key(word)) engine=aria as select seq id, md5(seq) word, repeat(md5(seq), 8) body from seq_1_to_ROWS;
select count(*), sum(amount) from orders join goods using(word) where orders.id % 3 = 0;
select left(word, 2) first, count(*), group_concat(right(body, 9) order by id limit 3) from orders group by first
    order by first limit 9;
select md5(json_arrayagg(word)) from (select word from orders order by body limit 9000) some;
update orders set word = reverse(word) where id % 5 = 0; delete from orders where id % 7 = 0;
checksum table orders, goods;
"""


class MariaDB:
    process = "mariadbd"
    needs = ("mariadbd", "mariadb")
    version = ("mariadbd", "--version")

    def prepare(self, folder):
        (folder / "data").mkdir()
        (folder / "my.cnf").write_text(
            f"[mariadbd]\ndatadir={folder}/data\ntmpdir={folder}\nsocket={folder}/socket\npid-file={folder}/pid\n"
            "skip-networking\nskip-grant-tables\ninnodb-buffer-pool-size=32M\ninnodb-log-file-size=8M\n"
            f"innodb-use-native-aio=0\ninnodb-flush-log-at-trx-commit=0\nuser={os.environ.get('USER') or 'root'}\n"
            f"[client]\nsocket={folder}/socket\n")

    @staticmethod
    def ask(folder, query):
        return ran("mariadb", f"--defaults-file={folder}/my.cnf", "--skip-column-names", text=query)

    def is_ready(self, folder, _port):
        return replies("1\n", self.ask, folder, "select 1")

    def work(self, folder, _port, share):
        return "".join(self.ask(folder, QUERY_MARIADB.replace("ROWS", str(int(20_000 * share)))) for _ in range(3))


PROGRAMS = {
    "redis": Redis(),
    "gunicorn": Web("gunicorn", ("gunicorn", "ab"), ("app.py",), ("gunicorn", "--version"), 1200),
    "puma": Web("puma", ("puma", "ab"), ("config.ru",), ("puma", "--version"), 600),
    "node": Web("node", ("node", "ab"), ("server.js",), ("node", "--version"), 700),
    "java": Java("java", ("java", "javac", "ab"), ("Server.java",), ("java", "-version"), 1000),
    "mariadb": MariaDB(),
    "clickhouse": ClickHouse(),
}


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(what)
        time.sleep(0.05)
