"""The score of quantiles against the integral that defines it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.stats import norm

from physsm.metrics import crps, mae

numbers = st.floats(-1e3, 1e3)


def evenly_spaced(number):
    return (np.arange(number) + 0.5) / number


def integral(ensemble, y):
    """∫ (F(x) - [x >= y])² dx, exactly: both are steps."""
    edges = np.sort([*ensemble, y])
    below = (ensemble[None] <= edges[:-1, None]).mean(axis=1)
    return float(((below - (edges[:-1] >= y)) ** 2 * np.diff(edges)).sum())


@given(arrays(float, st.integers(1, 12), elements=numbers), numbers)
def test_quantiles_of_an_ensemble_give_the_integral(ensemble, y):
    score = crps(np.array([y]), np.sort(ensemble)[:, None], evenly_spaced(len(ensemble)))
    np.testing.assert_allclose(score, integral(ensemble, y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("y", [-2.5, 0.3, 1.0, 4.0])
def test_many_quantiles_of_a_gaussian_give_its_integral(y):
    gaussian = norm(1.0, 0.7)
    levels = evenly_spaced(2000)
    left = quad(lambda x: gaussian.cdf(x) ** 2, -20, y, points=[1.0])[0]
    right = quad(lambda x: gaussian.sf(x) ** 2, y, 20, points=[1.0])[0]
    score = crps(np.array([y]), gaussian.ppf(levels)[:, None], levels)
    np.testing.assert_allclose(score, left + right, rtol=2e-3)


def test_one_number_as_all_quantiles_is_its_absolute_error():
    rng = np.random.default_rng(0)
    measured, predicted = rng.normal(size=(2, 4, 5, 3))
    quantiles = np.broadcast_to(predicted, (9, *predicted.shape))
    score = crps(measured, quantiles, evenly_spaced(9))
    np.testing.assert_allclose(score, mae(measured, predicted))


def test_is_a_mean_over_measured_cells():
    measured = np.array([[1.0, np.nan], [3.0, 0.0]])
    quantiles = np.arange(12.0).reshape(3, 2, 2)
    levels = evenly_spaced(3)
    each = [
        crps(measured[cell][None], quantiles[:, *cell, None], levels)
        for cell in ((0, 0), (1, 0), (1, 1))
    ]
    np.testing.assert_allclose(crps(measured, quantiles, levels), sum(each) / 3)


def test_the_true_distribution_is_best():
    """Proper: too narrow, too wide and shifted forecasts all score worse."""
    measured = np.random.default_rng(3).normal(size=20000)
    levels = evenly_spaced(50)

    def score(mean, spread):
        quantiles = norm(mean, spread).ppf(levels)[:, None]
        return crps(measured, np.broadcast_to(quantiles, (50, measured.size)), levels)

    assert score(0, 1) < min(score(0, 0.6), score(0, 1.6), score(0.4, 1), score(-0.4, 1))


@pytest.mark.parametrize("quantile", [np.nan, np.inf])
def test_a_missing_or_infinite_quantile_has_no_score(quantile):
    quantiles = np.array([[0.0], [quantile]])
    assert math.isnan(crps(np.array([1.0]), quantiles, evenly_spaced(2)))
