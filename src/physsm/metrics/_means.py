"""Means over what was measured: NaN, and no warning, where nothing was."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def mean_over_samples(samples: Float[np.ndarray, " samples"]) -> float:
    """The plain mean; NaN if there is no sample."""
    return float(samples.mean()) if samples.size else float("nan")


def mean_over_windows(
    errors: Float[np.ndarray, "windows steps"], valid: Bool[np.ndarray, "windows steps"]
) -> float:
    """The mean over windows of each window's mean over its valid steps.

    A window counts as much as any other, however many of its steps are valid; one without a valid
    step does not count. `errors` may be anything, NaN too, where they are not valid.
    """
    number = valid.sum(axis=1)
    total = np.where(valid, errors, 0).sum(axis=1)
    measured = number > 0
    return mean_over_samples(total[measured] / number[measured])
