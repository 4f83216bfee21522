"""Mean squared error."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_samples
from physsm.metrics._metric import Column, Metric


def mse(measured: Float[np.ndarray, "*cells"], predicted: Float[np.ndarray, "*cells"]) -> float:
    """Mean squared error: the mean of (measured - predicted)^2 over the measured cells.

    NaN if no cell was measured. Both arrays are in the same units: scale them first where channels
    have different ones. A predicted NaN in a measured cell makes the score NaN.
    """
    return mean_over_samples((measured - predicted)[~np.isnan(measured)] ** 2)


METRIC = Metric(
    function=mse,
    description="mean squared error",
    needs="values",
    order=20,
    columns=(
        Column(key="interp_mse", heading="interp MSE", part="interp"),
        Column(key="window_mse", heading="window MSE", part="window", shown="benchmarks"),
        Column(key="extrap_mse", heading="extrap MSE", part="extrap"),
        Column(
            key="extrap_mse_debiased",
            heading="debiased MSE",
            part="extrap",
            variant="debiased",
            shown="benchmarks",
        ),
    ),
)
