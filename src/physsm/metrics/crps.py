"""Continuous ranked probability score of quantile forecasts."""

from __future__ import annotations

import numpy as np
import scoringrules
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics._means import mean_over_samples


def continuous_ranked_probability_score(
    measured: Float[np.ndarray, "*cells"],
    quantiles: Float[np.ndarray, " levels *cells"],
    levels: Float[np.ndarray, " levels"],
) -> float:
    """The mean CRPS over the cells that were measured, in their units; NaN if none was.

    For one cell y with quantiles q[k] at levels l[k], strictly between 0 and 1, it is twice the
    mean over k of the pinball loss: l[k] (y - q[k]) where q[k] <= y, else (1 - l[k]) (q[k] - y).
    With n levels (k - 1/2)/n this is the integral of (F(x) - [x >= y])^2 over x for the
    distribution F that has 1/n at each quantile. All levels weigh the same: others than evenly
    spaced ones give another score. Where all quantiles are one number, this is the absolute error.
    A NaN or infinite quantile of a measured cell makes the score NaN.
    """
    seen = ~np.isnan(measured)
    # By default the library compiles its own loops where it can: not worth the wait here.
    with np.errstate(invalid="ignore"):
        scores = scoringrules.crps_quantile(
            measured[seen], quantiles[:, seen], levels, m_axis=0, backend="numpy"
        )
    return mean_over_samples(np.asarray(scores))


METRIC = continuous_ranked_probability_score
KIND: Kind = "distribution"
