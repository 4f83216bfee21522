"""Tiles of a history: consecutive windows, with the times to interpolate inside each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel
from physsm.data.window import Windows


class Tiles(NamedTuple):
    """Windows that share their end steps, with times and controls inside each, padded, time first.

    `place` has two indices for each series and wanted time: of the time inside its window, and of
    the window.
    """

    windows: Windows
    times: Float[np.ndarray, "times windows"]
    controls: Float[np.ndarray, "times windows controls"]
    place: tuple[Int[np.ndarray, "series steps"], Int[np.ndarray, "series steps"]]


def tiles_of(panel: Panel, wanted: Float[np.ndarray, "series steps"], context: int) -> Tiles:
    """Windows of at most `context` time steps over each series, with the `wanted` times."""
    series, start, stop, tile = [], [], [], np.zeros(wanted.shape, np.int64)
    for i, one in enumerate(panel):
        steps = len(one.times)
        starts = np.arange(0, max(steps - 1, 1), context - 1)
        step = np.searchsorted(one.times, wanted[i], side="right") - 1
        tile[i] = len(series) + np.clip(step // (context - 1), 0, len(starts) - 1)
        series += [i] * len(starts)
        start += starts.tolist()
        stop += np.minimum(starts + context, steps).tolist()
    ends = np.array(stop, np.int64)
    windows = Windows(
        series=np.array(series, np.int64),
        start=np.array(start, np.int64),
        boundary=ends,
        stop=ends,
    )
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
    return Tiles(windows=windows, times=times, controls=controls, place=place)
