"""The mean of noise that was cut off, against sampling and integration, and back."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from physsm.datasets._pendulum_frames import clipped_mean, without_clip_bias
from physsm.datasets.pendulum import DATASET, frames
from physsm.metrics import mae

VALUES = np.linspace(0, 1, 21)
NOISES = [0.02, 0.1, 0.3, 1.0]


@pytest.mark.parametrize("noise", NOISES)
def test_the_formula_is_the_integral(noise):
    def integral(p):
        inside, _ = quad(lambda x: x * norm.pdf(x, p, noise), 0, 1, points=[p], epsabs=1e-12)
        return inside + norm.sf(1, p, noise)  # what lies above 1 counts as 1

    np.testing.assert_allclose(
        clipped_mean(VALUES, noise), [integral(p) for p in VALUES], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("noise", NOISES)
def test_the_formula_is_the_mean_of_samples(noise):
    draws = 200_000
    drawn = noise * np.random.default_rng(0).standard_normal(draws)
    sampled = [np.clip(p + drawn, 0, 1).mean() for p in VALUES]
    four_standard_errors = 4 * min(noise, 0.5) / np.sqrt(draws)
    np.testing.assert_allclose(clipped_mean(VALUES, noise), sampled, atol=four_standard_errors)


def test_black_becomes_an_eighth_and_white_its_mirror_image():
    assert clipped_mean(np.array([0.0]), 0.3) == pytest.approx(0.3 / np.sqrt(2 * np.pi), abs=5e-4)
    assert clipped_mean(np.array([0.0]), 0.3) == pytest.approx(0.1197, abs=5e-4)
    np.testing.assert_allclose(clipped_mean(1 - VALUES, 0.3), 1 - clipped_mean(VALUES, 0.3))
    assert clipped_mean(np.array([0.5]), 0.3) == pytest.approx(0.5)


def test_without_noise_nothing_is_shifted():
    np.testing.assert_array_equal(clipped_mean(VALUES, 0.0), VALUES)
    np.testing.assert_allclose(without_clip_bias(VALUES, 0.0), VALUES, atol=1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_the_inverse_is_the_inverse(noise):
    p = np.random.default_rng(1).random((7, 11))
    np.testing.assert_allclose(without_clip_bias(clipped_mean(p, noise), noise), p, atol=1e-6)
    assert (np.diff(clipped_mean(np.linspace(0, 1, 500), noise)) > 0).all()


def test_means_out_of_reach_become_black_or_white():
    np.testing.assert_array_equal(
        without_clip_bias(np.array([-1.0, 0.0, 1.0, 2.0]), 0.3), [0, 0, 1, 1]
    )


def test_the_floor_of_the_published_score_and_what_is_left_of_it():
    """What the mean of the noisy frames, the best possible forecast of them, scores."""
    split = DATASET.split("paper", series=(1, 1, 2), steps=20)
    assert split.truth is not None
    assert split.debias is not None
    clean = split.truth.values.astype(float)
    best = clipped_mean(clean, 0.3)
    assert mae(clean, best) == pytest.approx(0.112, abs=0.003)
    assert mae(clean, split.debias(best)) < 1e-3
    noisy = frames(series=(1, 1, 200), steps=2, dropped=0.0)
    black = noisy.test_clean.values < 1e-3
    assert noisy.test.values[black].mean() == pytest.approx(
        clipped_mean(np.zeros(1), 0.3), rel=0.01
    )


def test_a_split_without_the_cut_has_no_floor_to_remove():
    assert DATASET.split("strict", series=(1, 1, 1), steps=6).debias is None
