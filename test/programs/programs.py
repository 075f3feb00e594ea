#!/usr/bin/env python3
"""Runs real programs with the C library's malloc and with prairie, and requires the same output.

examples:
  test/programs/programs.py                         every program, full size, the plain library
  test/programs/programs.py --quick                 small inputs, one run each
  test/programs/programs.py --only redis,python3 --library build/check/libprairie.so
  test/programs/programs.py --quick --library build/libprairie.so --library build/check/libprairie.so
  test/programs/programs.py --list

A program passes when all facts about its output (checksums of files, results of single tests,
answers) are the same, nothing fails, and the loader's report proves that the library answered
malloc. Time is cpu time of all its processes; peak is the largest process. Ratios are to the C
library's.
"""
# SPDX-License-Identifier: MIT

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import measure
import proof
import table
from cases import TABLE
from cases.case import Missing
from measure import ROOT, Trouble
from stage import Failure, Stage

SKIPPED = 77                  # the exit code when nothing was played, for ctest
C_LIBRARY, PRAIRIE = "C library", "prairie"
ORDER = {True: (C_LIBRARY, PRAIRIE), False: (C_LIBRARY, PRAIRIE, PRAIRIE, C_LIBRARY)}

# A heap that grows without bound must not pass, whatever the output is. Real differences are far
# smaller; the table shows them.
PEAK_RATIO_MAX, PEAK_SLACK_KB = 3.0, 64 * 1024
PEAK_RATIO_MARKED = 1.05


def main():
    options = parse()
    by_name = {case.name: case for case in TABLE}
    if options.list:
        print("\n".join(f"{name:10} {sys.modules[type(case).__module__].__doc__.splitlines()[0]}"
                        for name, case in by_name.items()))
        return 0
    names = options.only.split(",") if options.only else list(by_name)
    if unknown := [name for name in names if name not in by_name]:
        raise Trouble(f"no such program: {', '.join(unknown)}; --list names them")
    default = os.environ.get("PRAIRIE_LIBRARY", ROOT / "build" / "libprairie.so")
    results, known = [], {}
    for library in options.library or [default]:
        house = House(options, library, known)
        found = []
        for name in names:
            found.append(house.try_case(by_name[name]))
            print(found[-1].line(), file=sys.stderr, flush=True)
        report(found, house)
        results += found
    if any(result.verdict == "FAIL" for result in results):
        return 1
    return SKIPPED if all(result.verdict == "skipped" for result in results) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="FILE", action="append",
                        help="the library to preload (default: $PRAIRIE_LIBRARY, or the built one);"
                             " with --quick, several are compared with one run on the C library")
    parser.add_argument("--quick", action="store_true", help="small inputs and one run of each")
    parser.add_argument("--only", metavar="NAMES", help="some programs, separated by commas")
    parser.add_argument("--work", metavar="FOLDER", type=Path, default=ROOT / "build" / "programs",
                        help="where inputs are kept and programs run (build/programs)")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=900.0,
                        help="for each command of a program (900)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs")
    parser.add_argument("--list", action="store_true", help="name the programs, and stop")
    return parser.parse_args()


class Result:
    def __init__(self, case):
        self.case, self.verdict, self.lines = case, "FAIL", []
        self.uses = {C_LIBRARY: [], PRAIRIE: []}
        self.facts = 0

    def median(self, side, field):
        return statistics.median(getattr(use, field) for use in self.uses[side])

    def line(self):
        return f"{self.case.name}: {self.verdict}" + "".join(f"\n  {line}" for line in self.lines)

    def row(self):
        if not self.uses[PRAIRIE]:
            return [self.case.name, self.verdict] + ["-"] * 7
        cpu = [self.median(side, "cpu_s") for side in (C_LIBRARY, PRAIRIE)]
        peak = [self.median(side, "peak_kb") for side in (C_LIBRARY, PRAIRIE)]
        mark = " !" if peak[1] > PEAK_RATIO_MARKED * peak[0] else "  "
        return [self.case.name, self.verdict, f"{self.facts}",
                table.significant(cpu[0]), table.significant(cpu[1]), ratio(*cpu),
                table.mebibytes(peak[0]), table.mebibytes(peak[1]), ratio(*peak) + mark]


def ratio(old, new):
    return f"{new / old:.2f}" if old else "-"


def report(results, house):
    print(f"\n{house.size} programs, {house.library} against the C library's malloc; "
          "cpu in s, peak in MiB\n")
    head = ["program", "result", "facts", "C cpu", "cpu", "ratio", "C peak", "peak", "ratio  "]
    for line in table.lay_out([head] + [result.row() for result in results], left=(0, 1)):
        print(line)
    print()
    worse = [result.case.name for result in results if result.row()[-1].endswith("!")]
    if worse:
        print(f"! peak memory is more than {PEAK_RATIO_MARKED:.2f} times the C library's: "
              + ", ".join(worse))
    counts = {word: sum(result.verdict == word for result in results)
              for word in ("PASS", "FAIL", "skipped")}
    print(", ".join(f"{count} {word}" for word, count in counts.items() if count))


class House:
    """Where cases are played: the library, the launcher, the folders. In `known` stays what a quick
    run on the C library's malloc gave, for the next library."""

    def __init__(self, options, library, known):
        self.size = "quick" if options.quick else "full"
        self.quick, self.keep, self.timeout_s = options.quick, options.keep, options.timeout
        self.library = measure.preloadable(library)
        self.work = options.work.resolve()
        self.launcher = measure.launcher(self.work)
        self.known = known
        names = "".join(str(Path(name).resolve()) for name in options.library or [library])
        self.label = hashlib.sha256(names.encode()).hexdigest()[:8]

    def try_case(self, case):
        result = Result(case)
        folder = self.work / "runs" / f"{case.name}-{self.size}-{self.label}"
        try:
            case.require_installed()
            inputs = self.inputs_of(case)
            with measure.locked(folder.with_suffix(".lock")):
                shutil.rmtree(folder, ignore_errors=True)
                self.play_all(case, inputs, folder, result)
            result.verdict = "PASS"
        except Missing as missing:
            result.verdict = "skipped"
            result.lines.append(str(missing))
        except (Failure, Trouble, OSError, subprocess.SubprocessError) as failure:
            result.lines += str(failure).splitlines()
        if not self.keep and result.verdict != "FAIL":
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.exists():
            result.lines.append(f"the folders of the runs are in {folder}")
        return result

    def inputs_of(self, case):
        """The folder of a case's input, made when the files that shape it have changed."""
        inputs = self.work / "inputs" / f"{case.name}-{self.size}"
        shape = hashlib.sha256()
        module = sys.modules[type(case).__module__]
        for path in (module.__file__, *(case.here / name for name in case.sources)):
            shape.update(Path(path).read_bytes())
        stamp = inputs.with_suffix(".made")
        with measure.locked(inputs.with_suffix(".lock")):
            if not stamp.exists() or stamp.read_text(encoding="ascii") != shape.hexdigest():
                stamp.unlink(missing_ok=True)
                shutil.rmtree(inputs, ignore_errors=True)
                inputs.mkdir(parents=True)
                case.prepare(inputs, self.quick, self.work)
                stamp.write_text(shape.hexdigest(), encoding="ascii")
        return inputs

    def play_all(self, case, inputs, folder, result):
        self.prove(case, inputs, folder / "proof")
        facts = {}
        for index, side in enumerate(ORDER[self.quick]):
            if side == C_LIBRARY and self.quick and case.name in self.known:
                facts[side], use = self.known[case.name]
                result.uses[side].append(use)
                continue
            # Always the same folder: its name is in what programs write.
            played = self.play(case, inputs, folder / "play", side)
            result.uses[side].append(played.use)
            result.facts = len(played.facts)
            facts.setdefault(side, played.facts)
            if side == C_LIBRARY:
                self.known[case.name] = played.facts, played.use
            if played.facts != facts[side]:
                raise Failure(f"two runs with the same malloc differ ({side}):\n"
                              + differences(facts[side], played.facts))
            if self.keep:
                played.folder.rename(folder / f"{index}-{side.replace(' ', '-')}")
            else:
                shutil.rmtree(played.folder)
        if facts[PRAIRIE] != facts[C_LIBRARY]:
            raise Failure("the output differs from that with the C library's malloc:\n"
                          + differences(facts[C_LIBRARY], facts[PRAIRIE]))
        peak, limit = result.median(PRAIRIE, "peak_kb"), result.median(C_LIBRARY, "peak_kb")
        if peak > PEAK_RATIO_MAX * limit + PEAK_SLACK_KB:
            raise Failure(f"peak memory is {table.mebibytes(peak)} MiB, the C library's "
                          f"{table.mebibytes(limit)} MiB")

    def play(self, case, inputs, folder, side):
        library = self.library if side == PRAIRIE else case.c_library
        stage = Stage(launcher=self.launcher, library=library, inputs=inputs, folder=folder,
                      quick=self.quick, timeout_s=self.timeout_s)
        try:
            case.play(stage)
        except (Failure, Trouble) as failure:
            raise Failure(f"with the malloc of {side}: {failure}\n"
                          f"last command: {stage.last_command}") from failure
        if not stage.facts:
            raise Failure("the program's output gave no fact to compare")
        return stage

    def prove(self, case, inputs, folder):
        """Asks the loader who answers malloc in the program's processes."""
        stage = Stage(launcher=self.launcher, library=self.library, inputs=inputs, folder=folder,
                      quick=True, timeout_s=self.timeout_s)
        look_ups = folder / "tmp"
        try:
            running = stage.start(case.proof_command(inputs),
                                  settings={**proof.settings(look_ups), **proof.STATISTICS})
            stage.finish(running)
        except Failure as failure:
            raise Failure(f"in the short run for the proof: {failure}\n"
                          f"last command: {stage.last_command}") from failure
        found = proof.read(look_ups, self.library)
        if not found.holds():
            raise Failure(f"{self.library} does not serve {case.name}: {found.text()}")
        counted = proof.statistics(running.err.read_text(encoding="utf-8", errors="replace"))
        if counted and counted[1]["refills"] < case.refills_min:
            raise Failure(f"prairie serves next to nothing of {case.name}: "
                          f"{counted[1]['refills']} refills, expected {case.refills_min}")


def differences(expected, found, limit=8):
    lines = []
    for label in sorted(expected.keys() | found.keys()):
        one, other = expected.get(label, "missing"), found.get(label, "missing")
        if one != other:
            lines.append(f"    {label}: {str(one)[:60]} | {str(other)[:60]}")
    more = [f"    and {len(lines) - limit} more"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + more)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        print(f"programs.py: {trouble}", file=sys.stderr)
        sys.exit(trouble.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
