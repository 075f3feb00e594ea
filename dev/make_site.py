#!/usr/bin/env python3
# make_site.py - makes the site in build/site from docs/, the other pages, the manual and what they link to.
# SPDX-License-Identifier: MIT
"""Usage: make_site.py [--look]

Pages lie in the site as in the repository, so that their links hold; a link to a file that is no page leads to a page that
shows it. Ends with 1 when a link is broken (dev/check_site.py), with 77 when the generator cannot be had.
--look takes pictures of pages with chromium, light, dark and as wide as a phone, in build/site-look.
prairie(1) is there when the command was built before (make tool).
"""
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copy, rmtree, which
from threading import Thread
from time import sleep

from check_docs import CODE_BLOCK, LINK
from check_style import repository_files

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "site"
WORK = ROOT / "build" / "site-work"
PAGES = WORK / "pages"
SITE = ROOT / "build" / "site"
TOOL = ROOT / "build" / "tool" / "release" / "prairie"
SUMMARY = ROOT / "bench" / "results" / "workloads" / "compare.md"
PICTURES = {".svg", ".png"}
LANGUAGES = {".h": "c", ".hpp": "cpp", ".cc": "cpp", ".py": "python", ".sh": "sh", "": "text", ".txt": "text"}
SHOWN = {"glibc": "C library", "prairie": "prairie", "jemalloc": "jemalloc", "mimalloc3": "mimalloc 3",
         "tcmalloc": "tcmalloc"}
# A list or a table below a line of text, which readers of the repository see as one.
CLOSE_BLOCK = re.compile(r"^((?![-|>#\s]|\d+\. |<!--).+\n)(?=- |\| |1\. )", re.M)
ITEM = re.compile(r"^( *)(?:- |\d+\. )")
LOOKED_AT = ("index.html", "docs/options.html", "docs/lab.html", "manual/prairie.3.html", "bench/results/index.html",
             "docs/reserve.html", "index.html?q=narenas")
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
LOOK_SECONDS = 3


class LookHandler(SimpleHTTPRequestHandler):
    """The site, and /frame?WIDTH&PAGE: a page in a frame, for windows have a least width. It is loaded when scripts had time."""

    def do_GET(self):
        frame = re.fullmatch(r"/frame\?(\d+)&(.*)", self.path)
        if frame:
            width, page = frame.groups()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"""<meta name="color-scheme" content="light dark"><body style="margin:0">
                <iframe style="border:0;width:{width}px;height:1500px" src="/{page}"></iframe><img hidden src="/wait">""".encode())
        elif self.path == "/wait":
            sleep(LOOK_SECONDS)
            self.send_error(404)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


def generator():
    """The mkdocs of a place of its own, as requirements.txt wants it."""
    place = WORK.parent / "site-venv"
    wanted = (SOURCES / "requirements.txt").read_text()
    had = place / "requirements.txt"
    if not had.is_file() or had.read_text() != wanted:
        rmtree(place, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", place],
                        [place / "bin/pip", "install", "--quiet", "-r", SOURCES / "requirements.txt"]):
            if subprocess.run(command, check=False).returncode != 0:
                print("make_site: mkdocs cannot be had: it takes python3-venv and a way to PyPI")
                sys.exit(77)
        had.write_text(wanted)
    return place / "bin" / "mkdocs"


def pages_of_repository():
    """All but the site's own."""
    return [ROOT / name for name in repository_files(ROOT) if name.endswith(".md") and not name.startswith("site/")]


def staged(target):
    """Where a page or file of the repository lies among the pages."""
    place = target.relative_to(ROOT)
    if place == Path("README.md"):
        return PAGES / "start.md"
    if target.is_dir() or target.suffix not in {".md", *PICTURES}:
        return PAGES / f"{place}.md"
    return PAGES / place


def show(target):
    """A page for what is none: a file as it is, a folder as its names."""
    name, place = target.relative_to(ROOT), staged(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix in PICTURES:
        copy(target, place)
    elif target.is_dir():
        names = "".join(f"- `{path.name}`\n" for path in sorted(target.iterdir()))
        place.write_text(f"---\nsearch: {{exclude: true}}\n---\n\n# {name}\n\n{names}")
    else:
        language = LANGUAGES.get(target.suffix, target.suffix[1:])
        text = target.read_text()
        if len(text) > 200_000:
            text = text[:200_000] + "\n..."
        place.write_text(f"---\nsearch: {{exclude: true}}\n---\n\n# {name}\n\n`````{language}\n{text}\n`````\n")


def spaced(text):
    """Items of lists inside lists by four spaces, and a blank line above lists and tables, as mkdocs wants them."""
    text = CLOSE_BLOCK.sub(r"\1\n", text)
    lines, open_list = [], False
    for line in text.split("\n"):
        item = ITEM.match(line)
        if item and not item.group(1):
            open_list = True
        elif line and not line.startswith(" "):
            open_list = False
        if open_list and line.startswith("  ") and not line.startswith("    "):
            line = "  " + line
        lines.append(line)
    return "\n".join(lines)


def stage(page):
    """One page with its links led to where things lie; what it links to that is no page is shown."""
    place = staged(page)

    def lead(found):
        link = found.group(1)
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or not name:
            return found.group()
        target = (page.parent / name).resolve()
        there = staged(target)
        if target.suffix != ".md":
            show(target)
        new = os.path.relpath(there, place.parent) + ("#" + anchor if anchor else "")
        return found.group().replace(f"({link})", f"({new})")

    text, parts, last = page.read_text(), [], 0
    for block in CODE_BLOCK.finditer(text):
        parts += [LINK.sub(lead, spaced(text[last:block.start()])), block.group()]
        last = block.end()
    parts.append(LINK.sub(lead, spaced(text[last:])))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(parts))


def chart():
    """Bars of the summary of all workloads, and over how many it goes."""
    rows = [line.strip("| ").split(" | ") for line in SUMMARY.read_text().splitlines()]
    rows = [row for row in rows if row[0] in SHOWN and len(row) == 8]
    most = max(float(figure) for row in rows for figure in row[1:3])

    def bar(figure):
        return f'<i style="width:{float(figure) / most * 62:.0f}%"></i>{float(figure):.2f}'
    cells = ""
    for row in sorted(rows, key=lambda row: float(row[1])):
        kind = "bar ours" if row[0] == "prairie" else "bar"
        cells += f'<div class="{kind}">{SHOWN[row[0]]}</div>' + "".join(f'<div class="{kind}">{bar(figure)}</div>'
                                                                       for figure in row[1:3])
    heads = "".join(f'<div class="head">{head}</div>' for head in ("prairie is 1", "time", "peak memory"))
    return f'<div class="chart">{heads}{cells}</div>', rows[0][6]


def stage_manual():
    """The manual pages as mandoc writes HTML; what they name that is not here is no link."""
    folder = PAGES / "manual"
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        if TOOL.is_file():
            subprocess.run([TOOL, "man", "--out", made], stdout=subprocess.DEVNULL, check=True)
        else:
            print("make_site: the prairie command is not built (make tool): the site goes without its manual pages")
            (folder / "prairie.1.md").write_text(
                "# prairie(1)\n\nThe command prints its page: `prairie man`. [What it does](../docs/tool.md)\n")
        sources = sorted([*Path(made).glob("*.1"), *(ROOT / "docs/man").iterdir()], key=lambda path: path.suffix)
        names = {path.name for path in sources} | {"prairie.1"}
        for path in sources:
            html = subprocess.run(["mandoc", "-Thtml", "-Ofragment,man=%N.%S.html", path], capture_output=True, text=True,
                                  check=True).stdout
            html = re.sub(r'<a class="Xr" href="([^"]+)\.html">(.*?)</a>',
                          lambda found: found.group(0 if found.group(1) in names else 2), html)
            html = re.sub(r"(</?h)([12])\b", lambda found: f"{found.group(1)}{int(found.group(2)) + 1}", html)
            title = f"{path.stem}({path.suffix[1:]})"
            (folder / f"{path.name}.md").write_text(f'# {title}\n\n<div class="man">\n{html}\n</div>\n')
        listed = "".join(f"- [{path.stem}({path.suffix[1:]})]({path.name}.md)\n" for path in sources)
    (folder / "index.md").write_text(f"# Manual pages\n\n`make install` and the packages install them for `man`.\n\n{listed}")


def write_config():
    def expand(found):
        names = sorted(path.relative_to(PAGES) for path in PAGES.glob(found.group(2)))
        return "\n".join(f"{found.group(1)}- {name}" for name in names)
    config = re.sub(r"^( +)- (\S*\*\S*)$", expand, (SOURCES / "mkdocs.yml").read_text(), flags=re.M)
    (WORK / "mkdocs.yml").write_text(config)


def look():
    """Pictures of some pages, served, for a page from a disk has no search."""
    folder = SITE.parent / "site-look"
    rmtree(folder, ignore_errors=True)
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(LookHandler, directory=SITE))
    Thread(target=server.serve_forever, daemon=True).start()
    for page in LOOKED_AT:
        name = re.sub(r"\W+", "-", page.replace(".html", ""))
        for kind, width, scheme in (("light", 1280, 1), ("dark", 1280, 0), ("phone", 390, 1)):
            picture = folder / f"{name}-{kind}.png"
            with tempfile.TemporaryDirectory() as profile:
                subprocess.run([*CHROMIUM, f"--user-data-dir={profile}", f"--window-size={max(width, 500)},1500",
                                f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={picture}",
                                f"http://127.0.0.1:{server.server_port}/frame?{width}&{page}"],
                               stderr=subprocess.DEVNULL, check=True)
            print(f"make_site: {picture.relative_to(ROOT)}")
    server.shutdown()


def main():
    if sys.argv[1:] not in ([], ["--look"]):
        print(__doc__)
        return 2
    if not which("mandoc") or (sys.argv[1:] and not which("chromium")):
        print("make_site: needs mandoc, and to look, chromium (dev/setup site)")
        return 77
    mkdocs = generator()
    rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for page in pages_of_repository():
        stage(page)
    stage_manual()
    bars, count = chart()
    (PAGES / "index.md").write_text((SOURCES / "index.md").read_text().replace("{chart}", bars).replace("{count}", count))
    copy(SOURCES / "extra.css", PAGES)
    write_config()
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([mkdocs, "build", "--quiet", "--clean", "--strict", "-f", WORK / "mkdocs.yml"], env=environment,
                          check=False)
    checked = subprocess.run([ROOT / "dev/check_site.py", SITE], check=False)
    if done.returncode or checked.returncode:
        return 1
    if sys.argv[1:]:
        look()
    print(f"make_site: {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
