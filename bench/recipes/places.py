"""places.py - recipes about where a program runs: what of their pages can be tried here.

SPDX-License-Identifier: MIT

attempt(look, library, folder) does what the page tells, with the library and without; it says what was tried.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import page
from programs import Failure, ran

# What only a namespace of one's own allows, and a container or a user may not have.
UNSHARE = ("unshare", "--mount", "--propagation", "private")


def missing_right():
    mounts = "mount -t tmpfs none /run && mount -t proc none /proc && mount --bind /usr /usr"
    done = subprocess.run([*UNSHARE, "--pid", "--fork", "sh", "-c", mounts], capture_output=True, check=False)
    return [] if done.returncode == 0 else ["right to mount in a namespace"]


def script(text, folder, *unshare):
    """Runs a script in a mount namespace: what it says. Failure: it failed."""
    done = subprocess.run([*UNSHARE, *unshare, "sh", "-eu", "-c", text], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=90)
    if done.returncode != 0:
        raise Failure((done.stderr + done.stdout).strip()[-600:])
    return done.stdout


class Systemd:
    """Read, not run: a manager moves every process of its control group into another, whoever they belong to."""

    needs = ("systemd-analyze",)

    def attempt(self, library, folder):
        override = page.block("systemd", "Set", "ini").replace(page.LIBRARY, str(library))
        (folder / "redis-server.service").write_text("[Service]\nExecStart=/bin/true\n")
        drop_in = folder / "redis-server.service.d"
        drop_in.mkdir()
        for text, is_right in ((override, True), (override.replace("LD_PRELOAD=", "LD PRELOAD "), False)):
            (drop_in / "override.conf").write_text(text)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", "redis-server.service"], cwd=folder,
                                  env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}, capture_output=True,
                                  text=True, check=False, timeout=60)
            said = done.stdout + done.stderr
            if ("override.conf" in said) == is_right or (is_right and done.returncode != 0):
                raise Failure(f"systemd says of {text!r}: {said or 'nothing'}")
        return "the override as systemd reads it; a wrong one is told. Not run: no systemd of its own"


# A root with the system's programs, and nothing of what is in /usr/local.
ROOT = """
mkdir -p root/usr root/proc root/dev
mount --bind /usr root/usr
mount -t tmpfs none root/usr/local
mkdir -p root/usr/local/lib
for link in bin sbin lib lib64; do ln -s usr/$link root/$link; done
mount -t proc none root/proc
"""


class Docker:
    needs = ("unshare", "chroot")

    def attempt(self, library, folder):
        shutil.copy(library, folder / "libprairie.so")
        copies, sets = "", []
        for line in page.block("docker", "Set", "dockerfile").splitlines():
            word, rest = line.split(" ", 1)
            if word == "COPY":
                source, target = rest.split()
                copies += f"cp {source} root{target}\n"
            elif word == "ENV" and re.fullmatch(r"[A-Z_]+=\S+", rest):
                sets.append(rest)
            elif word != "FROM":
                raise Failure(f"what is {line}?")
        see = page.block("docker", "See").strip()
        # Process 1 of the container is a shell, which looks at itself.
        for given in (sets, []):
            program = f"exec chroot root /usr/bin/env -i PATH=/usr/bin {' '.join(given)} sh -c '{see}; true'\n"
            found = script(ROOT + copies + program, folder, "--pid", "--fork")
            if bool(found.strip()) != bool(given):
                raise Failure(f"{'not ' if given else ''}found: {found}")
            shutil.rmtree(folder / "root")
        return "the Dockerfile's lines by hand, in a root and with process numbers of its own"


class Kubernetes:
    needs = ("kubectl",)

    def attempt(self, library, folder):
        file = folder / "web.yaml"
        file.write_text(page.block("kubernetes", "Set", "yaml"))
        wanted = f"LD_PRELOAD={page.LIBRARY}"
        local = ("kubectl", "set", "env", "--local", "-f", str(file))
        if wanted not in ran(*local, "--list").splitlines():
            raise Failure("the variable is not listed")
        # The command for a Deployment that runs, on this one without the variable.
        without = ran(*local, "LD_PRELOAD-", "-o", "yaml")
        file.write_text(without)
        if wanted in ran(*local, "--list") or wanted not in page.parts("kubernetes")["Set"]:
            raise Failure("the variable cannot be taken away")
        changed = ran(*local, wanted, "-o", "yaml")
        if page.LIBRARY not in changed:
            raise Failure(changed)
        return "the file and the command as kubectl understands them, without a cluster"


class Postgres:
    needs = ("pg_createcluster", "pg_ctlcluster", "psql")
    process = "postgres"
    version = ("psql", "--version")

    def attempt(self, library, folder):
        release = max(int(path.name) for path in Path("/usr/lib/postgresql").iterdir())
        shutil.copy(library, folder / "libprairie.so")
        places = {"/etc/postgresql": f"{folder}/etc", "/var/lib/postgresql/15/main": f"{folder}/data",
                  page.LIBRARY: f"{folder}/libprairie.so", "15 main": f"{release} main", "/15/": f"/{release}/"}

        def written(part):
            text = page.block("postgres", part)
            for place, here in places.items():
                text = text.replace(place, here)
            return text

        os.environ["PG_CLUSTER_CONF_ROOT"] = f"{folder}/etc"
        shutil.chown(folder, "postgres", "postgres")
        ran("pg_createcluster", "--socketdir", str(folder), "-d", str(folder / "data"), "-l", str(folder / "log"),
            "--start-conf", "manual", str(release), "main", "--", "--auth=trust", "--no-sync")
        control = ("pg_ctlcluster", str(release), "main")
        try:
            ran(*control, "start")
            if self.sees(written("See")):
                raise Failure("found before it was set")
            ran("sh", "-eu", "-c", written("Set"))
            if not self.sees(written("See")):
                raise Failure("not found after it was set")
            port = re.search(r"^port = (\d+)", (folder / f"etc/{release}/main/postgresql.conf").read_text(), re.M)[1]
            maps = ran("psql", "-h", str(folder), "-p", port, "-U", "postgres", "-Atc",
                       "select pg_read_file('/proc/self/maps')")
            if "libprairie" not in maps:
                raise Failure("a session is not served")
        finally:
            subprocess.run([*control, "stop", "-m", "immediate"], capture_output=True, check=False)
        return "in a cluster of its own, before and after; a session is served, too"

    @staticmethod
    def sees(text):
        return subprocess.run(["sh", "-c", text], capture_output=True, check=False).returncode == 0


class Rust:
    """ripgrep with the page's line in it, beside the same without and with the crates of others."""

    needs = ("cargo", "cc", "nm")
    process = "ripgrep"
    version = (page.ROOT / "build/ripgrep/rg-system", "--version")

    def attempt(self, _library, folder):
        build = page.ROOT / "bench/ripgrep/build.sh"
        if page.block("rust", "Set", "rust") not in build.read_text():
            raise Failure(f"{build} writes other lines")
        ran(build, patience_s=1500)
        for crate, served in (("prairie", True), ("system", False), ("jemalloc", False)):
            program = page.ROOT / "build" / "ripgrep" / f"rg-{crate}"
            look = page.block("rust", "See").replace("target/release/program", str(program))
            if (subprocess.run(["sh", "-c", look], capture_output=True, check=False).returncode == 0) != served:
                raise Failure(f"'See' is wrong about {program.name}")
        return "ripgrep is built with the page's lines, and without; the look tells them apart"


PLACES = {"rust": Rust(), "systemd": Systemd(), "docker": Docker(), "kubernetes": Kubernetes(),
          "postgres": Postgres()}
