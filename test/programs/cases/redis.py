"""redis-server: filled, driven by redis-benchmark, saved, started anew; its data stay the same."""
# SPDX-License-Identifier: MIT

import contextlib
import random
import socket
import time
from pathlib import Path

from cases import text
from cases.case import Case
from stage import Failure

PORT_TRIES = 5
START_S = 20          # how long a server may take to answer, in seconds
MIX = "set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"


def c_library():
    """Debian's redis is linked with jemalloc: its C library's play needs a preload, too."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.split(maxsplit=5)[-1]
        if Path(path).name.startswith("libc.so.6"):
            return path
    raise Failure("the C library is not among the mappings of this process")


class Redis(Case):
    name = "redis"
    packages = ("redis-tools",)
    programs = ("redis-check-rdb", "redis-benchmark", "redis-cli")
    sources = ("cases/text.py",)

    @property
    def c_library(self):
        return c_library()

    def prepare(self, inputs, quick, work):
        """Commands as redis-cli --pipe takes them, of every type of value, and a name for the
        server: its program is in the package of tools, which starts no service."""
        source = random.Random(14)
        vocabulary = text.words(source)
        with open(inputs / "commands", "wb") as file:
            for number in range(30_000 if quick else 500_000):
                for words in commands(source, vocabulary, number):
                    file.write(encoded(words))
        (inputs / "redis-server").symlink_to("/usr/bin/redis-check-rdb")

    def play(self, on):
        server = Server(on)
        server.begin()
        try:
            on.tool(["redis-cli", "-p", str(server.port), "--pipe"], stdin=on.inputs / "commands")
            on.note("keys", server.ask("DBSIZE"))
            on.note("digest of the commands' data", server.ask("DEBUG", "DIGEST"))
            server.require_served()
            requests = "6000" if on.quick else "400000"
            on.tool(["redis-benchmark", "-p", str(server.port), "-n", requests, "-r", "20000",
                     "-c", "20", "-P", "16", "-d", "100", "-t", MIX, "-q"])
            before = server.ask("DEBUG", "DIGEST")
            on.require(server.ask("DEBUG", "RELOAD") == "OK", "DEBUG RELOAD failed")
            server.require_digest(before, "a reload in place")
            save_in_child(on, server)
            on.require(server.ask("SAVE") == "OK", "SAVE failed")
            server.end()

            server.begin()
            server.require_digest(before, "a restart")
            on.note("answer to a flush", server.ask("FLUSHALL", "ASYNC"))
            on.note("keys left", server.ask("DBSIZE"))
            server.end()
        finally:
            server.running.kill()

    def proof_command(self, inputs):
        return [inputs / "redis-server", "--version"]


def save_in_child(on, server):
    """BGSAVE forks while clients write: parent and child share a heap that both go on using."""
    on.require(str(server.ask("BGSAVE")).startswith("Background"), "BGSAVE did not start")
    on.tool(["redis-benchmark", "-p", str(server.port), "-n", "2000", "-r", "20000", "-P", "16",
             "-t", "get", "-q"])
    until = time.monotonic() + on.timeout_s
    while "rdb_bgsave_in_progress:1" in server.ask("INFO", "persistence"):
        on.require(time.monotonic() < until, "BGSAVE does not end")
        time.sleep(0.05)
    on.require("rdb_last_bgsave_status:ok" in server.ask("INFO", "persistence"), "BGSAVE failed")


def commands(source, vocabulary, number):
    """The commands of one round. Keys repeat, so that values grow, change type size and go."""
    key = f"{source.choice(vocabulary)}:{source.randrange(4000)}"
    values = source.choices(vocabulary, k=source.randint(1, 6))
    yield ["SET", f"s:{key}", " ".join(values) * source.randint(1, 12)]
    yield ["APPEND", f"s:{key}", values[0]]
    kind = number % 5
    if kind == 0:
        yield ["RPUSH", f"l:{key[:3]}", *values]
    elif kind == 1:
        yield ["HSET", f"h:{key[:2]}", values[0], str(number), key, values[-1]]
    elif kind == 2:
        yield ["ZADD", f"z:{key[:2]}", str(source.randrange(10**6)), key]
    elif kind == 3:
        yield ["SADD", f"t:{key[:2]}", *values, str(number)]
    else:
        yield ["DEL", f"s:{source.choice(vocabulary)}:{source.randrange(4000)}", f"l:{key[:3]}"]
    if number % 50 == 0:
        yield ["XADD", "stream", f"{number + 1}-1", "word", values[0]]


def encoded(words):
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in map(str.encode, words)]
    return b"".join(parts)


class Server:
    """A redis-server on a free port of the loopback address, and one connection to it."""

    def __init__(self, on):
        self.on, self.port, self.running, self.connection = on, 0, None, None

    def begin(self):
        for _ in range(PORT_TRIES):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            self.running = self.on.start(
                [self.on.inputs / "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                 "--save", "", "--dir", self.on.folder, "--enable-debug-command", "local",
                 "--daemonize", "no", "--logfile", ""])
            if self.answers():
                return
            if b"Address already in use" not in self.running.out.read_bytes():
                break
        last = self.running.out.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        last += self.running.err.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        raise Failure("redis-server does not answer\n" + "\n".join(f"    {line}" for line in last))

    def answers(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.running.process.poll() is None:
            with contextlib.suppress(OSError):
                self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=1)
                self.connection.settimeout(self.on.timeout_s)
                self.stream = self.connection.makefile("rb")
                while self.ask("PING") != "PONG":     # it answers LOADING while it reads its file
                    time.sleep(0.02)
                return True
            time.sleep(0.02)
        return False

    def ask(self, *words):
        """One command; simple answers only: a status, an error, a number or a string."""
        self.connection.sendall(encoded(words))
        line = self.stream.readline().decode("utf-8", "replace").rstrip()
        if line[:1] == "$" and line != "$-1":
            return self.stream.read(int(line[1:]) + 2)[:-2].decode("utf-8", "replace")
        if not line:
            raise Failure(f"redis-server closed the connection at {words[0]}")
        return line[1:]

    def require_digest(self, expected, what):
        found = self.ask("DEBUG", "DIGEST")
        self.on.require(found == expected, f"DEBUG DIGEST is {found} after {what}, not {expected}")

    def require_served(self):
        """jemalloc is in the process, but must serve next to nothing of what redis counts.

        A library that answers jemalloc's names itself is who redis asks then, and must have served all.
        """
        info = dict(line.split(":", 1) for line in self.ask("INFO").splitlines() if ":" in line)
        maps = Path(f"/proc/{info['process_id']}/maps").read_text(encoding="utf-8")
        library = self.on.library
        mapped = any(line.endswith(str(Path(library).resolve())) for line in maps.splitlines())
        self.on.require(mapped, f"{library} is not mapped in redis-server")
        if "jemalloc" in Path(library).name:
            return
        used, told = int(info["used_memory"]), int(info["allocator_allocated"])
        if b"\0mallctl\0" in Path(library).read_bytes():
            self.on.require(told > used * 0.9, f"{library} serves {told} of {used} bytes of redis-server")
        else:
            self.on.require(told * 10 < used, f"jemalloc serves {told} of {used} bytes of redis-server")

    def end(self):
        self.connection.sendall(encoded(["SHUTDOWN", "NOSAVE"]))
        self.on.finish(self.running)
        self.connection.close()
