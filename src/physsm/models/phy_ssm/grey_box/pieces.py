"""Pieces of series for multiple shooting: each is simulated from its own initial state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel, Series
from physsm.models._network.compiled import rounded_up

Numbers = Any  # arrays of JAX inside programs, of NumPy outside

_MOST_ROWS = 20_000  # of all pieces together; evenly spaced pieces are used of a longer table


class Pieces(NamedTuple):
    """Rows of pieces, scaled, padded at the end by rows of gap zero without measurements.

    `gaps[p, i]` is the time before row i of piece p, zero at its first row. `weight` is 1 where a
    channel was measured.
    """

    gaps: Float[Numbers, "pieces rows"]
    controls: Float[Numbers, "pieces rows controls"]
    values: Float[Numbers, "pieces rows channels"]
    weight: Float[Numbers, "pieces rows channels"]


class Cut(NamedTuple):
    """Pieces, and the series and first row of each in their panel. The last ones may only fill
    their number, and have no measurements.
    """

    pieces: Pieces
    series: Int[np.ndarray, " pieces"]
    first: Int[np.ndarray, " pieces"]

    @property
    def measured(self) -> Int[np.ndarray, " measured"]:
        """Indices of the pieces with measurements."""
        return np.flatnonzero(np.asarray(self.pieces.weight).any((1, 2)))


def number_of_pieces(panel: Panel, length: int) -> int:
    """Number of pieces into which `cut` cuts a panel, without those that fill a number."""
    return int(np.maximum(1, -(-(panel.lengths - 1) // max(length - 1, 1))).sum())


def cut(scaled: Panel, length: int, most_rows: int = _MOST_ROWS, least_pieces: int = 1) -> Cut:
    """Consecutive pieces of at most `length` rows of a scaled panel. Neighbours share one row, so
    that no transition is lost. Empty pieces fill the number to at least `least_pieces`.
    """
    series, first, stop = [], [], []
    for i, rows in enumerate(scaled.lengths.tolist()):
        count = max(1, -(-(rows - 1) // max(length - 1, 1)))
        edges = np.linspace(0, rows - 1, count + 1).round().astype(int)
        series += [i] * count
        first += edges[:-1].tolist()
        stop += (edges[1:] + 1).tolist()
    chosen = _evenly(np.array(stop) - np.array(first), most_rows)
    rows = np.array([series, first, stop])[:, chosen]
    least = max(len(chosen), min(least_pieces, most_rows // length))
    return _gather(scaled, rows, (least, rounded_up(length)))


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Indices of evenly spaced pieces with at most `most` rows together, at least one piece."""
    share = min(1.0, most / rows.sum())
    count = max(1, int(share * len(rows)))
    return np.unique(np.linspace(0, len(rows) - 1, count).round().astype(int))


def _gather(scaled: Panel, rows: Int[np.ndarray, "3 pieces"], shape: tuple[int, int]) -> Cut:
    """Pieces padded to a length, and their number to a power of two: few programs are compiled."""
    least, length = shape
    number = 1 << (least - 1).bit_length()
    missing = number - rows.shape[1]
    series, first, stop = np.pad(rows, ((0, 0), (0, missing)), "edge")
    row = first[:, None] + np.arange(length)
    valid = row < stop[:, None]
    inside = np.minimum(row, stop[:, None] - 1)
    at = series[:, None], inside
    times, values = scaled.times[at], scaled.values[at]
    gaps = np.diff(times, axis=1, prepend=times[:, :1])
    valid[number - missing :] = False  # a piece that only fills the number has no measurements
    seen = ~np.isnan(values) & valid[..., None]
    pieces = Pieces(
        gaps=gaps,
        controls=scaled.controls[at],
        values=np.where(seen, values, 0.0),
        weight=seen.astype(float),
    )
    return Cut(pieces, series, first)


def thinned(panel: Panel, factor: int) -> Panel:
    """Every `factor`-th row of a panel; its controls are the means until the next kept row."""
    if factor <= 1:
        return panel
    kept = []
    for one in panel:
        starts = np.arange(0, len(one.times), factor)
        count = np.diff(np.append(starts, len(one.times)))[:, None]
        mean = np.add.reduceat(one.controls, starts, axis=0) / count
        kept.append(Series(one.id, one.times[starts], one.values[starts], mean))
    return replace(
        Panel.from_series(kept, panel.channels, panel.control_names), layout=panel.layout
    )
