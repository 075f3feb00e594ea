"""What a row of the table of programs must answer."""
# SPDX-License-Identifier: MIT

import shutil
from pathlib import Path

import stage


class Missing(Exception):
    """A program is not installed, or cannot be had: the case is skipped by name."""


class Case:
    """One program, its input, its commands. Everything under `inputs` comes from `prepare`, which
    is deterministic; `play` runs the commands and notes what must not depend on malloc."""

    name = ""
    packages = ()        # Debian packages that bring the programs
    programs = ()        # what must be in PATH
    sources = ()         # further files of this folder which shape the input
    here = Path(__file__).resolve().parent.parent   # test/programs
    c_library = None     # preloaded for the C library's plays where another malloc is linked in

    def require_installed(self):
        for program in self.programs:
            if not shutil.which(program, path=stage.PATH):
                raise Missing(f"{program} is not installed: "
                              f"apt-get install {' '.join(self.packages)}")

    def prepare(self, inputs: Path, quick: bool, work: Path):
        """Makes the input. `work` is kept between preparations, for what takes long to build."""

    def play(self, on: "stage.Stage"):
        raise NotImplementedError

    refills_min = 1      # of thread caches, which prairie's statistics count in the proof's command

    def proof_command(self, inputs: Path):
        """A short command of the same programs, to ask the loader who answers malloc in them."""
        raise NotImplementedError
