"""Root mean squared error."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from physsm.metrics._metric import Column, Metric
from physsm.metrics.mse import mse


def rmse(measured: Float[np.ndarray, "*cells"], predicted: Float[np.ndarray, "*cells"]) -> float:
    """Root mean squared error, in the units of the cells; NaN if no cell was measured.

    One root of the mean over all cells, not a mean of roots: parts of a data set are joined by
    their squares.
    """
    return math.sqrt(mse(measured, predicted))


METRIC = Metric(
    function=rmse,
    description="root mean squared error",
    needs="values",
    is_mean=False,
    order=30,
    columns=(
        Column(key="interp_rmse", heading="interp RMSE", part="interp", shown="files"),
        Column(key="extrap_rmse", heading="extrap RMSE", part="extrap", shown="files"),
    ),
)
