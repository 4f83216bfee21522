"""Speed, acceleration and jerk along a track: what the three motion errors share.

With positions p[i] and one time step h between all points:

    speed          v[i] = |p[i+1] - p[i]| / h
    acceleration   a[i] = (v[i+1] - v[i]) / h
    jerk           j[i] = (a[i+1] - a[i]) / h

Acceleration and jerk are those along the track: a turn at constant speed has none.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._errors import ConfigError
from physsm.metrics._means import mean_over_windows
from physsm.metrics._metric import Column


def motion_columns(key: str) -> tuple[Column, ...]:
    """Columns of a motion error: in and out of the trained lead times, as it is and smoothed.

    Benchmark tables show the first of them only.
    """
    return (
        Column(key=f"in_{key}", heading=f"{key} error", part="in", shown="benchmarks"),
        Column(
            key=f"in_{key}_smooth",
            heading=f"smoothed {key} error",
            part="in",
            variant="smooth",
            shown="files",
        ),
        Column(key=f"out_{key}", heading=f"late {key} error", part="out", shown="files"),
        Column(
            key=f"out_{key}_smooth",
            heading=f"late smoothed {key} error",
            part="out",
            variant="smooth",
            shown="files",
        ),
    )


def motion_error(
    measured: Float[np.ndarray, "windows steps 2"],
    predicted: Float[np.ndarray, "windows steps 2"],
    *,
    differences: int,
    gap: float,
    smooth: int,
) -> float:
    """Mean absolute error of the speed after `differences` differences: 0, 1 or 2.

    First the mean over each window's valid values, then over windows. A value is valid where all
    points it is computed from were measured in both coordinates. Units: m/s, m/s^2 or m/s^3.
    """
    if not (np.isfinite(gap) and gap > 0):
        raise ConfigError(f"the gap must be a positive number of seconds, not {gap!r}")
    if smooth < 1:
        raise ConfigError(f"the points to smooth over must be at least 1, not {smooth!r}")
    # A forecast that diverged has infinite points: its score is NaN, without a warning.
    with np.errstate(invalid="ignore"):
        expected = _motion(measured, differences, gap, smooth)
        errors = np.abs(_motion(predicted, differences, gap, smooth) - expected)
    return mean_over_windows(errors, ~np.isnan(expected))


def _motion(
    positions: Float[np.ndarray, "windows steps 2"], differences: int, gap: float, smooth: int
) -> Float[np.ndarray, "windows values"]:
    """Speed, differenced: NaN where a point that it needs is NaN, empty for too few steps."""
    speed = np.linalg.norm(np.diff(_smoothed(positions, smooth), axis=1), axis=-1) / gap
    return np.diff(speed, n=differences, axis=1) / gap**differences


def _smoothed(
    positions: Float[np.ndarray, "windows steps 2"], points: int
) -> Float[np.ndarray, "windows values 2"]:
    """Moving average of the positions over `points` consecutive ones, without padding."""
    if positions.shape[1] < points:
        return positions[:, :0]
    return np.lib.stride_tricks.sliding_window_view(positions, points, axis=1).mean(axis=-1)
