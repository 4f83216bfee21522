"""Mean absolute error."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_samples
from physsm.metrics._metric import Column, Metric


def mae(measured: Float[np.ndarray, "*cells"], predicted: Float[np.ndarray, "*cells"]) -> float:
    """Mean absolute error: the mean of |measured - predicted| over the measured cells.

    NaN if no cell was measured. Both arrays are in the same units: scale them first where channels
    have different ones. A predicted NaN in a measured cell makes the score NaN, so that a model
    cannot leave out what is hard.
    """
    return mean_over_samples(np.abs(measured - predicted)[~np.isnan(measured)])


METRIC = Metric(
    function=mae,
    description="mean absolute error",
    needs="values",
    order=10,
    columns=(
        Column(key="interp_mae", heading="interp MAE", part="interp"),
        Column(key="window_mae", heading="window MAE", part="window", shown="benchmarks"),
        Column(key="extrap_mae", heading="extrap MAE", part="extrap", ranking=1),
        Column(
            key="extrap_mae_median",
            heading="median MAE",
            part="extrap",
            variant="median",
            shown="benchmarks",
        ),
        Column(
            key="interp_mae_debiased",
            heading="interp debiased MAE",
            part="interp",
            variant="debiased",
            shown="files",
        ),
        Column(
            key="extrap_mae_debiased", heading="debiased MAE", part="extrap", variant="debiased"
        ),
    ),
)
