"""Checks of arguments of the Python interface: a wrong one raises one clear sentence."""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from physsm._errors import ConfigError, DataError

LARGEST_SEED = 2**31 - 1


def number(value: Any, what: str) -> float:
    """A single finite number."""
    try:
        checked = float(value)
    except (TypeError, ValueError, OverflowError):
        checked = float("nan")
    if isinstance(value, bool | str | bytes) or not np.isfinite(checked):
        raise DataError(f"the {what} must be a finite number, and {value!r} was given")
    return checked


def whole_number(value: Any, what: str, least: int, most: int) -> int:
    """A whole number from `least` to `most`."""
    try:
        checked = operator.index(value)
    except TypeError:
        checked = None
    if checked is None or isinstance(value, bool) or not least <= checked <= most:
        raise ConfigError(
            f"the {what} must be a whole number from {least} to {most}, not {value!r}"
        )
    return checked


def numbers(values: Any, what: str) -> Float[np.ndarray, "..."]:
    """Array of numbers; None becomes NaN."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iufO" and array.size:
            raise TypeError
        return array.astype(float)
    except (TypeError, ValueError):
        shown = textwrap.shorten(repr(values), 60, placeholder=" ...")
        raise DataError(f"the {what} must be an array of numbers, and {shown} was given") from None


def merged(base: Mapping[Any, Any], changes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Settings with `changes` applied; nested tables are merged, not replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def is_array(values: Any) -> bool:
    """Whether `values` is a list or any library's array or column, and not a table."""
    if isinstance(values, list | tuple | range):
        return True
    is_table = hasattr(values, "columns") or hasattr(values, "column_names")
    return hasattr(values, "__array__") and not is_table
