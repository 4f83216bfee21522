"""The errors of single cells against sums done by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from physsm.metrics import mae, mse, rmse

MEASURED = np.array([[1.0, np.nan], [-2.0, 4.0]])
PREDICTED = np.array([[3.0, 9.0], [-2.5, 4.0]])

every_error = pytest.mark.parametrize("metric", [mae, mse, rmse])
values = arrays(float, array_shapes(max_dims=3, max_side=5), elements=st.floats(-1e6, 1e6))


def test_mean_absolute_error():
    assert mae(MEASURED, PREDICTED) == (2 + 0.5 + 0) / 3


def test_mean_squared_error():
    assert mse(MEASURED, PREDICTED) == (4 + 0.25 + 0) / 3


def test_root_mean_squared_error():
    assert rmse(MEASURED, PREDICTED) == math.sqrt((4 + 0.25 + 0) / 3)


@every_error
def test_are_means_over_cells(metric):
    once = metric(MEASURED, PREDICTED)
    np.testing.assert_allclose(metric(np.tile(MEASURED, (3, 1)), np.tile(PREDICTED, (3, 1))), once)
    assert metric(MEASURED[None], PREDICTED[None]) == once


@every_error
def test_a_forecast_cannot_leave_out_a_cell(metric):
    assert math.isnan(metric(np.array([1.0, 2.0]), np.array([1.0, np.nan])))


@given(values, st.floats(0.5, 1e3))
def test_the_same_error_everywhere_is_the_score(measured, error):
    predicted = measured + error
    np.testing.assert_allclose(mae(measured, predicted), error, rtol=1e-9)
    np.testing.assert_allclose(mse(measured, predicted), error**2, rtol=1e-9)
    np.testing.assert_allclose(rmse(measured, predicted), error, rtol=1e-9)


@given(values)
def test_root_of_squares_is_at_least_the_mean(measured):
    predicted = np.zeros_like(measured)
    score = rmse(measured, predicted)
    # Squares of tiny numbers are rounded to 0.
    assert score >= mae(measured, predicted) * (1 - 1e-12) - 1e-150
