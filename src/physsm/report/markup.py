"""HTML of text and numbers. Functions escape their arguments, unless they say otherwise."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from physsm.report.contents import Number

NOTHING = "–"
_DIGITS = 4
_SPACE = "\u00a0"  # a number and its unit stay on one line
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Characters not allowed in HTML and XML: control characters, lone surrogates, non-characters.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Column(NamedTuple):
    """Column of a table; numbers are right-aligned."""

    heading: str
    is_number: bool = False


def printable(text: str) -> str:
    """Text with a replacement character for each forbidden one."""
    return _FORBIDDEN.sub("\ufffd", text)


def escape(text: str) -> str:
    """Markup that shows exactly this text."""
    return html.escape(printable(text))


def number(value: Number) -> str:
    """Number with four significant digits; a dash if it is missing or not finite."""
    if value is None or not is_finite(value):
        return NOTHING
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 6:
        text = f"{value:.{max(0, _DIGITS - 1 - exponent)}f}"
    else:
        mantissa, power = f"{value:.{_DIGITS - 1}e}".split("e")
        text = f"{mantissa}×{power_of_ten(int(power))}"
    return text.replace("-", "−")


def brief(value: Number) -> str:
    """Number for running text: four significant digits, without trailing zeros."""
    text = number(value)
    return text if "." not in text or "×" in text else text.rstrip("0").rstrip(".")


def share(value: Number) -> str:
    """Share of one as a percentage."""
    if value is None or not is_finite(value):
        return NOTHING
    return f"{100 * value:.3g}{_SPACE}%".replace("-", "−")


def duration(seconds: Number) -> str:
    """Duration in seconds, in minutes from two minutes on, in hours from two hours on."""
    if seconds is None or not is_finite(seconds):
        return NOTHING
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g}{_SPACE}{unit}"
    return f"{seconds:.3g}{_SPACE}s"


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """Number and noun, such as `1 warning` or `2 warnings`."""
    return f"{amount} {noun if amount == 1 else plural or noun + 's'}"


def power_of_ten(exponent: int) -> str:
    """Power of ten, such as 10⁻³."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def is_finite(value: float | int) -> bool:
    """Whether a number is finite as a float; an integer too large for a float is not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], marked: int | None = None
) -> str:
    """Table that scrolls by itself on a narrow page.

    Cells are markup; the first cell of each row is its heading. `marked` is the highlighted row.
    """
    head = "".join(f"<th scope=col{_class(c)}>{escape(c.heading)}</th>" for c in columns)
    body = []
    for i, row in enumerate(rows):
        cells = "".join(
            f"<td{_class(column)}>{cell}</td>"
            for column, cell in zip(columns[1:], row[1:], strict=True)
        )
        mark = " class=ours" if i == marked else ""
        body.append(f"<tr{mark}><th scope=row>{row[0]}</th>{cells}</tr>\n")
    return (
        f"<div class=scroll><table>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{''.join(body)}</tbody>\n</table></div>"
    )


def _class(column: Column) -> str:
    return " class=number" if column.is_number else ""
