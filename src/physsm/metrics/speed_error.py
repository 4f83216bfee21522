"""Error of the speed along tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinematics import motion_columns, motion_error
from physsm.metrics._metric import Metric


def speed_error(
    measured: Float[np.ndarray, "windows steps 2"],
    predicted: Float[np.ndarray, "windows steps 2"],
    *,
    gap: float,
    smooth: int = 1,
) -> float:
    """Mean absolute error of the speed along the track, in m/s; NaN without a valid value.

    With positions p in m and the time step `gap` h in s, v[i] = |p[i+1] - p[i]| / h, where both
    points were measured. The mean is over the valid v of a window, then over windows, as in `ade`.
    `smooth` above 1 first replaces positions by the means of that many consecutive ones (an odd
    number centres each mean on a point), where all of them were measured.

    A predicted NaN in one of these points makes the score NaN.
    """
    return motion_error(measured, predicted, differences=0, gap=gap, smooth=smooth)


METRIC = Metric(
    function=speed_error,
    description="mean absolute error of the speed",
    needs="motion",
    unit="m/s",
    order=80,
    columns=motion_columns("speed"),
)
