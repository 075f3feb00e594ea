#!/usr/bin/env python3
# make_man.py - writes the manual pages of section 3 and 5 in docs/man from the headers and the list of options.
# SPDX-License-Identifier: MIT
"""Usage: make_man.py [--check]

prairie(3), prairie_reserve(3) and prairie_jemalloc(3) say what the comments of the public headers say, and
prairie.conf(5) what docs/options.md does. prairie(1) comes from the prairie command itself (prairie man).
With --check nothing is written, and the exit code is 1 when a page is not current.
"""
import re
import sys
from pathlib import Path

import make_options
from written import is_current

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "man"
# The day of the words that stand in this file; what comes from elsewhere is dated by the version.
DATE = "November 23, 2026"

ATTRIBUTES = re.compile(r"\b(?:JEMALLOC_EXPORT|JEMALLOC_NOTHROW|JEMALLOC_CXX_THROW|JEMALLOC_ALLOC_SIZE2?\([\d, ]+\)|extern|"
                        r"PRAIRIE_RESERVE_NAME\(\w+\)|__attribute__\(\(weak\)\))\s*")
TOKEN = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<define>^#define (?:MALLOCX_|MALLCTL_|PRAIRIE_VERSION).*?$)|^#[^\n]*$|"
                   r"^extern \"C\" \{$|^\}$|(?P<blank>\n\n)|(?P<declaration>^[A-Za-z](?:[^;{]|\{.*?^\})*;)", re.S | re.M)
FUNCTION = re.compile(r"^(?!#|typedef)[^({]*?(\w+)\(")
# A define, a struct, an enum, what is pointed to or a type in brackets, the type of a function, others: the first that fits.
NAMES = [re.compile(pattern) for pattern in (r"^#define (\w+)", r"^struct (\w+) \{", r"\} (\w+);$", r"\(\*?(\w+)\)\(",
                                             r"(\w+)\(", r"(\w+);$")]

PAGES = {
    "prairie": ("prairie/prairie.h", "the allocator under its own names, and what it tells about itself", """\
The functions of the standard,
.Xr malloc 3
and its family, and C++'s operator new and delete, need no header: a program that is linked with prairie, or has it preloaded,
has them from there.
The headers <prairie/inline.h> and <prairie/prairie.hpp> describe themselves.
"""),
    "prairie_reserve": ("prairie/reserve.h", "a reserve of memory, functions that never return NULL, and limits", ""),
    "prairie_jemalloc": ("jemalloc/jemalloc.h", "the interface that users of jemalloc know", ""),
}
# The system has pages of these names.
STANDARD = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memalign", "valloc", "pvalloc",
            "malloc_usable_size"}
SEE_ALSO = [("1", "prairie"), ("3", "malloc"), ("3", "prairie"), ("3", "prairie_jemalloc"), ("3", "prairie_reserve"),
            ("5", "prairie.conf")]


def roff(text):
    """Words as roff takes them: `code` in bold, links as their words, a line for each sentence. Brackets around a link say nothing
    without it."""
    text = re.sub(r"\s\(\[[^\]]*\]\([^)]*\)\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split())).replace("\\", "\\e")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text).replace("-", "\\-")
    text = re.sub(r"(?<=[a-z])\\-(?=[a-z])", "-", text)
    lines = re.sub(r"(?<=[a-z0-9)*RA-Z]{2}[.?!]) (?=[A-Z`*\\])", "\n", text).split("\n")
    return "".join(("\\&" if line[:1] in ".'" else "") + line + "\n" for line in lines)


def literal(text):
    return ".Bd -literal -compact\n" + re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e"), flags=re.M) + "\n.Ed\n"


def comment_text(comment):
    """The paragraphs of a comment."""
    lines = [re.sub(r"^ ?\*(?: |$)", "", line.strip()) for line in comment[2:-2].strip().splitlines()]
    return [part for part in "\n".join(lines).split("\n\n") if part.strip()]


def paragraphs(parts):
    """Those that are a list, with two spaces or more inside a line, stay as they are."""
    return "".join(".Pp\n" + (literal(part) if re.search(r"\S {2,}\S", part) else roff(part)) for part in parts)


def read_header(path):
    """The words at the head, and groups: a comment, and what is declared below it up to a blank line or the next."""
    head, *rest = TOKEN.finditer((ROOT / "include" / path).read_text())
    words = comment_text(head["comment"])
    words[-1] = re.sub(r"\n?SPDX.*", "", words[-1])
    groups = [("", [])]
    for token in rest:
        if token["blank"] or token["comment"]:
            text = token["comment"] or ""
            groups.append(("" if text.startswith("/* ----") else text, []))
        elif token["define"] or token["declaration"]:
            code = ATTRIBUTES.sub("", token["define"] or token["declaration"])
            code = re.sub(r"JEMALLOC_RENAME\((\w+), (\w+)\)|\bje_", r"\1\2", code)
            groups[-1][1].append(re.sub(r"\s+;$", ";", code.strip()))
    return words[1:], [group for group in groups if group[1]]


def name_of(code):
    return next(found.group(1) for found in (pattern.search(code) for pattern in [FUNCTION, *NAMES]) if found)


def is_function(code):
    return FUNCTION.match(code) is not None


def arguments(code):
    """What stands in the brackets, cut at the commas between them."""
    inside, depth, parts = code[code.index("(") + 1:code.rindex(")")], 0, [""]
    for letter in " ".join(inside.split()):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def synopsis(code):
    result = re.match(r"(.*?)\w+\(", code, re.S).group(1).strip()
    fields = "".join(f'.Fa "{argument}"\n' for argument in arguments(code))
    return f'.Ft "{result}"\n.Fo {name_of(code)}\n{fields}.Fc\n'


def group_text(comment, codes):
    functions = [name_of(code) for code in codes if is_function(code)]
    others = "\n".join(code for code in codes if not is_function(code))
    heading = " , ".join(f"Fn {name}" for name in functions) or " , ".join(f"Vt {name_of(code)}" for code in codes)
    words = paragraphs(comment_text(comment)) if comment else ""
    if not words and not others:
        words = ".Pp\nAs the function of the standard, or of jemalloc, of this name.\n"
    return f".It {heading}\n" + (literal(others) if others else "") + words.removeprefix(".Pp\n")


def top(name, section, sentence, names):
    listed = " ,\n.Nm ".join([name] + [each for each in names if each != name and each not in STANDARD])
    return (f'.\\" Written by dev/make_man.py; change what it reads.\n.Dd {DATE}\n.Dt {name.upper()} {section}\n'
            f".Os prairie\n.Sh NAME\n.Nm {listed}\n.Nd {sentence}\n")


def see_also(*page):
    others = [f".Xr {name} {section}" for section, name in SEE_ALSO if (section, name) != page]
    return ".Sh SEE ALSO\n" + " ,\n".join(others) + "\n"


def header_page(name):
    path, sentence, more = PAGES[name]
    head, groups = read_header(path)
    functions = [code for _, codes in groups for code in codes if is_function(code)]
    library = ".Sh LIBRARY\n.Pa libprairie.so , libprairie.a\n.Pq Fl lprairie\n"
    return "".join([top(name, 3, sentence, [name_of(code) for code in functions]), library,
                    f".Sh SYNOPSIS\n.In {path}\n", *map(synopsis, functions),
                    ".Sh DESCRIPTION\n", paragraphs(head).removeprefix(".Pp\n"), ".Pp\n" + more if more else "",
                    ".Bl -tag -width Ds\n", *(group_text(*group) for group in groups), ".El\n", see_also("3", name)])


def markdown(text):
    """Paragraphs, lists, a table and blocks of code, as the words of docs/options.md have them."""
    out = []
    for block in re.split(r"\n\n", re.sub(r"<!--.*?-->\n*", "", text).strip()):
        if block.startswith("```"):
            out.append(".Pp\n" + literal("\n".join(block.splitlines()[1:-1])))
        elif block.startswith("## "):
            out.append(f".Sh {block[3:].upper()}\n")
        elif block.startswith("| "):
            rows = [row.strip("| ").split(" | ") for row in block.splitlines()[2:]]
            out.append(".Bl -bullet\n" + "".join(".It\n" + roff(f"{row[0]} ({row[1]})") for row in rows) + ".El\n")
        elif block.startswith("- "):
            out.append(".Bl -bullet\n" + "".join(".It\n" + roff(item) for item in re.split(r"^- ", block, flags=re.M)[1:])
                       + ".El\n")
        elif not block.startswith("# "):
            out.append(".Pp\n" + roff(block))
    return re.sub(r"(\.Sh .*\n)\.Pp\n", r"\1", "".join(out))


def option_text(row):
    value, default = make_options.value_text(row)
    takes = f"{value}; default: {default}" if default else value
    return f".It Cm {row[0]}\n{roff('(' + takes + ')')}.br\n{roff(row[7])}"


def options_page():
    rows = make_options.table()
    lists = {mode: "".join(option_text(row) for row in rows if make_options.mode_of(row) == mode)
             for mode in make_options.MODES}
    titles = {"obeyed": "WHAT CAN BE SET", "sampler": "PROFILING", "kept": "UNDERSTOOD, AND WITHOUT EFFECT"}
    words = re.sub(r"\n\|.*", "", make_options.KEPT.split("\n\n", 2)[1])
    parts = [f".Sh {titles[mode]}\n" + (roff(words) if mode == "kept" else "")
             + f".Bl -tag -width Ds\n{lists[mode]}.El\n" for mode in titles]
    return (top("prairie.conf", 5, "options of the prairie memory allocator", [])
            + ".Sh DESCRIPTION\n" + markdown(make_options.HEAD).removeprefix(".Pp\n") + "".join(parts)
            + markdown(make_options.TAIL) + see_also("5", "prairie.conf"))


def pages():
    yield FOLDER / "prairie.conf.5", options_page()
    for name in PAGES:
        yield FOLDER / f"{name}.3", header_page(name)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    current = [is_current(path, text, sys.argv[1:] == ["--check"],
                          f"{path.relative_to(ROOT)} is not what the headers and options say; dev/make_man.py writes it")
               for path, text in pages()]
    return 0 if all(current) else 1


if __name__ == "__main__":
    sys.exit(main())
