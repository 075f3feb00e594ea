#!/usr/bin/env python3
# make_options.py - writes docs/options.md from the table of options in src/base/options.c.
# SPDX-License-Identifier: MIT
"""Usage: make_options.py [--check]

A small program takes the real table in and prints it, so that the page says what the library obeys.
With --check nothing is written, and the exit code is 1 when the page is not current.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"

PRINTER = r"""
#include "base/options.c"
#include <stdio.h>
void port_write_error(const char *text, size_t length_bytes) { (void)text, (void)length_bytes; }
int main(void)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        printf("%s\t%d\t%llu\t%llu\t%llu\t%llu\t%s\n", row->name, row->is_bool,
               (unsigned long long)row->default_value, (unsigned long long)row->least,
               (unsigned long long)row->most, (unsigned long long)option_values[i], row->sentence);
    }
    return 0;
}
"""

HEAD = """# Options

<!-- Written by dev/make_options.py from the table in src/base/options.c; change it there. -->

A program reads its options once, before `main`, from the environment variable `PRAIRIE_CONF`: pairs
of a key and a value, separated by commas, without spaces.

```sh
PRAIRIE_CONF="stats_print:true,arenas:4" LD_PRELOAD=/usr/local/lib/libprairie.so program
```

| key | value | default | what it does |
|---|---|---|---|
"""

TAIL = """
- A pair that is not understood is ignored and [said on the standard
  error](errors.md#prairie-prairie_conf-bad-pair-pair); the other pairs count.
- When a key comes twice, the last one counts.
- A program that runs with more rights than its user (set-user-ID, file capabilities) ignores the
  variable.
- `stats_print:true` keeps a copy of the standard error open, on a file descriptor of 200 or above:
  some programs close theirs before they end.
- Child processes inherit the variable, as they do `LD_PRELOAD`.
- Only the library that answers under `malloc`'s own names reads it. A program built with
  `PRAIRIE_FACE_NONE` has no options.

[Tuning](tuning.md) says when which of them is worth a try. `mallopt` accepts the parameters of the
GNU C library and changes nothing.
"""


def table():
    """The rows that the compiled table prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "options"
        subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-I", ROOT / "src", "-x", "c", "-",
                        "-o", program], input=PRINTER, text=True, check=True)
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in lines.splitlines()]


def row_text(row):
    name, is_bool, default, least, most, _, sentence = row
    words = ("false", "true")
    if is_bool == "1":
        return f"| `{name}` | `true` or `false` | `{words[int(default)]}` | {sentence} |"
    return f"| `{name}` | {least} to {most} | {default} | {sentence} |"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    rows = table()
    wrong = [row[0] for row in rows if row[2] != row[5]]
    if wrong:
        print(f"src/base/options.c: option_values starts with another default: {', '.join(wrong)}")
        return 1
    page = HEAD + "".join(row_text(row) + "\n" for row in rows) + TAIL
    if sys.argv[1:] == ["--check"]:
        if PAGE.is_file() and PAGE.read_text() == page:
            return 0
        print("docs/options.md is not what src/base/options.c says; dev/make_options.py writes it")
        return 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
