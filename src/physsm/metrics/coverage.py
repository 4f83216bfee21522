"""Coverage of intervals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_samples
from physsm.metrics._metric import NOMINAL_COVERAGE, Column, Metric


def coverage(
    measured: Float[np.ndarray, "*cells"],
    lower: Float[np.ndarray, "*cells"],
    upper: Float[np.ndarray, "*cells"],
) -> float:
    """Share of the measured cells with lower <= measured <= upper; NaN if no cell was measured.

    Between 0 and 1, and best where it equals the nominal coverage of the intervals. A NaN bound of
    a measured cell makes the score NaN; an infinite bound includes everything on its side.
    """
    bounded = ~(np.isnan(lower) | np.isnan(upper))
    inside = np.where(bounded, (lower <= measured) & (measured <= upper), np.nan)
    return mean_over_samples(inside[~np.isnan(measured)])


METRIC = Metric(
    function=coverage,
    description="share of the measurements inside their interval",
    needs="interval",
    direction=NOMINAL_COVERAGE,
    is_share=True,
    order=50,
    columns=(
        Column(key="coverage", heading=f"{100 * NOMINAL_COVERAGE:.0f} % coverage", part="extrap"),
    ),
)
