"""A point metric for each channel and for parts of the horizon."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from jaxtyping import Float

PointMetric = Callable[[np.ndarray, np.ndarray], float]


def by_channel(
    metric: PointMetric,
    measured: Float[np.ndarray, "windows steps channels"],
    predicted: Float[np.ndarray, "windows steps channels"],
) -> list[float]:
    """The metric of each channel over all windows and steps, in the order of the channels."""
    channels = range(measured.shape[-1])
    return [metric(measured[..., c], predicted[..., c]) for c in channels]


def by_horizon(
    metric: PointMetric,
    measured: Float[np.ndarray, "windows steps channels"],
    predicted: Float[np.ndarray, "windows steps channels"],
    parts: int = 10,
) -> list[tuple[tuple[int, int], float]]:
    """The metric of consecutive parts of the steps: pairs of (first, one past the last) and value.

    There are `parts` of them, or as many as steps where those are fewer; their lengths differ by
    at most one step.
    """
    steps = measured.shape[1]
    number = min(parts, steps)
    edges = [k * steps // number for k in range(number + 1)] if number else []
    return [
        ((start, stop), metric(measured[:, start:stop], predicted[:, start:stop]))
        for start, stop in pairwise(edges)
    ]
