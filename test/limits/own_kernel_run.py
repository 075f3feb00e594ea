#!/usr/bin/env python3
# own_kernel_run.py - commands on a Linux kernel of their own, whose settings are nobody else's.
# SPDX-License-Identifier: MIT
"""
usage: own_kernel_run.py SETTING... -- COMMAND ARGUMENTS... [-- COMMAND ARGUMENTS...]...

The kernel is user-mode Linux (linux.uml), a program that runs for some seconds, with the files of
this machine to read, tmpfs on /run, and control groups of version 2. A SETTING is MEMORY=256M, or one
of /proc/sys, as vm.overcommit_memory=2. A COMMAND that ends in .py is started as it is, others with
PRAIRIE_LIBRARY preloaded. Each must end with 0. Exit code 77 and a reason where there is no such
kernel, or where it does not come as far as its first command; a kernel that ends later is a failure.
"""
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

SECONDS = 280
KEPT = ("PRAIRIE_LIBRARY", "PRAIRIE_TEST_BIN", "PRAIRIE_FLAVOUR", "PRAIRIE_TEST_PERCENT", "PRAIRIE_CONF")
START = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
echo; echo 'own_kernel: up'
"""


def parts(words):
    """The settings, and the commands."""
    lists = [[]]
    for word in words:
        if word == "--":
            lists.append([])
        else:
            lists[-1].append(word)
    return lists[0], lists[1:]


def script(settings, commands):
    lines = [START]
    for name in KEPT:
        if name in os.environ:
            lines.append(f"export {name}={shlex.quote(os.environ[name])}")
    for setting in settings:
        name, _, value = setting.partition("=")
        lines.append(f"echo {shlex.quote(value)} > /proc/sys/{name.replace('.', '/')}")
    for number, command in enumerate(commands):
        text = shlex.join(command)
        if not command[0].endswith(".py"):
            text = "LD_PRELOAD=$PRAIRIE_LIBRARY " + text
        lines.append(f"echo; echo '+ {' '.join(command)}'; {text} 2>&1; echo \"own_kernel: {number} ended with $?\"")
    lines.append("sync; poweroff -f || echo o > /proc/sysrq-trigger")
    return "\n".join(lines) + "\n"


def run(kernel, memory, start):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "start")
        with open(path, "w", encoding="utf-8") as file:
            file.write(start)
        os.chmod(folder, 0o755)
        os.chmod(path, 0o755)
        words = [kernel, f"mem={memory}", "rootfstype=hostfs", "rootflags=/", "ro", f"init={path}", "con=null",
                 "con0=null,fd:1", "quiet"]
        # The kernel's memory is a file there.
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, errors="replace", start_new_session=True,
                                   env={**os.environ, "TMPDIR": "/dev/shm"})
        try:
            return process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it is several processes
            return process.communicate()[0] + f"\nno end after {SECONDS} s\n"


def main():
    settings, commands = parts(sys.argv[1:])
    if not commands or not all(commands):
        print(__doc__)
        return 2
    kernel = os.environ.get("PRAIRIE_UML") or shutil.which("linux.uml")
    if kernel is None:
        print("skipped: there is no linux.uml (package user-mode-linux)")
        return 77
    memory = next((word[7:] for word in settings if word.startswith("MEMORY=")), "256M")
    said = run(kernel, memory, script([word for word in settings if not word.startswith("MEMORY=")], commands))
    print(said)
    if "own_kernel: up" not in said and "no end after" not in said:
        print("skipped: the kernel does not start here")
        return 77
    failed = [command for number, command in enumerate(commands)
              if f"own_kernel: {number} ended with 0\n" not in said.replace("\r\n", "\n")]
    for command in failed:
        print("FAILED:", " ".join(command))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
