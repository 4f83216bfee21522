"""Average displacement error of tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics._means import mean_over_windows


def average_displacement_error(
    measured: Float[np.ndarray, "windows steps 2"], predicted: Float[np.ndarray, "windows steps 2"]
) -> float:
    """The mean distance between the tracks, in m; NaN if no point was measured.

    With d[w, i] = |measured[w, i] - predicted[w, i]|, it is the mean over windows w of the mean of
    d[w, i] over the valid steps i of that window, as in UniTraj. So a window of which little was
    measured weighs as much as a complete one. A point is valid where both coordinates were
    measured; a predicted NaN at a valid point makes the score NaN.
    """
    distance = np.linalg.norm(measured - predicted, axis=-1)
    return mean_over_windows(distance, ~np.isnan(measured.sum(axis=-1)))


METRIC = average_displacement_error
KIND: Kind = "track"
