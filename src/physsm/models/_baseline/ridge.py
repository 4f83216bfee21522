"""Ridge regression for many numbers of lags and penalties, in one pass over the samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int


def ridge_weights(
    features: Float[np.ndarray, "samples features"],
    targets: Float[np.ndarray, "samples channels"],
    known_lags: Int[np.ndarray, " samples"],
    widths: dict[int, int],
    ridges: Sequence[float],
) -> dict[tuple[int, float], Float[np.ndarray, "_ channels"]]:
    """Weights for each pair of lags and ridge: those of least mean squared error plus ridge times
    squared weights.

    The first feature is 1, and its weight is not penalised. A number of lags uses the first
    `widths[lags]` features and the samples with at least so many `known_lags`. A sample with a NaN
    target does not count for that channel.
    """
    patterns, group = np.unique(~np.isnan(targets), axis=1, return_inverse=True)
    weights = {
        (lags, ridge): np.zeros((width, targets.shape[1]))
        for lags, width in widths.items()
        for ridge in ridges
    }
    for number, pattern in enumerate(patterns.T):  # channels measured in the same samples
        channels = np.flatnonzero(group.reshape(-1) == number)
        sums = _sums(features, targets[:, channels], np.where(pattern, known_lags, 0), widths)
        for lags, (gram, moments) in sums.items():
            for ridge, solved in zip(ridges, _solve(gram, moments, ridges), strict=True):
                weights[lags, ridge][:, channels] = solved
    return weights


def _sums(
    features: np.ndarray, targets: np.ndarray, known_lags: np.ndarray, widths: dict[int, int]
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Sums of products of features with features and with targets, for each number of lags.

    The sums of fewer lags are a corner of those of more, plus the samples that know only fewer.
    """
    sums = {}
    widest = max(widths.values())
    gram, moments = np.zeros((widest, widest)), np.zeros((widest, targets.shape[1]))
    too_many = np.iinfo(np.int64).max
    for lags in sorted(widths, reverse=True):
        width = widths[lags]
        samples = (known_lags >= lags) & (known_lags < too_many)
        part = features[samples, :width]
        gram = gram[:width, :width] + part.T @ part
        moments = moments[:width] + part.T @ targets[samples]
        sums[lags] = gram, moments
        too_many = lags
    return sums


def _solve(gram: np.ndarray, moments: np.ndarray, ridges: Sequence[float]) -> Iterator[np.ndarray]:
    """Weights for each ridge; zeros without samples."""
    samples = gram[0, 0]
    if samples == 0:
        yield from (np.zeros_like(moments) for _ in ridges)
        return
    mean, target_mean = gram[0, 1:] / samples, moments[0] / samples
    covariance = gram[1:, 1:] / samples - np.outer(mean, mean)
    with_target = moments[1:] / samples - np.outer(mean, target_mean)
    for ridge in ridges:
        slopes = np.linalg.solve(covariance + ridge * np.eye(len(mean)), with_target)
        yield np.vstack([target_mean - mean @ slopes, slopes])
