#!/usr/bin/env python3
# make_options.py - writes docs/options.md from the list of options in src/base/option_list.h.
# SPDX-License-Identifier: MIT
"""Usage: make_options.py [--check]

A small program takes the real list in and prints it, so that the page says what the library obeys.
With --check nothing is written, and the exit code is 1 when the page is not current.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

from written import is_current

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"

PRINTER = r"""
#include "base/options.c"
#include <stdio.h>
void port_write_error(const char *text, size_t length_bytes) { (void)text, (void)length_bytes; }
void fatal(const char *what) { (void)what; __builtin_trap(); }
static void print(enum option option, const char *standard, const char *sentence)
{
    const struct option_row *row = &option_rows[option];
    printf("%s\t%d\t%d\t%s\t%lld\t%lld\t%llu\t%s\t", row->name, row->kind, row->mode, standard,
           (long long)option_values[option], (long long)row->least,
           (unsigned long long)row->most, sentence);
    if (row->kind == OPTION_KIND_TEXT) printf("%s", row->words);
    else for (const char *word = row->words; *word != 0; word += __builtin_strlen(word) + 1)
        printf("%s ", word);
    printf("\n");
}
int main(void)
{
#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) \
    print(OPTION_##id, #kind, sentence);
#include "base/option_list.h"
}
"""

HEAD = """# Options

<!-- Written by dev/make_options.py from src/base/option_list.h; change it there. -->

A program reads its options once, before `main`: pairs of a key and a value, separated by commas,
without spaces.

```sh
MALLOC_CONF="narenas:4,dirty_decay_ms:5000" LD_PRELOAD=/usr/local/lib/libprairie.so program
```

They come from these places, in this order; when a key comes twice, the last one counts.

| place | for whom |
|---|---|
| the variable `malloc_conf`, a `const char *` that the program defines | its author |
| the symbolic link `/etc/malloc.conf`, which leads to the text itself: `ln -s narenas:4 /etc/malloc.conf` | the administrator |
| the environment variable `MALLOC_CONF` | the user |
| the environment variable `PRAIRIE_CONF`: the same for prairie alone, where a jemalloc would read `MALLOC_CONF`, too | the user |
| the variable `malloc_conf_2_conf_harder` of the program | its author |

"""

OBEYED = """## What can be set

| key | value | default | what it does |
|---|---|---|---|
"""

SAMPLER = """
## Profiling

| key | value | default | what it does |
|---|---|---|---|
"""

KEPT = """
## Understood, and without effect

Long strings that were written for jemalloc are accepted as they are. These keys are checked, can be
read back as [`opt.` names](control.md), and change nothing.

| key | value | default | because |
|---|---|---|---|
"""

TAIL = """
## Notes

- `arenas` is another name for `narenas`, and `helper_thread` for `background_thread`;
  `lg_tcache_max` is `tcache_max` as a power of two.
- Numbers are written as in C: `10`, `0x10`, `010`; blanks and a sign may stand before one, as with jemalloc. One beyond its option's
  limits is refused. Where `clipped` stands beside an option, it counts as the nearest limit instead, and a negative one as the upper limit, as with
  jemalloc: `narenas:-1` is as many as there may be.
- A pair that is not understood is ignored and [said on the standard
  error](errors.md#prairie-invalid-conf-pair-pair-source); the other pairs count.
- A program that runs with more rights than its user (set-user-ID, file capabilities) ignores the
  environment.
- `stats_print:true` prints what [`malloc_stats_print`](control.md#statistics) prints. From
  `PRAIRIE_CONF`, and without `stats_print_opts`, it prints prairie's own short form.
- `stats_print:true` keeps a copy of the standard error open, on a file descriptor of 200 or above:
  some programs close theirs before they end. Messages go to descriptor 2 again when the program closes the copy.
- Child processes inherit the environment, as they do `LD_PRELOAD`.
- A library with a prefix reads `MALLOC_CONF` and a file with that prefix, and `PRAIRIE_CONF` as all do ([servers](switching.md#servers-that-carry-jemalloc-along)), and
  the Rust crate has `options!` besides. A library built with `PRAIRIE_OWN_NAMES` has no options; with `PRAIRIE_OWN_NAMES=2`,
  as the Rust crates build it, it has.

[Tuning](tuning.md) says when which of them is worth a try. `mallopt` accepts every parameter and
changes nothing.
"""

MODES = ("obeyed", "kept", "sampler")
CLIPPED = 4  # a bit beside the mode


def table():
    """The rows that the compiled list prints, in their three parts."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "options"
        subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-I", ROOT / "src", "-x", "c", "-",
                        "-o", program], input=PRINTER, text=True, check=True)
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in lines.splitlines()]


def mode_of(row):
    return MODES[int(row[2]) % CLIPPED]


def is_clipped(row):
    return int(row[2]) & CLIPPED != 0


def size_text(number):
    return "any" if int(number) >= 2**63 - 1 else number


def value_text(row):
    """What the option takes, and what it is without a word."""
    _, _, _, kind, default, least, most, _, words = row
    if kind == "BOOL":
        return "`true` or `false`", ("`false`", "`true`", None, "unset")[int(default)]
    if kind == "CHOICE":
        names = words.split(" ")[:int(most) + 1]
        if "N/A" in words or "supported" in words:
            names = [name for name in names if name]
        return ", ".join(f"`{name}`" for name in names), f"`{names[int(default)]}`"
    if kind == "TEXT":
        return "a text", f"`{words}`" if words else "none"
    if kind == "FRACTION":
        return "a fraction", str(int(default) / 65536).rstrip("0").rstrip(".")
    if kind == "IGNORED":
        return "anything", ""
    limits = f"{least} and more" if size_text(most) == "any" or int(most) == 2**32 - 1 else f"{least} to {most}"
    return limits + (", clipped" if is_clipped(row) else ""), default


def row_text(row):
    value, default = value_text(row)
    return f"| `{row[0]}` | {value} | {default} | {row[7]} |\n"


def page_text(rows):
    parts = {mode: "".join(row_text(row) for row in rows if mode_of(row) == mode) for mode in MODES}
    sampler = SAMPLER + parts["sampler"] if parts["sampler"] else ""
    return HEAD + OBEYED + parts["obeyed"] + sampler + KEPT + parts["kept"] + TAIL


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    current = is_current(PAGE, page_text(table()), sys.argv[1:] == ["--check"],
                         "docs/options.md is not what src/base/option_list.h says; dev/make_options.py writes it")
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
