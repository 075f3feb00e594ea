"""Tables of plain text, for people and for logs."""
# SPDX-License-Identifier: MIT


def lay_out(rows, left=(0,)):
    """Lines of a table. The first row is its head; columns in `left` are flush left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if column in left else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    rules = ["-" * width if name.strip() else " " * width for name, width in zip(rows[0], widths)]
    lines.insert(1, "  ".join(rules).rstrip())
    return lines


def significant(value, digits=3):
    """A number with so many significant digits and no exponent, thousands set apart."""
    if value == 0:
        return "0"
    magnitude = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, digits - magnitude)}f}"


def mebibytes(kibibytes):
    return significant(kibibytes / 1024)


def change(new, old):
    """How much more or less, in per cent of the old."""
    if old == 0:
        return "-"
    return f"{(new - old) / old * 100:+.1f} %"
