"""Final displacement error of tracks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm.metrics._means import mean_over_samples
from physsm.metrics._metric import Column, Metric


def fde(
    measured: Float[np.ndarray, "windows steps 2"], predicted: Float[np.ndarray, "windows steps 2"]
) -> float:
    """Final displacement error: the mean distance at the last valid point of each window, in m.

    With d[w, i] = |measured[w, i] - predicted[w, i]|, it is the mean over windows w of d[w, L(w)],
    where L(w) is the last step of the window at which both coordinates were measured. A window
    without such a step does not count; without any such window the score is NaN. Windows that end
    early are scored at a shorter lead time. A predicted NaN at such a point makes the score NaN.
    """
    valid = ~np.isnan(measured.sum(axis=-1))
    last = np.where(valid, np.arange(valid.shape[1]), -1).max(axis=1, initial=-1)
    windows = np.flatnonzero(last >= 0)
    final = (measured - predicted)[windows, last[windows]]
    return mean_over_samples(np.linalg.norm(final, axis=-1))


METRIC = Metric(
    function=fde,
    description="distance at the end of the track",
    needs="positions",
    unit="m",
    order=70,
    columns=(
        Column(key="in_fde", heading="FDE", part="in"),
        Column(key="out_fde", heading="late FDE", part="out"),
    ),
)
