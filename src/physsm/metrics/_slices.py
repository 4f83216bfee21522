"""A metric of values by channel and by lead time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from jaxtyping import Float

ValueMetric = Callable[[np.ndarray, np.ndarray], float]


def by_channel(
    metric: ValueMetric,
    measured: Float[np.ndarray, "windows steps channels"],
    predicted: Float[np.ndarray, "windows steps channels"],
) -> list[float]:
    """Metric of each channel over all windows and steps, in the order of the channels."""
    channels = range(measured.shape[-1])
    return [metric(measured[..., c], predicted[..., c]) for c in channels]


def by_horizon(
    metric: ValueMetric,
    measured: Float[np.ndarray, "windows steps channels"],
    predicted: Float[np.ndarray, "windows steps channels"],
    parts: int = 10,
) -> list[tuple[tuple[int, int], float]]:
    """Metric of consecutive parts of the horizon: pairs of (first step, one past the last), value.

    The horizon has `parts` parts, or one for each step where there are fewer steps. Their lengths
    differ by at most one step.
    """
    steps = measured.shape[1]
    number = min(parts, steps)
    edges = [k * steps // number for k in range(number + 1)] if number else []
    return [
        ((start, stop), metric(measured[:, start:stop], predicted[:, start:stop]))
        for start, stop in pairwise(edges)
    ]
