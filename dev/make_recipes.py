#!/usr/bin/env python3
# make_recipes.py - writes what the recipes gained into their pages, between their marks.
# SPDX-License-Identifier: MIT
"""Usage: make_recipes.py [--check]
       make_recipes.py --take NAME COMPARE_JSON    keep what prairie compare has measured for a recipe

The gain of a page, docs/recipes/NAME.md, stands between the marks <!-- recipe: NAME --> and <!-- -->, and
comes from bench/results/recipes/NAME.json. For the page rust that is a table, of bench/ripgrep/ripgrep.toml.
With --check nothing is written, and the exit code is 1 when a page is not current. A page that lacks one of
its four parts, or is not in the list of pages, ends with 1 in any case.
"""
import json
import re
import statistics
import sys
from datetime import date
from pathlib import Path

from written import is_current

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "recipes"
RESULTS = ROOT / "bench" / "results" / "recipes"
GAIN = re.compile(r"(<!-- recipe: ([\w-]+) -->)(.*?)(<!-- -->)", re.S)
PARTS = ("Set", "See", "Gain", "Beware")
BEFORE, SUBJECT = "glibc", "prairie"
DIGITS = 3
FIGURES = {"cpu": "processor time", "peak": "peak memory", "rest": "memory eleven seconds after the work"}
ALWAYS = ("cpu", "peak")


def figure_of(run, figure):
    """A figure of the server; memory that it does not tell is that of all processes."""
    if figure == "peak" and figure not in run["figures"]:
        return run["peak_bytes"]
    return run["figures"][figure]["value"]


def rounds_of(compared, name, allocator):
    """The figures of one allocator's runs, by round; the warm-up is none."""
    return {run["round"]: {figure: figure_of(run, figure) for figure in FIGURES
                           if figure in ALWAYS or figure in run["figures"]}
            for run in compared["runs"]
            if run["workload"] == name and run["allocator"] == allocator and run.get("round")
            and run["outcome"] == "right"}


def is_variant(name):
    return name.startswith(SUBJECT + "-")


def ratios(of, to):
    """Of what runs of one round have in common: the median of their ratios, the lowest and the highest."""
    both = sorted(of.keys() & to.keys())
    result = {"rounds": len(both)}
    for figure in next((of[number].keys() for number in both), ()):
        each = [of[number][figure] / to[number][figure] for number in both]
        result[figure] = [round(value, DIGITS) for value in (statistics.median(each), min(each), max(each))]
    return result


def version_of(name):
    sys.path.insert(0, str(ROOT / "bench" / "recipes"))
    from places import PLACES  # pylint: disable=import-outside-toplevel
    from programs import PROGRAMS, version  # pylint: disable=import-outside-toplevel
    return version({**PROGRAMS, **PLACES}[name])


def crates_of(compared):
    """ripgrep.toml: of each workload and crate, prairie's medians by the other's, with their intervals."""
    cells = {(cell["workload"], cell["allocator"]): cell for cell in compared["cells"]}
    result = {}
    for (workload, allocator), cell in cells.items():
        if allocator == "crate-prairie":
            continue
        if cell.get("failure") or cells[workload, "crate-prairie"].get("failure"):
            raise KeyError(workload)
        # By the subject is above 1 where prairie is better; here below.
        by = {figure: cell[figure]["by_subject"] for figure in ("time", "peak")}
        result.setdefault(workload, {})[allocator] = {
            figure: [round(1 / row[end], DIGITS) for end in ("value", "high", "low")] for figure, row in by.items()}
    return result


def take_crates(path):
    compared = json.loads(Path(path).read_text())
    result = {"schema": 1, "name": "rust", "date": compared["date"][:10], "version": version_of("rust"),
              "what": {row["name"]: row["what"] for row in compared["workloads"]},
              "rounds": compared["workloads"][0]["rounds"], "machine": machine_of(compared),
              "prairie_by": crates_of(compared)}
    (RESULTS / "rust.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


def machine_of(compared):
    return {key: compared["machine"][key] for key in ("architecture", "cores", "cpu", "kernel")}


def take(name, path):
    compared = json.loads(Path(path).read_text())
    mine = rounds_of(compared, name, SUBJECT)
    names = [row["name"] for row in compared["allocators"] if row["name"] != SUBJECT]
    runs = {other: rounds_of(compared, name, other) for other in names}
    others = {other: ratios(mine, runs[other]) for other in names if not is_variant(other) and runs[other]}
    variants = {other: ratios(runs[other], runs[BEFORE]) for other in names if is_variant(other) and runs[other]}
    if not mine or not others.get(BEFORE, {}).get("rounds"):
        print(f"make_recipes.py: {path} has no figures of {name}", file=sys.stderr)
        return 1
    workload = next(row for row in compared["workloads"] if row["name"] == name)
    result = {"schema": 1, "name": name, "date": compared["date"][:10], "version": version_of(name),
              "what": workload["what"],
              "machine": machine_of(compared),
              "allocators": {row["name"]: row["label"] for row in compared["allocators"]}, "prairie_by": others,
              "variants_by_before": variants}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


def said(values):
    """A ratio with its range, and whether it may be chance."""
    median, low, high = values
    chance = "may be chance, " if low <= 1 <= high else ""
    return f"{median:.2f} ({chance}{low:.2f} to {high:.2f})"


def all_of(figures):
    return ", ".join(f"{word} {said(figures[figure])}" for figure, word in FIGURES.items() if figure in figures)


def processor(name):
    return re.sub(r"\((R|TM)\)| Processor$| CPU.*$", "", name)


CRATES = {"crate-system": "the system's malloc", "crate-mimalloc": "mimalloc's crate",
          "crate-jemalloc": "jemalloc's crate (tikv)"}


def gain_of_crates(result):
    """A table: a column for each crate, a row for each workload."""
    lines = [f"{result['version']} from crates.io, built with prairie's crate, by the same with others: "
             "time, then peak memory; below 1 is a gain, `≈` may be chance.", "",
             "| | " + " | ".join(CRATES.values()) + " |", "|---|" + "---|" * len(CRATES)]
    for workload, row in result["prairie_by"].items():
        cells = (", ".join(short(row[crate][figure]) for figure in ("time", "peak")) for crate in CRATES)
        lines.append(f"| {result['what'][workload]} | {' | '.join(cells)} |")
    lines += ["", f"The output is the same. Medians of {result['rounds']} rounds in turns. {where(result)}"]
    return "\n".join(lines)


def short(values):
    value, low, high = values
    return f"{'≈ ' if low <= 1 <= high else ''}{value:.2f}"


def where(result):
    day, machine = date.fromisoformat(result["date"]), result["machine"]
    return f"{machine['cores']} noisy cores ({processor(machine['cpu'])}), {day.day} {day:%B %Y}."


def gain(result):
    if result["name"] == "rust":
        return gain_of_crates(result)
    by = result["prairie_by"]
    lines = [f"On prairie, relative to before: {all_of(by[BEFORE])}."]
    if by.get("jemalloc", {}).get("rounds"):
        label = result["allocators"]["jemalloc"]
        lines.append(f"Relative to {label} preloaded: {all_of(by['jemalloc'])}.")
    for name, figures in result.get("variants_by_before", {}).items():
        label = result["allocators"][name].removesuffix(result["allocators"][SUBJECT].removeprefix(SUBJECT))
        lines.append(f"With {label}, relative to before: {all_of(figures)}.")
    lines.append("Ratios of the server's figures, below 1 is a gain: "
                 f"median of {by[BEFORE]['rounds']} rounds in turns, with the lowest and the highest.")
    lines.append(f"{result['version']}: {result['what']}. {where(result)}")
    return "\n".join(lines)


def current(text):
    def written(found):
        # Lines of their own: what follows a mark on its line would not be read as Markdown.
        return f"{found[1]}\n{gain(json.loads((RESULTS / f'{found[2]}.json').read_text()))}\n{found[4]}"
    return GAIN.sub(written, text)


def faults(page, text):
    """What a page lacks."""
    found = re.findall(r"^## (.*)$", text, re.M)
    if tuple(found) != PARTS:
        yield f"wants the parts {', '.join(PARTS)}, has {', '.join(found)}"
    if any(name != page.stem for _, name, _, _ in GAIN.findall(text)):
        yield "has the figures of another recipe"
    if f"({page.name})" not in (PAGES / "README.md").read_text():
        yield "is not in the list of docs/recipes/README.md"


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--take":
        return take_crates(arguments[2]) if arguments[1] == "rust" else take(arguments[1], arguments[2])
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = False
    for page in sorted(PAGES.glob("*.md")):
        if page.stem == "README":
            continue
        text = page.read_text()
        for fault in faults(page, text):
            print(f"{page.relative_to(ROOT)}: {fault}")
            stale = True
        try:
            wanted = current(text)
        except FileNotFoundError as missing:
            print(f"{page.relative_to(ROOT)}: no {Path(missing.filename).relative_to(ROOT)}; dev/recipes makes it")
            stale = True
            continue
        if not is_current(page, wanted, arguments == ["--check"],
                          f"{page.relative_to(ROOT)}: figures are not those of bench/results/recipes; "
                          "dev/make_recipes.py writes them"):
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
