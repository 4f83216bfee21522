"""Functions that may stand in entries but never as columns: min, max, abs, sign, tanh, clip.

They are functions of our own, not SymPy's: those of SymPy search for simplifications, which is slow
and depends on assumptions about symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import sympy as sp
from sympy.core.sorting import default_sort_key


class EntryFunction(sp.Function):
    """Function without a useful chain rule; `written` is its name in the physics language."""

    written = ""


class Minimum(EntryFunction):
    """Smallest of two or more values."""

    written = "min"


class Maximum(EntryFunction):
    """Largest of two or more values."""

    written = "max"


class Magnitude(EntryFunction):
    """Absolute value."""

    written = "abs"


class Sign(EntryFunction):
    """Sign: -1, 0 or 1."""

    written = "sign"


class Tanh(EntryFunction):
    """Hyperbolic tangent."""

    written = "tanh"


class Clip(EntryFunction):
    """Value limited to the range from a lower to an upper end."""

    written = "clip"


_CLASSES = {one.written: one for one in (Minimum, Maximum, Magnitude, Sign, Tanh, Clip)}


def apply(name: str, values: Sequence[sp.Expr]) -> sp.Expr:
    """Function of values, in a form in which equal terms of several equations cancel.

    The arguments of min and max have one order, with numbers last, as most people write them. abs
    drops a minus sign; sign and tanh pass it on.
    """
    function = _CLASSES[name]
    if name in ("min", "max"):
        values = sorted(values, key=lambda value: (value.is_number, default_sort_key(value)))
    elif name in ("abs", "sign", "tanh") and values[0].could_extract_minus_sign():
        positive = function(-values[0])
        return positive if name == "abs" else -positive  # type: ignore[return-value]
    return function(*values)  # type: ignore[return-value]


def at_numbers(name: str, numbers: Sequence[sp.Rational]) -> sp.Rational | float:
    """Value of a function at exact numbers: exact, too, but for tanh."""
    if name == "tanh":
        return math.tanh(float(numbers[0]))
    ordered = sorted(numbers)  # type: ignore[type-var]
    match name:
        case "min":
            return ordered[0]
        case "max":
            return ordered[-1]
        case "clip":
            return ordered[1]  # the middle one, as the ends are in order
    size = max(numbers[0], -numbers[0])
    return size if name == "abs" or size == 0 else numbers[0] / size  # type: ignore[return-value]
