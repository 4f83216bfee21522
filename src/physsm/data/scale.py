"""Statistics of the training part, by which all parts are scaled."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._values import Panel

Moments = tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]


def channel_moments(panel: Panel) -> Moments:
    """Mean and scale of each channel over its measurements; the scale is never zero."""
    observed = panel.observed
    values = np.where(observed, panel.values, 0)
    count = np.maximum(observed.sum((0, 1)), 1)
    mean = values.sum((0, 1)) / count
    spread = np.sqrt((np.where(observed, values - mean, 0) ** 2).sum((0, 1)) / count)
    return mean, _positive(spread, mean)


def control_moments(panel: Panel) -> Moments:
    """Mean and scale of each control over all rows; the scale is never zero."""
    valid = (np.arange(panel.times.shape[1]) < panel.lengths[:, None])[..., None]
    rows = max(int(panel.lengths.sum()), 1)
    mean = (panel.controls * valid).sum((0, 1)) / rows
    spread = np.sqrt((((panel.controls - mean) * valid) ** 2).sum((0, 1)) / rows)
    return mean, _positive(spread, mean)


def _positive(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The spread; for a constant its size, and 1 for a constant zero.

    A spread of a few roundings of the mean is no signal.
    """
    is_constant = spread <= 1e-13 * np.abs(mean)
    return np.where(is_constant, np.where(mean != 0, np.abs(mean), 1.0), spread)
