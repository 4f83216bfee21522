"""Frames of a pendulum like those of the paper's pipeline from Gym, drawn directly.

That pipeline takes red minus green of Gym's 500 x 500 picture (the rod is 1, the white ground and
the black axle are 0), cuts out 170 x 170 pixels below and around the pivot, blurs them against
aliasing and samples 28 x 28. A rod with round ends that is blurred by a Gaussian is, to a good
approximation, a function of the distance from the rod's axis alone; blurring is linear, so the
axle is a fixed picture to subtract. Gym draws every pendulum one unit long, at any true length.

Clipping noisy pixels shifts their mean. A value p with Gaussian noise of standard deviation s,
clipped to [0, 1], has the mean

    m(p) = p (F(b) - F(a)) + s (f(a) - f(b)) + 1 - F(b),   a = -p/s, b = (1 - p)/s

with f and F the density and distribution of a standard Gaussian. A model that is trained on such
values forecasts m(p), not p. m increases, so it can be inverted.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

SIDE = 28  # pixels

# In pixels of Gym's screen. The nominal geometry is a pivot at (85, 29), length 113.6, radius 11.4,
# blur 2.5 and axle 5.7; these values are a least-squares fit to Gym's frames, whose shapes are
# rounded to whole pixels. The pivot is in the middle of a row, so that frames mirror exactly.
_CROP = 170.0
_PIVOT_ROW = 29.353
_LENGTH = 113.10
_RADIUS = 11.791
_BLUR = 2.644
_AXLE_RADIUS = 5.573

_CHUNK = 256  # frames drawn at once: the working memory stays at a few megabytes
_CLIP_KNOTS = 2001  # of the inverse of `clipped_mean`


def render(theta: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch 28 28"]:
    """Frames of pendulums at angles `theta`, in [0, 1], float32.

    Row 0 is the top. The pivot is in row 4, the pendulum hangs down, positive angles swing to the
    right. Beyond about 40 degrees the tip leaves the frame, as it does in the paper's crop.
    """
    angles = theta.reshape(-1)
    frames = np.empty((len(angles), SIDE, SIDE), np.float32)
    for first in range(0, len(angles), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        frames[chunk] = _rod(angles[chunk]) - _axle()
    return np.clip(frames, 0, 1, out=frames).reshape(*theta.shape, SIDE, SIDE)


def _rod(theta: Float[np.ndarray, " frames"]) -> Float[np.ndarray, "frames 28 28"]:
    """Brightness of the blurred rod in each pixel."""
    right, down = _pixels()
    sine, cosine = np.sin(theta)[:, None, None], np.cos(theta)[:, None, None]
    along = np.clip(right * sine + down * cosine, 0, _LENGTH)
    distance = np.hypot(right - along * sine, down - along * cosine)
    return np.interp(distance, *_edge())


@functools.cache
def _pixels() -> tuple[Float[np.ndarray, "1 28"], Float[np.ndarray, "28 1"]]:
    """Coordinates of the pixels, to the right of the pivot and below it."""
    pixel = _CROP / SIDE
    centres = (np.arange(SIDE) + 0.5) * pixel
    return (centres - _CROP / 2)[None, :], (centres - 0.5 - _PIVOT_ROW)[:, None]


@functools.cache
def _edge() -> tuple[Float[np.ndarray, " knots"], Float[np.ndarray, " knots"]]:
    """Brightness of the rod over the distance from its axis: a blurred step."""
    distance = np.linspace(0, _RADIUS + 6 * _BLUR, 2000)
    scaled = (_RADIUS - distance) / (_BLUR * math.sqrt(2))
    return distance, np.array([0.5 * (1 + math.erf(x)) for x in scaled])


@functools.cache
def _axle() -> Float[np.ndarray, "28 28"]:
    """Brightness of the blurred black disc on the pivot: Gaussians at points all over it."""
    line = np.linspace(-_AXLE_RADIUS, _AXLE_RADIUS, 81)
    disc = np.hypot(*np.meshgrid(line, line)) <= _AXLE_RADIUS
    right, down = _pixels()
    columns = np.exp(-0.5 * ((right.T - line) / _BLUR) ** 2)
    rows = np.exp(-0.5 * ((down - line) / _BLUR) ** 2)
    weight = math.pi * _AXLE_RADIUS**2 / disc.sum() / (2 * math.pi * _BLUR**2)
    return weight * rows @ disc @ columns.T


def clipped_mean(p: Float[np.ndarray, "*cells"], noise: float) -> Float[np.ndarray, "*cells"]:
    """Mean of `p` plus noise, clipped to [0, 1]."""
    if noise == 0:
        return np.clip(p, 0, 1)
    low, high = -p / noise, (1 - p) / noise
    unclipped = norm.cdf(high) - norm.cdf(low)
    return p * unclipped + noise * (norm.pdf(low) - norm.pdf(high)) + norm.sf(high)


def without_clip_bias(
    mean: Float[np.ndarray, "*cells"], noise: float
) -> Float[np.ndarray, "*cells"]:
    """Value in [0, 1] whose clipped noisy measurements have this mean."""
    knots = np.linspace(0, 1, _CLIP_KNOTS)
    return np.interp(mean, clipped_mean(knots, noise), knots)
