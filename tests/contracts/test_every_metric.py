"""What every metric must do; a new file in `metrics` is picked up by itself."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from physsm._registry import find, names_in

pytestmark = pytest.mark.parametrize("name", names_in("metrics"))

numbers = st.floats(-1e6, 1e6)
tables = array_shapes(min_dims=1, max_dims=3, max_side=5).flatmap(
    lambda shape: st.tuples(arrays(float, shape, elements=numbers), arrays(bool, shape))
)


def test_is_documented(name):
    assert find("metrics", name, "METRIC").__doc__


@given(tables)
def test_perfection_is_best(name, table):
    measured, _ = table
    metric = find("metrics", name, "METRIC")
    assert metric(measured, measured) == 0
    assert metric(measured, measured + 1.0) > 0
    assert metric(measured, measured - 2.0) > metric(measured, measured - 1.0)


@given(tables, numbers)
def test_cells_that_were_not_measured_do_not_count(name, table, elsewhere):
    values, seen = table
    metric = find("metrics", name, "METRIC")
    measured = np.where(seen, values, np.nan)
    score = metric(measured, np.zeros_like(values))
    assert type(score) is float
    if not seen.any():
        assert math.isnan(score)
        return
    assert score == metric(measured, np.where(seen, 0.0, elsewhere))


def test_a_forecast_cannot_leave_out_a_cell(name):
    metric = find("metrics", name, "METRIC")
    assert math.isnan(metric(np.array([1.0, 2.0]), np.array([1.0, np.nan])))
