"""Continuous ranked probability score of quantile forecasts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_samples
from physsm.metrics._metric import Column, Metric


def crps(
    measured: Float[np.ndarray, "*cells"],
    quantiles: Float[np.ndarray, " levels *cells"],
    levels: Float[np.ndarray, " levels"],
) -> float:
    """Continuous ranked probability score: its mean over the measured cells, in their units.

    NaN if no cell was measured. For one cell y with quantiles q[k] at levels l[k], strictly between
    0 and 1, the score is twice the mean over k of the pinball loss: l[k] (y - q[k]) where
    q[k] <= y, else (1 - l[k]) (q[k] - y). With n levels (k - 1/2)/n this is the integral of
    (F(x) - [x >= y])^2 over x for the distribution F that has 1/n at each quantile. All levels have
    the same weight, so levels that are not evenly spaced give another score. Where all quantiles
    are one number, the score is the absolute error. A NaN or infinite quantile of a measured cell
    makes the score NaN.
    """
    import scoringrules  # it takes most of a second, and most commands need no CRPS

    seen = ~np.isnan(measured)
    # By default the library compiles its own loops where it can: not worth the wait here.
    with np.errstate(invalid="ignore"):
        scores = scoringrules.crps_quantile(
            measured[seen], quantiles[:, seen], levels, m_axis=0, backend="numpy"
        )
    return mean_over_samples(np.asarray(scores))


METRIC = Metric(
    function=crps,
    description="continuous ranked probability score",
    needs="quantiles",
    order=40,
    columns=(Column(key="extrap_crps", heading="extrap CRPS", part="extrap", shown="benchmarks"),),
)
