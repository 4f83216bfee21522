"""Average displacement error of tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_windows
from physsm.metrics._metric import Column, Metric


def ade(
    measured: Float[np.ndarray, "windows steps 2"], predicted: Float[np.ndarray, "windows steps 2"]
) -> float:
    """Average displacement error: the mean distance between the tracks, in m.

    With d[w, i] = |measured[w, i] - predicted[w, i]|, it is the mean over windows w of the mean of
    d[w, i] over the valid steps i of that window, as in UniTraj. So a window with few measurements
    weighs as much as a complete one. A point is valid where both coordinates were measured; a
    predicted NaN at a valid point makes the score NaN. Without a valid point the score is NaN.
    """
    distance = np.linalg.norm(measured - predicted, axis=-1)
    return mean_over_windows(distance, ~np.isnan(measured.sum(axis=-1)))


METRIC = Metric(
    function=ade,
    description="mean distance between the tracks",
    needs="positions",
    unit="m",
    order=60,
    columns=(
        Column(key="in_ade", heading="ADE", part="in", ranking=2),
        Column(key="out_ade", heading="late ADE", part="out"),
    ),
)
