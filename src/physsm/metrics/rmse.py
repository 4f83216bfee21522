"""Root mean squared error."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics.mse import mean_squared_error


def root_mean_squared_error(
    measured: Float[np.ndarray, "*cells"], predicted: Float[np.ndarray, "*cells"]
) -> float:
    """The square root of the mean squared error, in the cells' units; NaN if none was measured.

    One root of the mean over all cells, not a mean of roots: parts of a data set are joined by
    their squares.
    """
    return math.sqrt(mean_squared_error(measured, predicted))


METRIC = root_mean_squared_error
KIND: Kind = "point"
