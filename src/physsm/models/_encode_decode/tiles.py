"""A history as windows, one after the other, and where times inside of it are in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel
from physsm.data.window import Windows


class Tiles(NamedTuple):
    """Windows that share their end rows, and what each is asked for, padded, time first.

    `place` are two indices for each series and wanted time: which of its window's times it is, and
    which window.
    """

    windows: Windows
    times: Float[np.ndarray, "times windows"]
    controls: Float[np.ndarray, "times windows controls"]
    place: tuple[Int[np.ndarray, "series steps"], Int[np.ndarray, "series steps"]]


def tiles_of(panel: Panel, wanted: Float[np.ndarray, "series steps"], context: int) -> Tiles:
    """Windows of at most `context` rows over each series, with the times wanted inside them."""
    series, start, stop, tile = [], [], [], np.zeros(wanted.shape, np.int64)
    for i, one in enumerate(panel):
        rows = len(one.times)
        starts = np.arange(0, max(rows - 1, 1), context - 1)
        row = np.searchsorted(one.times, wanted[i], side="right") - 1
        tile[i] = len(series) + np.clip(row // (context - 1), 0, len(starts) - 1)
        series += [i] * len(starts)
        start += starts.tolist()
        stop += np.minimum(starts + context, rows).tolist()
    windows = Windows(*(np.array(column, np.int64) for column in (series, start, stop, stop)))
    number = np.bincount(tile.reshape(-1), minlength=windows.number)
    order = np.argsort(tile.reshape(-1), kind="stable")
    first = np.cumsum(number) - number
    rank = np.empty(tile.size, np.int64)
    rank[order] = np.arange(tile.size) - first[tile.reshape(-1)[order]]
    place = (rank.reshape(tile.shape), tile)
    times = np.repeat(panel.times[windows.series, windows.start][None], number.max(), axis=0)
    controls = np.repeat(panel.controls[windows.series, windows.start][None], number.max(), axis=0)
    times[place] = wanted
    for i, one in enumerate(panel):
        at = (place[0][i], place[1][i])
        columns = [np.interp(wanted[i], one.times, column) for column in one.controls.T]
        controls[at] = np.array(columns).reshape(-1, wanted.shape[1]).T
    return Tiles(windows, times, controls, place)
