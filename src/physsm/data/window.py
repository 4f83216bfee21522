"""Windows of a panel, and batches of their time steps.

A window is a context, which a model sees, and a target after it. Windows are indices; the panel is
never copied per window. A batch is time-major. Contexts end at the same step: shorter ones are
padded at the front with empty steps of gap zero, which leave every recurrent state unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._values import Panel, Query
from physsm.data.split import ENOUGH_SERIES

LEAST_CONTEXT = 2  # time steps: one has no gap


@dataclass(frozen=True)
class Sizes:
    """Sizes of windows in time steps: context, target, and stride between windows."""

    context: int
    horizon: int
    stride: int


class _SizeRule(NamedTuple):
    """Rule of default sizes: one row of context, horizon and stride for so many rows of the median
    series, at most so many of each, and the shares in words.
    """

    rows_per: tuple[int, int, int]
    most: tuple[int, int, int]
    words: tuple[str, str]


_MANY_SERIES = _SizeRule((2, 4, 20), (200, 100, 10), ("a half", "a quarter"))
_FEW_SERIES = _SizeRule((10, 10, 60), (200, 300, 10), ("a tenth", "a tenth"))


def _size_rule(panel: Panel) -> _SizeRule:
    """The rule for a panel. The ends of a few series are validation, and must hold a window."""
    return _MANY_SERIES if len(panel) >= ENOUGH_SERIES else _FEW_SERIES


def default_sizes(panel: Panel) -> Sizes:
    """Default sizes: a half, a quarter and a twentieth of the median series, at most 200, 100, 10;
    with fewer than five series a tenth, a tenth and a sixtieth, at most 200, 300, 10.
    """
    rule, typical = _size_rule(panel), int(np.median(panel.lengths))
    chosen = (
        min(most, max(least, typical // per))
        for per, most, least in zip(rule.rows_per, rule.most, (2, 1, 1), strict=True)
    )
    return Sizes(*chosen)


def default_size_words(panel: Panel) -> dict[str, str]:
    """How `default_sizes` chooses context and horizon, in words."""
    rule = _size_rule(panel)
    return {
        name: f"{words} of the median series, at most {most}"
        for name, words, most in zip(("context", "horizon"), rule.words, rule.most, strict=False)
    }


class Windows(NamedTuple):
    """Windows: w has steps `start[w]` to `boundary[w]` (context) and to `stop[w]` (target)."""

    series: Int[np.ndarray, " windows"]
    start: Int[np.ndarray, " windows"]
    boundary: Int[np.ndarray, " windows"]
    stop: Int[np.ndarray, " windows"]

    def __getitem__(self, chosen: object) -> Windows:  # type: ignore[override]
        return Windows(*(field[chosen] for field in tuple(self)))  # type: ignore[index]

    @property
    def number(self) -> int:
        """Number of windows."""
        return len(self.series)


@dataclass(frozen=True, eq=False)
class Part:
    """Part for training, validation or test: a panel and the windows of it that are used."""

    panel: Panel
    windows: Windows

    def covered(self) -> Part:
        """The same windows on the rows that they cover: each run of such rows is a series."""
        windows, rows = self.windows, self.panel.times.shape[1]
        edges = np.zeros((len(self.panel), rows + 2), np.int64)
        np.add.at(edges, (windows.series, windows.start + 1), 1)
        np.add.at(edges, (windows.series, windows.stop + 1), -1)
        is_edge = np.diff(edges.cumsum(1) > 0, axis=1)
        series, edge = np.nonzero(is_edge)  # of each run its first row, and one past its last
        source, first, last = series[::2], edge[::2], edge[1::2]
        run = np.searchsorted(source * rows + first, windows.series * rows + windows.start, "right")
        run, shift = run - 1, first[run - 1]
        pieces = self.panel.select(source).between(first, last)
        ids = tuple(f"{name}[{row}:]" for name, row in zip(pieces.ids, first, strict=True))
        moved = (column - shift for column in (windows.start, windows.boundary, windows.stop))
        return Part(replace(pieces, ids=ids), Windows(run, *moved))


class Batch(NamedTuple):
    """Time steps of some windows, time-major, single precision, without NaN.

    `gaps[i]` is the time before step i, zero in padding. `values` are the measurements, zero where
    `observed` is 0. The inputs of a model are `seen` (1 where a measurement is shown) and `last`,
    each channel's latest shown measurement up to and including the step, zero before the first.
    `valid` is 0 in padding.
    """

    gaps: Float[np.ndarray, "steps batch"]
    values: Float[np.ndarray, "steps batch channels"]
    observed: Float[np.ndarray, "steps batch channels"]
    last: Float[np.ndarray, "steps batch channels"]
    seen: Float[np.ndarray, "steps batch channels"]
    controls: Float[np.ndarray, "steps batch controls"]
    valid: Float[np.ndarray, "steps batch"]


def whole_series(panel: Panel, horizon: int) -> Windows:
    """One window per series: the last `horizon` steps are the target, all before the context."""
    series = np.arange(len(panel))
    return Windows(series, np.zeros_like(series), panel.lengths - horizon, panel.lengths)


def windows(panel: Panel, context: int, horizon: int, stride: int) -> Windows:
    """Windows at `stride`, including the last step of each series.

    A series shorter than `context + horizon` gives one window with a shorter context, if it has
    at least two steps before a whole target.
    """
    cuts: list[tuple[int, int, int, int]] = []
    for i, length in enumerate(panel.lengths.tolist()):
        last = length - horizon
        if last < LEAST_CONTEXT:
            continue
        boundaries = range(last, min(context, last) - 1, -stride)
        cuts += [(i, max(0, b - context), b, b + horizon) for b in reversed(boundaries)]
    columns = np.array(cuts, np.int64).reshape(-1, 4).T
    return Windows(*columns)


def narrowed(given: Windows, sizes: Sizes) -> Windows:
    """Windows with the same boundaries, of at most these sizes, at least `stride` apart."""
    start = np.maximum(given.start, given.boundary - sizes.context)
    stop = np.minimum(given.stop, given.boundary + sizes.horizon)
    chosen, nearest = [], {}
    for i in np.lexsort((given.boundary, given.series))[::-1].tolist():  # from the last one back
        series, boundary = int(given.series[i]), int(given.boundary[i])
        if series not in nearest or nearest[series] - boundary >= sizes.stride:
            chosen.append(i)
            nearest[series] = boundary
    return Windows(given.series, start, given.boundary, stop)[np.sort(np.array(chosen, np.int64))]


def largest_sizes(given: Windows) -> Sizes:
    """Longest context and target of the windows, and their smallest distance in a series."""
    order = np.lexsort((given.boundary, given.series))
    series, boundary = given.series[order], given.boundary[order]
    distance = np.diff(boundary)[np.diff(series) == 0]
    return Sizes(
        context=int((given.boundary - given.start).max(initial=2)),
        horizon=int((given.stop - given.boundary).max(initial=1)),
        stride=max(int(distance.min(initial=10**9)), 1) if distance.size else 1,
    )


def cut_windows(panel: Panel, chosen: Windows) -> tuple[Panel, Query, Panel]:
    """Windows as histories, queries without values, and targets, one series each."""
    series, start, boundary, stop = tuple(chosen)
    whole = panel.select(series)
    ids = tuple(f"{name}@{row}" for name, row in zip(whole.ids, boundary, strict=True))
    whole = replace(whole, ids=ids)
    target = whole.between(boundary, stop)
    query = Query(target.times, target.controls, target.lengths)
    return whole.between(start, boundary), query, target


def shuffled_batches(
    chosen: Windows, size: int, generator: np.random.Generator
) -> Iterator[Windows]:
    """Batches of `size` windows in random order; the last batch is filled with windows from the
    start of the order, so that all batches have one shape.
    """
    order = generator.permutation(chosen.number)
    missing = -len(order) % size
    order = np.concatenate([order, np.resize(order, missing)])
    for first in range(0, len(order), size):
        yield chosen[order[first : first + size]]


def gather(
    panel: Panel,
    chosen: Windows,
    context: int,
    horizon: int,
    first_gap: float,
    hide: tuple[float, np.random.Generator] | None = None,
) -> Batch:
    """Batch of windows: `context` steps, padded at the front, and `horizon`, padded at the end.

    `first_gap` is the gap before the first step of a window. The target is not shown. With `hide`,
    a random share of the cells of the context is hidden.
    """
    series, start, boundary, stop = tuple(chosen)
    rows = boundary[None, :] + np.arange(-context, horizon)[:, None]
    valid = (rows >= start) & (rows < stop)
    inside = np.clip(rows, start, stop - 1)
    times = panel.times[series, inside]
    before = panel.times[series, np.maximum(inside - 1, 0)]
    gaps = np.where(rows == start, first_gap, times - before) * valid
    values = panel.values[series, inside]
    observed = ~np.isnan(values) & valid[..., None]
    values = np.where(observed, values, 0)
    seen = observed & (np.arange(context + horizon) < context)[:, None, None]
    if hide is not None:
        share, generator = hide
        seen &= generator.random(seen.shape) >= share
    return Batch(
        gaps=gaps.astype(np.float32),
        values=values.astype(np.float32),
        observed=observed.astype(np.float32),
        last=hold_last(values, seen).astype(np.float32),
        seen=seen.astype(np.float32),
        controls=panel.controls[series, inside].astype(np.float32),
        valid=valid.astype(np.float32),
    )


def hold_last(values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Latest observed value of each channel along axis 0; zero before the first."""
    steps = np.arange(values.shape[0]).reshape((-1,) + (1,) * (values.ndim - 1))
    latest = np.maximum.accumulate(np.where(observed, steps, -1), axis=0)
    held = np.take_along_axis(values, np.maximum(latest, 0), axis=0)
    return np.where(latest >= 0, held, 0)
