"""Intervals that hold: a model's own spread, stretched until it covers what validation showed.

This is split conformal prediction with scaled residuals. For each channel the distances
|measured - mean|/spread on the validation part are kept as quantiles; an interval with a wanted
coverage is the mean plus and minus that quantile times the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

LEVELS = np.linspace(0, 1, 201)
_GAUSSIAN_LAST = 4.0  # the last quantile of |N(0, 1)| is infinite


@dataclass(frozen=True, eq=False)
class Calibration:
    """Quantiles of the scaled distances at `LEVELS`, one row per channel."""

    quantiles: Float[np.ndarray, "channels levels"]

    def factor(self, coverage: float) -> Float[np.ndarray, " channels"]:
        """What the spread of each channel is multiplied by."""
        return np.array([np.interp(coverage, LEVELS, row) for row in self.quantiles])

    def to_json(self) -> Any:
        """Plain lists."""
        return self.quantiles.tolist()


def uncalibrated(channels: int) -> Calibration:
    """The factors of a Gaussian."""
    inner = [NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS[:-1]]
    row = np.minimum(np.array([*inner, _GAUSSIAN_LAST]), _GAUSSIAN_LAST)
    return Calibration(np.tile(row, (channels, 1)))


def calibrate(
    measured: Float[np.ndarray, "series steps channels"],
    mean: Float[np.ndarray, "series steps channels"],
    spread: Float[np.ndarray, "series steps channels"],
) -> Calibration:
    """From forecasts of the validation part; cells that are NaN in `measured` do not count."""
    plain = uncalibrated(measured.shape[-1])
    rows = []
    for channel, otherwise in enumerate(plain.quantiles):
        x, expected, reach = (part[..., channel] for part in (measured, mean, spread))
        seen = np.isfinite(x) & np.isfinite(expected)
        distance = np.abs(x - expected)[seen] / reach[seen]
        if distance.size < 20:
            rows.append(otherwise)
            continue
        # One more than the number of samples: the quantile that a new measurement stays below.
        n = distance.size
        levels = np.minimum(LEVELS * (n + 1) / n, 1.0)
        rows.append(np.quantile(distance, levels))
    return Calibration(np.array(rows))
