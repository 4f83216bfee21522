"""Summary statistics of a panel: times, gaps, missing cells, ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from physsm._values import Panel

QUANTILES: Final = (0.0, 0.05, 0.5, 0.95, 1.0)

_BLOCK = 4_000_000  # cells per pass: a video has a hundred million


@dataclass(frozen=True)
class Column:
    """Statistics of a channel or control; `missing` is the share of rows without a value.

    Without any value, the other numbers are NaN. `std` divides by the number of values.
    """

    name: str
    missing: float
    minimum: float
    maximum: float
    mean: float
    std: float


@dataclass(frozen=True)
class LargestGap:
    """Largest gap (the first, if several are equal): its series and the times around it."""

    series: str
    before: float
    after: float


@dataclass(frozen=True)
class Description:
    """Summary statistics of a panel. Times and gaps are in the unit of the panel.

    `gaps` are the quantiles of all gaps `t[i+1] - t[i]` at `QUANTILES`. Both `gaps` and
    `largest_gap` are None if no series has two rows. `lengths` are the rows of the shortest, the
    median and the longest series.
    """

    series: int
    rows: int
    lengths: tuple[int, float, int]
    first_time: float
    last_time: float
    gaps: tuple[float, ...] | None
    largest_gap: LargestGap | None
    channels: tuple[Column, ...]
    controls: tuple[Column, ...]


def describe(panel: Panel) -> Description:
    """Summary statistics of a panel with at least one row, without its padding."""
    valid = np.arange(panel.times.shape[1]) < panel.lengths[:, None]
    times = panel.times[valid]
    gaps = panel.gaps
    return Description(
        series=len(panel),
        rows=len(times),
        lengths=(
            int(panel.lengths.min()),
            float(np.median(panel.lengths)),
            int(panel.lengths.max()),
        ),
        first_time=float(times.min()),
        last_time=float(times.max()),
        gaps=tuple(np.quantile(gaps, QUANTILES).tolist()) if gaps.size else None,
        largest_gap=_largest_gap(panel) if gaps.size else None,
        channels=_columns(panel.channels, panel.values, valid),
        controls=_columns(panel.control_names, panel.controls, valid),
    )


def _largest_gap(panel: Panel) -> LargestGap:
    within = np.arange(1, panel.times.shape[1]) < panel.lengths[:, None]
    gaps = np.where(within, np.diff(panel.times, axis=1), -np.inf)
    series, row = np.unravel_index(gaps.argmax(), gaps.shape)
    before, after = panel.times[series, row : row + 2].tolist()
    return LargestGap(panel.ids[series], before, after)


def _columns(
    names: tuple[str, ...],
    values: Float[np.ndarray, "series steps columns"],
    valid: Bool[np.ndarray, "series steps"],
) -> tuple[Column, ...]:
    """Statistics of each column: first the range, then the moments in units of the range, so that
    no sum overflows.
    """
    lowest = np.full(len(names), np.inf)
    highest = np.full(len(names), -np.inf)
    count = np.zeros(len(names), np.int64)
    for block, has in _blocks(values, valid):
        lowest = np.minimum(lowest, block.min(axis=(0, 1), where=has, initial=np.inf))
        highest = np.maximum(highest, block.max(axis=(0, 1), where=has, initial=-np.inf))
        count += has.sum(axis=(0, 1))
    largest = np.where(count > 0, np.maximum(np.abs(lowest), np.abs(highest)), 0.0)
    # Division by a power of two does not round.
    size = np.ldexp(1.0, np.minimum(np.frexp(largest)[1], 1023))
    divisor = np.maximum(count, 1)
    mean = sum(((b / size).sum(axis=(0, 1), where=has) for b, has in _blocks(values, valid)), 0.0)
    mean = mean / divisor
    squares = sum(
        (((b / size - mean) ** 2).sum(axis=(0, 1), where=has) for b, has in _blocks(values, valid)),
        np.zeros(len(names)),
    )
    std = np.sqrt(squares / divisor)
    missing = (valid.sum() - count) / valid.sum()
    numbers = np.stack([lowest, highest, mean * size, std * size])
    numbers = np.where(count > 0, numbers, np.nan)
    return tuple(
        Column(name, float(missing[k]), *numbers[:, k].tolist()) for k, name in enumerate(names)
    )


def _blocks(
    values: Float[np.ndarray, "series steps columns"], valid: Bool[np.ndarray, "series steps"]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of series in double precision, each with the mask of its values."""
    block_size = max(1, _BLOCK // max(1, values[0].size))
    for first in range(0, len(values), block_size):
        block = values[first : first + block_size].astype(np.float64)
        yield block, valid[first : first + block_size, :, None] & ~np.isnan(block)
