"""Means over measured values: NaN without a warning where there is none."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def mean_over_samples(samples: Float[np.ndarray, " samples"]) -> float:
    """Mean of the samples; NaN if there is none."""
    return float(samples.mean()) if samples.size else float("nan")


def mean_over_windows(
    errors: Float[np.ndarray, "windows steps"], valid: Bool[np.ndarray, "windows steps"]
) -> float:
    """Mean over windows of each window's mean over its valid steps.

    All windows have the same weight, however many of their steps are valid; a window without a
    valid step does not count. Errors at steps that are not valid are ignored, NaN too.
    """
    number = valid.sum(axis=1)
    total = np.where(valid, errors, 0).sum(axis=1)
    measured = number > 0
    return mean_over_samples(total[measured] / number[measured])
