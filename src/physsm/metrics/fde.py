"""Final displacement error of tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._kinds import Kind
from physsm.metrics._means import mean_over_samples


def final_displacement_error(
    measured: Float[np.ndarray, "windows steps 2"], predicted: Float[np.ndarray, "windows steps 2"]
) -> float:
    """The mean distance at the last valid point of each window, in m; NaN if no point was measured.

    With d[w, i] = |measured[w, i] - predicted[w, i]|, it is the mean over windows w of d[w, L(w)],
    where L(w) is the last step of the window at which both coordinates were measured; a window
    without one does not count. Windows that end early are therefore scored at a shorter horizon.
    A predicted NaN at such a point makes the score NaN.
    """
    valid = ~np.isnan(measured.sum(axis=-1))
    last = np.where(valid, np.arange(valid.shape[1]), -1).max(axis=1, initial=-1)
    windows = np.flatnonzero(last >= 0)
    final = (measured - predicted)[windows, last[windows]]
    return mean_over_samples(np.linalg.norm(final, axis=-1))


METRIC = final_displacement_error
KIND: Kind = "track"
