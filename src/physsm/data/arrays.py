"""Panels from NumPy arrays or lists of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from physsm._errors import DataError
from physsm._values import Panel
from physsm.data.frames import to_column
from physsm.data.raw import RawTable, duplicate
from physsm.data.table import make_panel

_KINDS = {"c": "complex numbers", "b": "truth values", "U": "text", "S": "bytes", "M": "dates"}


def panel_from_arrays(
    times: Any,
    values: Any,
    controls: Any = None,
    *,
    ids: Sequence[str] | Sequence[int] | None = None,
    channels: Sequence[str] | None = None,
    control_names: Sequence[str] | None = None,
) -> Panel:
    """Panel of arrays, or of lists with one array for each series.

    Args:
        times: (steps,) or (series, steps), or a list of one-dimensional arrays; numbers or
            `datetime64`. One array of times may serve several series.
        values: (steps, channels) or (series, steps, channels), or a list of (steps, channels).
            NaN means not measured.
        controls: like `values`; every entry must be finite.
        ids: one id for each series; by default 0, 1, ...
        channels: names of the channels; by default x0, x1, ...
        control_names: names of the controls; by default u0, u1, ...

    In errors, `row` counts the steps of a series from 1.
    """
    measured = _per_series("values", values)
    inputs = None if controls is None else _per_series("controls", controls)
    clocks = _per_series("times", times)
    if len(clocks) == 1:
        clocks = clocks * len(measured)
    _check_counts("times", len(clocks), len(measured))
    if inputs is not None:
        _check_counts("controls", len(inputs), len(measured))
    labels = [str(one) for one in (range(len(measured)) if ids is None else ids)]
    _check_counts("ids", len(labels), len(measured))
    if duplicate(labels) is not None:
        raise DataError(f"two series have the id {duplicate(labels)}", hint="give each its own")
    for role, arrays in (("values", measured), ("controls", inputs)):
        for label, clock, array in zip(labels, clocks, arrays or [], strict=arrays is not None):
            _check_steps(role, label, array, clock)

    names = _names("channels", channels, "x", measured)
    input_names = _names("controls", control_names, "u", inputs or [])
    lengths = [len(clock) for clock in clocks]
    series = np.repeat(np.array(labels, object), lengths).tolist()
    has_series = len(labels) > 1 or ids is not None
    stacked = np.concatenate(measured)
    if inputs is not None:
        stacked = np.hstack([stacked, np.concatenate(inputs)])
    columns = [to_column("time", np.concatenate(clocks))]
    columns += [pl.Series("series", series, pl.String)] if has_series else []
    columns += [to_column(name, stacked[:, k]) for k, name in enumerate([*names, *input_names])]
    twice = duplicate([column.name for column in columns])
    if twice is not None:
        raise DataError("two columns have the same name", column=twice, hint="rename one of them")
    rows = np.concatenate([np.arange(1, length + 1) for length in lengths])
    table = RawTable(pl.DataFrame(columns), rows, None, series if len(labels) > 1 else None)
    return make_panel(table, "time", "series" if has_series else None, names, input_names, "s")


def _per_series(role: str, given: Any) -> list[np.ndarray]:
    """Array of each series: one-dimensional for times, else with an axis of channels."""
    dimensions = 1 if role == "times" else 2
    try:
        if isinstance(given, list | tuple) and any(np.ndim(one) == dimensions for one in given):
            arrays = [_array(one) for one in given]
        else:
            whole = _array(given)
            arrays = list(whole) if whole.ndim == dimensions + 1 else [whole]
    except (TypeError, ValueError) as error:
        raise DataError(f"{role} cannot be made an array: {error}") from error
    if not arrays:
        raise DataError(f"{role} has no series")
    for array in arrays:
        if array.ndim != dimensions:
            one, many = ("(steps,)", "(series, steps)")
            if dimensions == 2:
                one, many = f"(steps, {role})", f"(series, steps, {role})"
            raise DataError(
                f"{role} has an array of the shape {array.shape}",
                hint=f"expected {one}, {many} or a list of arrays {one}",
            )
        if array.dtype.kind not in ("iufM" if role == "times" else "iuf"):
            raise DataError(f"{role} holds {_KINDS.get(array.dtype.kind, 'objects')}, not numbers")
    if len({array.dtype.kind == "M" for array in arrays}) > 1:
        raise DataError("times holds both numbers and dates")
    return arrays


def _array(given: Any) -> np.ndarray:
    if isinstance(given, np.ma.MaskedArray):
        return np.ma.filled(given.astype(np.float64), np.nan)
    return np.asarray(given)


def _check_counts(role: str, count: int, expected: int) -> None:
    if count != expected:
        raise DataError(f"{role} has {count} series, values has {expected}")


def _check_steps(role: str, label: str, array: np.ndarray, clock: np.ndarray) -> None:
    if len(clock) == 0:
        raise DataError(f"series {label} has no steps")
    if len(array) != len(clock):
        raise DataError(
            f"series {label}: {role} has {len(array)} steps, times has {len(clock)}",
            hint="for series of different lengths pass lists of arrays",
        )


def _names(
    role: str, names: Sequence[str] | None, letter: str, arrays: list[np.ndarray]
) -> list[str]:
    widths = {array.shape[1] for array in arrays}
    if len(widths) > 1:
        raise DataError(f"the series have different numbers of {role}: {sorted(widths)}")
    width = widths.pop() if widths else 0
    if names is None:
        return [f"{letter}{k}" for k in range(width)]
    if len(names) != width:
        raise DataError(f"{len(names)} names are given for {width} {role}")
    return list(names)
