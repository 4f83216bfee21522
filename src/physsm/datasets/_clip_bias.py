"""What cutting noise off does to a mean, and back.

A value p with Gaussian noise of standard deviation s, cut to [0, 1], has the mean

    m(p) = p (F(b) - F(a)) + s (f(a) - f(b)) + 1 - F(b),   a = -p/s, b = (1 - p)/s

with f and F the density and distribution of a standard Gaussian. A model that is trained on such
values forecasts m(p), not p; m rises, so it can be turned round.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

_KNOTS = 2001


def clipped_mean(p: Float[np.ndarray, "*cells"], noise: float) -> Float[np.ndarray, "*cells"]:
    """The mean of `p` plus noise, cut to [0, 1]."""
    if noise == 0:
        return np.clip(p, 0, 1)
    low, high = -p / noise, (1 - p) / noise
    inside = norm.cdf(high) - norm.cdf(low)
    return p * inside + noise * (norm.pdf(low) - norm.pdf(high)) + norm.sf(high)


def without_clip_bias(
    mean: Float[np.ndarray, "*cells"], noise: float
) -> Float[np.ndarray, "*cells"]:
    """The value in [0, 1] whose cut noisy measurements have this mean."""
    knots = np.linspace(0, 1, _KNOTS)
    return np.interp(mean, clipped_mean(knots, noise), knots)
