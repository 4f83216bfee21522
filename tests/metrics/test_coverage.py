"""Shares of cells inside their intervals, counted by hand and by distribution."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from physsm.metrics import coverage


def test_counts_measured_cells_bounds_included():
    measured = np.array([[0.0, 1.0, 2.0], [np.nan, 1.5, -0.1]])
    lower, upper = np.zeros((2, 3)), np.ones((2, 3))
    assert coverage(measured, lower, upper) == 2 / 5


@given(st.integers(1, 50), st.data())
def test_known_fractions(number, data):
    inside = data.draw(st.integers(0, number))
    measured = np.arange(float(number))
    lower, upper = np.full(number, -0.5), np.full(number, inside - 0.5)
    assert coverage(measured, lower, upper) == inside / number


def test_quantiles_of_a_gaussian_hold_their_share():
    measured = np.random.default_rng(0).normal(size=(100, 100, 2))
    bound = np.full(measured.shape, norm.ppf(0.95))
    # The standard deviation of this share is 0.3 / sqrt(20000) = 0.002.
    assert abs(coverage(measured, -bound, bound) - 0.9) < 0.008


def test_infinite_bounds_hold_everything_and_missing_ones_have_no_score():
    measured = np.array([1.0, -1e9])
    everything = np.full(2, np.inf)
    assert coverage(measured, -everything, everything) == 1
    assert math.isnan(coverage(measured, -everything, np.array([np.inf, np.nan])))
    assert coverage(np.array([1.0, np.nan]), np.zeros(2), np.array([2.0, np.nan])) == 1
