"""Means and scales of the training part, which scale all parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from physsm._values import Panel

_CELLS = 100_000  # cells per pass

Moments = tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]


def channel_moments(panel: Panel) -> Moments:
    """Mean and scale of each channel over its measurements; the scale is never zero."""
    blocks = [panel.values[some] for some in _blocks(panel.values)]
    count = np.maximum(sum((~np.isnan(block)).sum((0, 1)) for block in blocks), 1)
    mean = sum(np.nansum(block, (0, 1), float) for block in blocks) / count
    squares = sum(np.nansum((block - mean) ** 2, (0, 1), float) for block in blocks)
    return mean, _positive(np.sqrt(squares / count), mean)


def control_moments(panel: Panel) -> Moments:
    """Mean and scale of each control over all rows; the scale is never zero."""
    valid = (np.arange(panel.times.shape[1]) < panel.lengths[:, None])[..., None]
    rows = max(int(panel.lengths.sum()), 1)
    mean = (panel.controls * valid).sum((0, 1)) / rows
    spread = np.sqrt((((panel.controls - mean) * valid) ** 2).sum((0, 1)) / rows)
    return mean, _positive(spread, mean)


def _blocks(table: np.ndarray) -> Iterator[slice]:
    """Blocks of series, so that intermediate arrays stay smaller than the panel."""
    together = max(1, _CELLS // max(1, table[:1].size))
    yield from (slice(first, first + together) for first in range(0, max(len(table), 1), together))


def _positive(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Positive scale: the standard deviation; for a constant its size, and 1 for a constant zero.

    A standard deviation of a few rounding errors of the mean counts as zero.
    """
    is_constant = spread <= 1e-13 * np.abs(mean)
    return np.where(is_constant, np.where(mean != 0, np.abs(mean), 1.0), spread)
