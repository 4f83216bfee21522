"""Error of the jerk along tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinematics import motion_columns, motion_error
from physsm.metrics._metric import Metric


def jerk_error(
    measured: Float[np.ndarray, "windows steps 2"],
    predicted: Float[np.ndarray, "windows steps 2"],
    *,
    gap: float,
    smooth: int = 1,
) -> float:
    """Mean absolute error of the jerk along the track, in m/s^3; NaN without a valid value.

    With positions p in m and the time step `gap` h in s, v[i] = |p[i+1] - p[i]| / h,
    a[i] = (v[i+1] - v[i]) / h and j[i] = (a[i+1] - a[i]) / h, where all four points were measured.
    The mean is over the valid j of a window, then over windows, as in `ade`. `smooth` is that of
    `acceleration_error`, and needed even more where the measured track was interpolated.

    A predicted NaN in one of these points makes the score NaN.
    """
    return motion_error(measured, predicted, differences=2, gap=gap, smooth=smooth)


METRIC = Metric(
    function=jerk_error,
    description="mean absolute error of the jerk",
    needs="motion",
    unit="m/s³",
    order=100,
    columns=motion_columns("jerk"),
)
