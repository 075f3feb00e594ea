#!/usr/bin/env python3
# check_docs.py - fails when the documents and the sources say different things.
# SPDX-License-Identifier: MIT
"""Usage: check_docs.py [ROOT]

D1  docs/errors.md has a heading for each message in src/, and no heading for any other; each says what to
    do, leads to one that does, or says that it is no error; the sentences of reports stand there, too
D2  docs/options.md is what dev/make_options.py makes of the list in src/base/option_list.h
D3  a link to a file of the project leads to one, and a link to a heading leads to one
D4  the page of a floor names the numbered invariants of the floor's headers, and no others; a page is
    called as the folder, but for those of PAGES
D5  a path of the project in a code span exists, and a `make` command in one is a target
D6  a constant that is named with its value, `NAME` (16 KiB), has that value in src/
D7  each letter of invariants is stated in one header, and docs/glossary.md has the list
D8  on pages about the sources, a code span that looks like one of our files (`slab.c`), or like a
    name in C (`slab_fill`, `struct slab`), is one; files that a floor is said to own are there
D9  figures of make count are those of bench/counts/golden.json (dev/make_figures.py)
D10 recipes have their parts, and the figures of bench/results/recipes (dev/make_recipes.py)
D11 a name of src/control/control_list.h stands in a code span of a page of docs/, with N for a number, or in the row of its
    family (`config.`…)
D12 the manual pages in docs/man are what dev/make_man.py makes of the headers and options
D13 the table of means in README.md is that of bench/results/README.md
"""
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ERRORS = Path("docs/errors.md")
# Pages of docs/floors/ for folders of another name. docs/control.md is the users'.
PAGES = {"doors": ("libc", "cxx", "jemalloc", "darwin", "windows"), "control_tree": ("control",)}
LEAVES = Path("src/control/control_list.h")
GLOSSARY = Path("docs/glossary.md")
PAGES_ABOUT_SOURCES = ("ARCHITECTURE.md", "docs/floors/", "docs/glossary.md")
SOURCE_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".py", ".sh", ".cmake", ""}
TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.S)
MESSAGE_CALL = re.compile(r"\b(fatal|fatal_address)\s*\(")
REMEDY = re.compile(r"^What to do: |^As \[|^Not an error: ", re.M)
SENTENCE_SPACES = 4
INVARIANT = re.compile(r"^ \* ([A-Z]\d+)\s\s", re.M)
NAMED_INVARIANT = re.compile(r"^\| ([A-Z]\d+) \|", re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.S | re.M)
PROJECT_PATH = re.compile(r"^(?:src|include|test|bench|dev|docs|cmake|lab|\.ci)/[\w./-]*$")
MAKE = re.compile(r"^make ([a-z0-9-]+)")
LETTER_ROW = re.compile(r"^\| ([A-Z]) \|[^|]*\| `([^`]+)` \|", re.M)
FILE_NAME = re.compile(r"[\w./*-]+\.(?:c|h|cpp|cc|py|sh|cmake)")
OWNED_FILES = re.compile(r"^\| file \| owns \|\n\|---\|---\|\n((?:\|.*\n)+)", re.M)
C_NAME = re.compile(r"(?:struct |enum |union )?([A-Za-z]\w*_\w*|(?<= )\w+)(?:\(.*\)|\[.*\])?")
MEANS = re.compile(r"^\| \| time, workloads \|.*\n(?:\|.*\n)+", re.M)
NAMED_VALUE = re.compile(r"`([A-Z][A-Z0-9_]+)`\s\(([\d,]+(?: [KMGT]iB)?)\)")
VALUE = r"\s+\\?\s*(?:BY_WORD)?\(*(?:\(?size_t\))?(\d+)u?(?: \* ([KMGT]iB))?"


def blank_comments(text):
    return COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def sources(root):
    for path in sorted((root / "src").rglob("*.[ch]")):
        yield path, blank_comments(path.read_text())


def arguments(code, start):
    """The text between the bracket that opens at `start` and its partner."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[start + 1:at]
    return code[start + 1:]


def body_of(code, function):
    """The body of a function defined in this file, or nothing."""
    found = re.search(rf"\b{function}\([^;{{]*\)\s*\{{(.*?)^\}}", code, re.S | re.M)
    return found.group(1) if found else ""


def said_by(code, given):
    """Strings that a call's arguments can stand for: its own, or a function's called there."""
    texts = [text for text in TEXT.findall(given) if " " in text.strip()]
    for name in re.findall(r"\b(\w+)\s*\(", given):
        texts += [text for text in TEXT.findall(body_of(code, name)) if " " in text]
    return texts


def messages(root):
    """Yields (file, heading) of what src/ can say; heading None: it cannot be told what is said."""
    for path, code in sources(root):
        if path.name.startswith("fatal."):
            continue
        for call in MESSAGE_CALL.finditer(code):
            texts = said_by(code, arguments(code, call.end() - 1))
            end = ": ADDRESS" if call.group(1) == "fatal_address" else ""
            if not texts:
                yield path, None
            for text in texts:
                # The only message that ends in pieces of source code is that of require().
                family = text in ("broken invariant: ", " at ")
                said = "broken invariant: CONDITION at FILE:LINE" if family else text + end
                yield path, "prairie: " + said
        for text in TEXT.findall(code):
            if "%" in text:
                # A format is known up to the word in which its first argument stands.
                text = text[:text.index("%")].rpartition(" ")[0] + " "
            if text.startswith("prairie: ") and text.strip() != "prairie:":
                yield path, text


def check_errors(root):
    page = (root / ERRORS).read_text()
    headings = [line[3:].strip().strip("`") for line in page.splitlines() if line.startswith("## ")]
    headings = [heading for heading in headings if heading.startswith("prairie: ")]
    used = set()
    for path, message in messages(root):
        where = path.relative_to(root)
        if message is None:
            yield where, "D1: a call of fatal whose words cannot be read here"
            continue
        # Messages that are put together piece by piece are known by how they begin.
        match = [heading for heading in headings if heading == message
                 or (message.endswith(" ") and heading.startswith(message))]
        used.update(match)
        if not match:
            yield where, f"D1: {ERRORS} has no heading '{message}'"
    for heading in headings:
        if heading not in used:
            yield ERRORS, f"D1: nothing in src/ says '{heading}'"


def check_remedies(root):
    """A message says what to do, or is none of an error; reports say nothing that is not explained."""
    page = (root / ERRORS).read_text()
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        heading = section.splitlines()[0].strip("`")
        if heading.startswith("prairie: ") and not REMEDY.search(section):
            yield ERRORS, f"D1: '{heading}' does not say what to do"
    for path, code in sources(root):
        if path.parent.name != "guard":
            continue
        for said in re.findall(r'report_text\(\w+, "((?:\\.|[^"\\])*)"\)', code):
            words = said.replace("\\n", "").strip()
            if words.count(" ") >= SENTENCE_SPACES and words not in page:
                yield path.relative_to(root), f"D1: {ERRORS} does not have the line '{words}'"


def check_written(root, script):
    """What a script of dev/ writes is current: what it says is the problem."""
    done = subprocess.run([root / "dev" / script, "--check"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        yield (done.stdout + done.stderr).strip()


def check_options(root):
    for problem in check_written(root, "make_options.py"):
        yield Path("docs/options.md"), "D2: " + problem


def check_leaves(root):
    lines = [line for path in (root / "docs").glob("*.md") for line in path.read_text().splitlines()]
    spans = {span for line in lines for span in re.findall(r"`([^`]+)`", line)}
    families = {found.group(1): set(re.findall(r"`([^`]+)`", line))
                for line in lines if (found := re.match(r"\| `(\w+\.)`…", line))}
    for name in re.findall(r'^LEAF\("([^"]+)"', (root / LEAVES).read_text(), re.M):
        first, _, rest = name.partition(".")
        if name.replace("*", "N") not in spans and rest not in families.get(first + ".", ()):
            yield LEAVES, f"D11: no page of docs/ tells what `{name.replace('*', 'N')}` is"


def check_figures(root):
    for problem in check_written(root, "make_figures.py"):
        yield Path("docs"), "D9: " + problem


def check_recipes(root):
    for problem in check_written(root, "make_recipes.py"):
        yield Path("docs/recipes"), "D10: " + problem


def check_manual(root):
    for problem in check_written(root, "make_man.py"):
        yield Path("docs/man"), "D12: " + problem


def check_means(root):
    found = [MEANS.search((root / page).read_text()) for page in ("README.md", "bench/results/README.md")]
    if not all(found) or found[0].group() != found[1].group():
        yield Path("README.md"), "D13: the table of means is not that of bench/results/README.md"


def documents(root):
    for path in [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md")),
                 *sorted((root / "test").rglob("*.md")), *sorted((root / "bench").rglob("*.md")),
                 *sorted((root / "lab").rglob("*.md"))]:
        yield path, path.read_text()


def anchors(text):
    """The names under which a page's headings can be linked to."""
    for line in CODE_BLOCK.sub("", text).splitlines():
        if line.startswith("#"):
            words = line.lstrip("#").strip().lower()
            yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def check_links(root):
    for path, text in documents(root):
        for link in LINK.findall(CODE_BLOCK.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists():
                yield path.relative_to(root), f"D3: {link} leads nowhere"
            elif anchor and anchor not in anchors(target.read_text()):
                yield path.relative_to(root), f"D3: {link} has no such heading"


def check_invariants(root):
    for page in sorted((root / "docs" / "floors").glob("*.md")):
        folders = [root / "src" / name for name in PAGES.get(page.stem, (page.stem,))]
        if not all(folder.is_dir() for folder in folders):
            yield page.relative_to(root), "D4: there is no such floor"
            continue
        stated = {number for folder in folders for header in folder.glob("*.h")
                  for number in INVARIANT.findall(header.read_text())}
        named = set(NAMED_INVARIANT.findall(page.read_text()))
        for number in sorted(stated ^ named):
            side = "does not name" if number in stated else "names, and no header states,"
            yield page.relative_to(root), f"D4: {side} {number}"
    page_of = {name: page for page, names in PAGES.items() for name in names}
    for folder in sorted({path.parent for path in (root / "src").glob("*/*.[ch]")}):
        page = page_of.get(folder.name, folder.name)
        if not (root / "docs" / "floors" / f"{page}.md").is_file():
            yield Path("docs/floors"), f"D4: the floor {folder.name} has no page"


def check_spans(root):
    targets = set(re.findall(r"^([a-z0-9-]+):", (root / "Makefile").read_text(), re.M))
    for path, text in documents(root):
        for span in re.findall(r"`([^`\n]+)`", CODE_BLOCK.sub("", text)):
            command = MAKE.match(span)
            if PROJECT_PATH.match(span) and not (root / span).exists():
                yield path.relative_to(root), f"D5: {span} does not exist"
            elif command and command.group(1) not in targets:
                yield path.relative_to(root), f"D5: the Makefile has no '{command.group(1)}'"


def check_letters(root):
    stated = {}
    for path in sorted((root / "src").rglob("*.h")):
        for number in INVARIANT.findall(path.read_text()):
            stated.setdefault(number[0], set()).add(str(path.relative_to(root)))
    for letter, paths in sorted(stated.items()):
        if len(paths) > 1:
            yield sorted(paths)[1], f"D7: the letter {letter} is that of {sorted(paths)[0]}"
    listed = {(letter, path) for letter, path in LETTER_ROW.findall((root / GLOSSARY).read_text())}
    for letter, path in sorted(listed ^ {(letter, path) for letter in stated
                                         for path in stated[letter]}):
        side = "lists" if (letter, path) in listed else "does not list"
        yield GLOSSARY, f"D7: {side} {letter} of {path}"


def names_of_tree(root):
    """Every word of the sources and of what is built and run around them; names of their files."""
    words, files = set(), []
    for folder in ("src", "include", "test", "bench", "lab", "dev", "cmake"):
        for path in (root / folder).rglob("*"):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                words.update(re.findall(r"\w+", path.read_text()))
                files.append(str(path.relative_to(root)))
    return words, files


def check_names(root):
    words, files = names_of_tree(root)
    for path, text in documents(root):
        if not str(path.relative_to(root)).startswith(PAGES_ABOUT_SOURCES):
            continue
        for span in re.findall(r"`([^`\n]+)`", CODE_BLOCK.sub("", text)):
            name = C_NAME.fullmatch(span)
            if FILE_NAME.fullmatch(span):
                if not any(fnmatch("/" + file, "*/" + span) for file in files):
                    yield path.relative_to(root), f"D8: there is no file {span}"
            elif name and name.group(1) not in words:
                yield path.relative_to(root), f"D8: nothing is named {span}"


def check_owned_files(root):
    for page in sorted((root / "docs" / "floors").glob("*.md")):
        names = PAGES.get(page.stem, (page.stem,))
        files = {path for name in names for path in (root / "src" / name).iterdir()}
        for rows in OWNED_FILES.findall(page.read_text()):
            for row in rows.splitlines():
                for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
                    # Of several folders a page names files with their folder.
                    if not any(("/" + str(path)).endswith("/" + name) for path in files):
                        yield page.relative_to(root), f"D8: the floor has no file {name}"


def value_of(texts, name):
    """A constant's value as the documents write it; the last one, which is not the tiny one."""
    found = [match for text in texts
             for match in re.findall(rf"#define {name}{VALUE}", text)
             + re.findall(rf"\b{name} = (\d+)()", text)]
    return f"{int(found[-1][0]):,} {found[-1][1]}".strip() if found else None


def check_constants(root):
    texts = [code for _, code in sources(root)]
    for path, text in documents(root):
        for name, said in NAMED_VALUE.findall(text):
            value = value_of(texts, name)
            if value != said:
                yield path.relative_to(root), f"D6: {name} is {value}, not {said}"


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        print(__doc__)
        return 2
    root = Path(sys.argv[1] if len(sys.argv) == 2 else Path(__file__).parent.parent).resolve()
    problems = 0
    for check in (check_errors, check_remedies, check_options, check_links, check_invariants, check_spans,
                  check_constants, check_letters, check_names, check_owned_files, check_figures, check_recipes,
                  check_leaves, check_manual, check_means):
        for where, problem in check(root):
            print(f"{where}: {problem}")
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
