"""Times of rows as steps of an integrator: gaps cut into equal parts that are short enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

_MOST_STEPS = 20_000  # more lie ahead of a row only by mistake: from there all stays as it is
_ROUNDING = 1e-6  # of a step: what floating point may leave over


class Steps(NamedTuple):
    """Steps one after another, with the control held in each; padded with steps of length 0.

    The state at row r of an origin is that after its first `at[r]` steps.
    """

    length: Float[np.ndarray, "origins steps"]
    control: Float[np.ndarray, "origins steps controls"]
    at: Int[np.ndarray, "origins rows"]


def steps_between(
    times: Float[np.ndarray, "origins rows"],
    controls: Float[np.ndarray, "origins rows controls"],
    longest: float,
    usual: int = 1,
) -> Steps:
    """Steps from each row to the next, none longer than `longest`; a control holds until the next
    row. They are padded to a power of two of at least `usual`, so that few programs are compiled.
    """
    gaps = np.diff(times, axis=1)
    parts = np.ceil(np.minimum(gaps / longest, _MOST_STEPS) - _ROUNDING).astype(np.int64)
    at = np.minimum(np.pad(parts.cumsum(1), ((0, 0), (1, 0))), _MOST_STEPS)
    parts = np.diff(at, axis=1)
    most = int(at[:, -1].max(initial=usual))
    shape = len(times), 1 << (most - 1).bit_length()
    owner = np.repeat(np.arange(parts.size), parts.reshape(-1))
    origin, gap = np.divmod(owner, max(gaps.shape[1], 1))
    first = np.cumsum(at[:, -1]) - at[:, -1]
    place = np.arange(len(owner)) - first[origin]
    length, control = np.zeros(shape), np.zeros((*shape, controls.shape[2]))
    length[origin, place] = gaps[origin, gap] / parts[origin, gap]
    control[origin, place] = controls[origin, gap]
    return Steps(length, control, at)
