#!/usr/bin/env python3
"""Makes one page of what the war measured: war.html with charts, war.md with tables, war.json.

  bench/war/page.py RESULTS

RESULTS has a folder for each pass of `prairie compare`, each with compare.json: time, instructions and
browse; what is missing is left out. A row that is void says so with the reason, and has no figure from
any pass; one that only does not live under callgrind has none of callgrind's.
"""
# SPDX-License-Identifier: MIT

import html
import json
import sys
from pathlib import Path

SUBJECT, BASE, AGAIN = "prairie", "glibc", "glibc-again"
COLOURS = {"prairie": "#1b7f3b", "glibc": "#444444", "libpas": "#9467bd", "jemalloc": "#d62728",
           "mimalloc2": "#ff9f1c", "mimalloc3": "#e6b800", "tcmalloc": "#1f77b4",
           "gperftools": "#17a2b8", "snmalloc": "#8c564b", "rpmalloc": "#e377c2"}
ENGINES = {"qjs": "quickjs-ng 0.11, one malloc for each object",
           "jsc": "JavaScriptCore on malloc (Malloc=1), and on its own heap",
           "blocks": "4096 × aligned_alloc(16384, 16384), as JavaScriptCore's collector asks",
           "arena": "control: quickjs-ng 0.16, small blocks in its own arena",
           "duktape": "control: duktape", "node": "control: node"}
CONTROLS = ("arena", "duktape", "node")


def main():
    folder = Path(sys.argv[1])
    war = gather({name: read(folder / name / "compare.json")
                  for name in ("time", "instructions", "browse")})
    add_shares(war, folder / "share" / "share.json")
    war["spread"] = spread(war["rows"])
    war["standing"] = standing(war)
    (folder / "war.json").write_text(json.dumps(war, indent=1) + "\n")
    (folder / "war.md").write_text(markdown(war))
    (folder / "war.html").write_text(page(war))
    names = ["war.html", "war.md", "war.json"]
    for workload, series in by_workload(war):
        names.append(f"{workload}.svg")
        (folder / names[-1]).write_text(curves(series))
    for name in names:
        print(f"wrote {folder / name}")


def read(path):
    return json.loads(path.read_text()) if path.is_file() else None


# From the raw runs to rows

def gather(passes):
    """One row for each workload and allocator, with figures from all passes."""
    timed, counted, browsed = passes["time"], passes["instructions"], passes["browse"]
    first = timed or counted or browsed
    if first is None:
        sys.exit("page.py: no compare.json in any pass")
    rows = {}
    for run in (timed or {}).get("runs", []):
        add_timed(row_of(rows, run), run)
    for run in (counted or {}).get("runs", []):
        add_counted(row_of(rows, run, is_counted=True), run)
    for row in rows.values():
        finish(row)
    failed = {(run["workload"], run["allocator"]) for run in (browsed or {}).get("runs", [])
              if run["outcome"] != "right"}
    series = [{"workload": run["workload"], "allocator": run["allocator"], "points": run["series"],
               "peak_kb": kb(run["peak_bytes"]), "mean_kb": kb(run["byte_seconds"] / run["wall_s"])}
              for run in (browsed or {}).get("runs", [])
              if run.get("series") and run["round"] > 0
              and (run["workload"], run["allocator"]) not in failed]
    void = [{"workload": run["workload"], "allocator": run["allocator"], "why":
             f"{run['outcome']}: {run.get('reason', '')}"}
            for found in passes.values() if found
            for run in found["runs"] if run["outcome"] != "right"]
    allocators = {a["name"]: a["label"] for found in passes.values() if found
                  for a in found["allocators"]}
    war = {"date": first["date"], "machine": first["machine"], "allocators": allocators,
           "quick": first["quick"], "work": part_of_the_work(timed), "rows": list(rows.values()), "series": series,
           "void": unique(void), "absent": unique(
               [entry for found in passes.values() if found
                for entry in found["absent_allocators"] + found["absent_workloads"]]),
           "notes": unique([f"{name}: {note}" for name, found in passes.items() if found
                            for note in found.get("notes", [])]),
           "has_own": any(item.get("suite") == "own" for found in passes.values() if found
                          for item in found.get("workloads", []))}
    return war


def part_of_the_work(timed):
    """In per cent, the least and the most over the engines' suites of the pass time; [] without it."""
    scales = [item["scale"] for item in (timed or {}).get("workloads", [])
              if "scale" in item and item.get("suite") != "own"]
    return [min(scales), max(scales)] if scales else []


def add_shares(war, path):
    """What perf sampled under jsc; a void row has no figure from this pass either."""
    for found in read(path) or []:
        for row in war["rows"]:
            if (row["workload"], row["allocator"]) == (found["workload"], found["allocator"]) \
                    and not row["void"]:
                row["share"] = found["share"]
                row["share_error"] = found["share_error"]
                row["kernel_share"] = found["kernel_share"]


def row_of(rows, run, is_counted=False):
    """The figures of one cell; a failed run makes the cell void, whatever else went well.

    Where callgrind is too much for an allocator, that is not said of its other figures.
    """
    engine, _, suite = run["workload"].partition("-")
    row = rows.setdefault((run["workload"], run["allocator"]), {
        "workload": run["workload"], "engine": engine, "suite": suite or engine,
        "allocator": run["allocator"], "void": None, "uncounted": None, "ms": [], "kb": []})
    if run["outcome"] in ("crashed", "timed_out") and is_counted:
        row["uncounted"] = f"{run['outcome']}: {run.get('reason', '')}"
    elif run["outcome"] != "right":
        row["void"] = f"{run['outcome']}: {run.get('reason', '')}"
    return row


def add_timed(row, run):
    if run.get("counts_calls"):
        figures = run.get("figures", {})
        if "calls" in figures:
            row["calls"] = int(figures["calls"]["value"])
            row["live_peak_kb"] = kb(figures["live_peak"]["value"])
    elif run["round"] > 0:
        row["ms"].append((run["user_s"] + run["system_s"]) * 1e3)
        grown = run.get("figures", {}).get("grown")
        row["kb"].append(grown["value"] if grown else kb(run["peak_bytes"]))


def add_counted(row, run):
    if row["uncounted"]:
        return
    row["instructions"] = run.get("instructions")
    inside = run.get("in_allocator")
    if inside and row["instructions"]:
        row["share"] = inside["instructions"] / row["instructions"]
        row["instructions_each"] = inside["instructions"] / max(1, inside["calls"])


def finish(row):
    """Medians; nothing at all where the row is void."""
    for name in ("ms", "kb"):
        values = sorted(row[name])
        row[name] = values[len(values) // 2] if values else None
    if row["kb"] and row.get("live_peak_kb"):
        row["memory_share"] = row["live_peak_kb"] / row["kb"]
    if row["void"]:
        for name in set(row) - {"workload", "engine", "suite", "allocator", "void", "uncounted"}:
            row[name] = None


def kb(size):
    return size / 1024


def unique(entries):
    return [json.loads(text) for text in dict.fromkeys(json.dumps(e) for e in entries)]


CONTESTS = ("instructions", "share", "instructions_each", "kb", "ms")


def spread(rows):
    """How far the C library lies from itself, at most: smaller differences are none.

    What perf sampled is as noisy as clocks, and apart from what callgrind counted.
    """
    found = {}
    for row in rows:
        if row["allocator"] != AGAIN:
            continue
        for metric in CONTESTS:
            ours, theirs = row.get(metric), value(rows, row["workload"], BASE, metric)
            if ours and theirs:
                name = kind(rows, row["workload"], metric)
                found[name] = max(found.get(name, 0), abs(ours / theirs - 1))
    return found


def kind(rows, workload, metric):
    is_sampled = metric == "share" and value(rows, workload, BASE, "share_error") is not None
    return "sampled share" if is_sampled else metric


def least_difference(war, workload, metric, ours, other):
    """What two must differ by; None: the C library did not run twice, so that nothing can be told."""
    least = war["spread"].get(kind(war["rows"], workload, metric))
    if least is not None and metric == "share":
        least = max(least, doubt(war["rows"], workload, ours, other))
    return least


def value(rows, workload, allocator, metric):
    for row in rows:
        if row["workload"] == workload and row["allocator"] == allocator:
            return row.get(metric)
    return None


def doubt(rows, workload, ours, other):
    """Sampled shares have an error: twice that of both, by the other's share. Counted ones have none."""
    errors = [value(rows, workload, name, "share_error") or 0 for name in (ours, other)]
    return 2 * sum(error ** 2 for error in errors) ** 0.5 / value(rows, workload, other, "share")


def standing(war):
    """The subject against the best of the others, and against the engine's own heap; wins and losses
    alike, controls aside."""
    found = []
    rows = war["rows"]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        if workload.partition("-")[0] in CONTROLS:
            continue
        for metric in ("instructions", "share", "kb", "ms"):
            ours = value(rows, workload, SUBJECT, metric)
            engines_own = value(rows, workload, "libpas", metric)
            if ours and engines_own:
                found.append(against(war, workload, metric, ours, engines_own, "libpas"))
            others = [(row[metric], row["allocator"]) for row in rows
                      if row["workload"] == workload and row.get(metric)
                      and row["allocator"] not in (SUBJECT, AGAIN, "libpas")]
            if not ours or not others or (workload == "blocks" and metric != "kb"):
                continue
            best, name = min(others)
            found.append(against(war, workload, metric, ours, best, name))
    return found


def against(war, workload, metric, ours, theirs, name):
    least = least_difference(war, workload, metric, SUBJECT, name)
    ratio = ours / theirs
    verdict = ("untold" if least is None else "even" if abs(ratio - 1) <= least
               else "ahead" if ratio < 1 else "behind")
    return {"workload": workload, "metric": metric, "best_other": name, "ratio": ratio,
            "verdict": verdict}


# Tables

# What callgrind tells of quickjs.
COUNTED = ("instructions", "share", "instructions_each")

METRICS = (("ms", "ms of processor time", lambda v: f"{v:,.0f}"),
           ("kb", "KB at the peak", lambda v: f"{v:,.0f}"),
           ("instructions", "million instructions", lambda v: f"{v / 1e6:,.0f}"),
           ("share", "% of user time in the allocator", lambda v: f"{v * 100:.1f}"),
           ("kernel_share", "% of time in the kernel", lambda v: f"{v * 100:.1f}"),
           ("instructions_each", "instructions for each call", lambda v: f"{v:.1f}"),
           ("calls", "calls of malloc's family", lambda v: f"{v:,}"),
           ("memory_share", "% of the peak that is malloc'ed", lambda v: f"{v * 100:.0f}"))


def best_of(war, workload, metric, figures):
    """Whose figure is the lowest, by more than noise; None: nobody's, or it cannot be told."""
    known = sorted((v, name) for name, v in figures.items() if v and name != AGAIN)
    if metric not in CONTESTS or len(known) < 2:
        return None
    (lowest, name), (following, other) = known[:2]
    least = least_difference(war, workload, metric, name, other)
    return name if least is not None and 1 - lowest / following > least else None


def tables(war):
    """Of each engine and metric: title, columns, rows; the best figure of a row is marked."""
    rows = war["rows"]
    for engine, title in ENGINES.items():
        of_engine = [row for row in rows if row["engine"] == engine]
        suites = list(dict.fromkeys(row["workload"] for row in of_engine))
        names = ordered({row["allocator"] for row in of_engine})
        for metric, meaning, shown in METRICS:
            if engine == "blocks" and metric != "kb":
                continue
            if not any(row.get(metric) for row in of_engine):
                continue
            lines = []
            for suite in suites:
                cells = {row["allocator"]: row for row in of_engine if row["workload"] == suite}
                figures = {name: cells[name].get(metric) for name in names if name in cells}
                best = best_of(war, suite, metric, figures)
                line = []
                for name in names:
                    cell = cells.get(name)
                    if cell is None:
                        line.append(("", False))
                    elif cell["void"] or cell["uncounted"] and metric in COUNTED:
                        line.append(("void", False))
                    elif not figures[name]:
                        line.append(("–", False))
                    else:
                        line.append((shown(figures[name]), name == best))
                lines.append((suite, line))
            yield f"{title}: {meaning}", names, lines


def ordered(names):
    known = [name for name in COLOURS if name in names]
    return known + sorted(names - set(known))


def says(war):
    """What must be known to read the tables."""
    work = " to ".join(str(part) for part in dict.fromkeys(war["work"])) or "100"
    yield (f"{war['date'][:10]}; {war['machine'].get('cpu', '')}, {war['machine'].get('cores', '')} "
           f"cores, Linux {war['machine'].get('kernel', '')}."
           + (" A quick run: small suites, one round; its times are no basis for claims."
              if war["quick"] else ""))
    yield ("Instructions, shares and instructions for each call are callgrind's, exact, at 10 % of "
           "the work; under qjs a share is what calls into the allocator cost with all that it called, "
           "by instructions; under jsc it is sampled by perf's clock. Times "
           "and peaks are medians over the rounds of `prairie compare`"
           + (f", each run with {work} % of the work" if work != "100" else "") + ". Calls and the malloc'ed "
           "part of memory were counted in one more run. The lowest figure is bold where it leads by "
           "more than the C library lies from itself. Less than 100 % of the work are fewer rounds of "
           "v8 and parse, and one short source instead of all for minify and compile, whatever the figure.")
    for metric, name in (("ms", "time"), ("kb", "peak memory"), ("instructions", "instructions"),
                         ("share", "counted shares"), ("sampled share", "sampled shares")):
        if metric in war["spread"]:
            yield (f"The C library against itself: {war['spread'][metric] * 100:.2f} % apart in {name}"
                   " at most. Smaller differences are none.")
    if war["has_own"]:
        yield ("Suites of one's own run whole in every pass, also in a quick run. They print no "
               "checksum: only that they end with exit code 0 is checked.")
    yield from controls(war)


def controls(war):
    """How far allocators move the engines that hardly ask for memory."""
    rows = war["rows"]
    for workload in dict.fromkeys(row["workload"] for row in rows if row["engine"] in CONTROLS):
        moved = []
        for metric, name in (("ms", "time"), ("kb", "peak memory")):
            base = value(rows, workload, BASE, metric)
            others = [(row[metric] / base - 1, row["allocator"]) for row in rows
                      if base and row["workload"] == workload and row.get(metric)
                      and row["allocator"] not in (BASE, AGAIN)]
            if others:
                ratio, allocator = max(others, key=lambda found: abs(found[0]))
                moved.append(f"{abs(ratio) * 100:.1f} % in {name} ({allocator})")
        if moved:
            yield f"The control {workload} moved by {' and by '.join(moved)} at most."


def verdicts(war):
    """Sentences on where the subject wins and where it does not."""
    names = {"instructions": "instructions", "share": "share in the allocator",
             "kb": "peak memory", "ms": "time"}
    for verdict in ("ahead", "even", "behind"):
        for metric, name in names.items():
            hits = [f"{s['workload']} ({(s['ratio'] - 1) * 100:+.1f} %, {s['best_other']})"
                    for s in war["standing"] if s["verdict"] == verdict and s["metric"] == metric]
            if hits:
                yield f"{SUBJECT} {verdict}, {name}: {', '.join(hits)}"
    if any(s["verdict"] == "untold" for s in war["standing"]):
        untold = dict.fromkeys(names[s["metric"]] for s in war["standing"] if s["verdict"] == "untold")
        yield f"no verdict, for {AGAIN} was not measured: {', '.join(untold)}"


def void_lines(war):
    lines = [f"{v['workload']} under {v['allocator']}: {v['why']}" for v in war["void"]]
    return lines + [f"absent: {a['name']}: {a['reason']}" for a in war["absent"]]


def remarks(war):
    found = (("Void and absent", void_lines(war)), ("Notes", war["notes"]))
    return [(heading, lines) for heading, lines in found if lines]


def markdown(war):
    out = ["# War of allocators in JavaScript engines", ""]
    out += [text + "\n" for text in says(war)]
    out += ["## Against the best other on each suite", ""]
    out += [f"- {text}" for text in verdicts(war)] + [""]
    for title, names, lines in tables(war):
        out += [f"## {title}", "", "| suite | " + " | ".join(names) + " |",
                "|---|" + "--:|" * len(names)]
        for suite, cells in lines:
            out.append(f"| {suite} | " + " | ".join(f"**{text}**" if best else text
                                                    for text, best in cells) + " |")
        out.append("")
    if war["series"]:
        out += ["## Memory over time", "", "| run | allocator | peak KB | mean KB |",
                "|---|---|--:|--:|"]
        out += [f"| {s['workload']} | {s['allocator']} | {s['peak_kb']:,.0f} | {s['mean_kb']:,.0f} |"
                for s in sorted(war["series"], key=lambda s: (s["workload"], s["mean_kb"]))] + [""]
    for heading, lines in remarks(war):
        out += [f"## {heading}", ""] + [f"- {text}" for text in lines] + [""]
    return "\n".join(out)


# The page

STYLE = """body{font:15px/1.45 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.5em 0 1.5em;font-size:13px}
td,th{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}.best{font-weight:bold;background:#e8f5e9}
.void{color:#b00020}h2{margin-top:1.8em}svg{max-width:100%}"""


def page(war):
    title = "War of allocators in JavaScript engines"
    out = [f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{title}</title>",
           f"<style>{STYLE}</style><h1>{title}</h1>"]
    out += [f"<p>{html.escape(text)}</p>" for text in says(war)]
    out.append("<h2>Against the best other on each suite</h2><ul>")
    out += [f"<li>{html.escape(text)}</li>" for text in verdicts(war)]
    out.append("</ul>")
    for engine in ("qjs", "jsc"):
        for metric, meaning in (("instructions", "instructions"), ("share", "share in the allocator"),
                                ("kb", "peak memory"), ("ms", "time")):
            out.append(bars(war, engine, metric, f"{engine}: {meaning}, the C library = 1"))
    for workload, series in by_workload(war):
        out += [f"<h2>{workload}: resident memory over time</h2>", curves(series)]
    for heading, names, lines in tables(war):
        out.append(f"<h2>{html.escape(heading)}</h2><table><tr><th>suite</th>")
        out += [f"<th title='{html.escape(war['allocators'].get(n, n), quote=True)}'>{n}</th>"
                for n in names]
        out.append("</tr>")
        for suite, cells in lines:
            out.append(f"<tr><td>{suite}</td>")
            for text, best in cells:
                mark = " class='best'" if best else " class='void'" if text == "void" else ""
                out.append(f"<td{mark}>{text}</td>")
            out.append("</tr>")
        out.append("</table>")
    for heading, lines in remarks(war):
        out.append(f"<h2>{heading}</h2><ul>")
        out += [f"<li>{html.escape(text)}</li>" for text in lines]
        out.append("</ul>")
    return "\n".join(part for part in out if part) + "\n"


def colour(name):
    return COLOURS.get(name, "#999999")


def bars(war, engine, metric, title):
    """A group of bars for each suite, each by the C library's figure."""
    rows = [row for row in war["rows"] if row["engine"] == engine and row.get(metric)]
    suites = [suite for suite in dict.fromkeys(row["workload"] for row in rows)
              if value(rows, suite, BASE, metric)]
    names = ordered({row["allocator"] for row in rows} - {AGAIN})
    if not suites:
        return ""
    ratios = {(s, n): value(rows, s, n, metric) / value(rows, s, BASE, metric)
              for s in suites for n in names if value(rows, s, n, metric)}
    left, top, height, bar = 40, 50, 180, 16
    group = bar * len(names) + 24
    width = left + group * len(suites) + 20
    ceiling = max([1.05, *ratios.values()])
    at = lambda ratio: top + height - ratio / ceiling * height  # noqa: E731
    out = [f"<h2>{html.escape(title)}</h2>", legend(names),
           f"<svg viewBox='0 0 {width} {top + height + 30}' width='{width}' "
           "font-family='sans-serif' font-size='10'>"]
    for line in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0):
        if line <= ceiling:
            out.append(f"<line x1='{left}' x2='{width}' y1='{at(line):.1f}' y2='{at(line):.1f}' "
                       f"stroke='{'#666' if line == 1 else '#ddd'}'/>"
                       f"<text x='4' y='{at(line) + 3:.1f}'>{line:g}</text>")
    for place, suite in enumerate(suites):
        start = left + 12 + place * group
        for index, name in enumerate(names):
            ratio = ratios.get((suite, name))
            if ratio is None:
                continue
            x = start + index * bar
            out.append(f"<rect x='{x}' y='{at(ratio):.1f}' width='{bar - 2}' "
                       f"height='{top + height - at(ratio):.1f}' fill='{colour(name)}'>"
                       f"<title>{name}: {ratio:.3f}</title></rect>"
                       f"<text x='{x + bar / 2 - 1}' y='{at(ratio) - 2:.1f}' text-anchor='middle' "
                       f"font-size='7'>{ratio:.2f}</text>")
        out.append(f"<text x='{start}' y='{top + height + 16}' font-size='12'>{suite}</text>")
    return "".join(out) + "</svg>"


def legend(names):
    return "<p>" + " ".join(f"<span style='color:{colour(n)}'>■</span> {n}" for n in names) + "</p>"


def by_workload(war):
    for workload in dict.fromkeys(s["workload"] for s in war["series"]):
        yield workload, [s for s in war["series"] if s["workload"] == workload]


def curves(series):
    """Resident memory over time, MB by seconds; a run that took longer has a longer curve."""
    width, height, left, top = 1000, 320, 60, 40
    seconds = max(point[0] for s in series for point in s["points"]) or 1
    highest = max(point[1] for s in series for point in s["points"]) / 1e6
    names = ordered({s["allocator"] for s in series})
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width + left + 20}' "
           f"viewBox='0 0 {width + left + 20} {height + top + 30}' "
           "font-family='sans-serif' font-size='12'>",
           f"<rect width='{width + left + 20}' height='{height + top + 30}' fill='white'/>"]
    for place, name in enumerate(names):
        out.append(f"<rect x='{left + place * 105}' y='8' width='12' height='12' "
                   f"fill='{colour(name)}'/><text x='{left + place * 105 + 16}' y='19'>{name}</text>")
    for part in range(5):
        y = top + height - part / 4 * height
        x = left + part / 4 * width
        out.append(f"<line x1='{left}' x2='{left + width}' y1='{y}' y2='{y}' stroke='#ddd'/>"
                   f"<text x='4' y='{y + 4}'>{highest * part / 4:.0f} MB</text>"
                   f"<text x='{x}' y='{top + height + 18}' text-anchor='middle'>"
                   f"{seconds * part / 4:.0f} s</text>")
    for s in sorted(series, key=lambda s: s["allocator"] == SUBJECT):
        # The last look may find a process that has ended.
        points = " ".join(f"{left + at / seconds * width:.1f},"
                          f"{top + height - size / 1e6 / highest * height:.1f}"
                          for at, size in s["points"] if size > 0)
        wide = 2.5 if s["allocator"] == SUBJECT else 1.2
        out.append(f"<polyline points='{points}' fill='none' stroke='{colour(s['allocator'])}' "
                   f"stroke-width='{wide}'><title>{s['allocator']}</title></polyline>")
    return "".join(out) + "</svg>"


if __name__ == "__main__":
    main()
