"""Scores of parts against the metric of what was cut out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physsm.metrics import mae, mse
from physsm.metrics._slices import by_channel, by_horizon

MEASURED, PREDICTED = np.random.default_rng(0).normal(size=(2, 4, 7, 3))


def test_by_channel():
    errors = np.array([0.5, 1.0, 3.0])
    assert by_channel(mae, np.zeros((4, 7, 3)), np.tile(errors, (4, 7, 1))) == [0.5, 1, 3]
    unseen = np.where(np.arange(3) == 1, np.nan, MEASURED)
    scores = by_channel(mse, unseen, PREDICTED)
    assert math.isnan(scores[1])
    np.testing.assert_allclose(scores[2], np.mean((MEASURED - PREDICTED)[..., 2] ** 2))


def test_by_horizon():
    steps = np.broadcast_to(np.arange(6.0)[:, None], (4, 6, 3))
    assert by_horizon(mae, np.zeros((4, 6, 3)), steps, parts=3) == [
        ((0, 2), 0.5),
        ((2, 4), 2.5),
        ((4, 6), 4.5),
    ]


@given(st.integers(0, 60), st.integers(1, 12))
def test_parts_are_consecutive_and_equal_to_one_step(steps, parts):
    cells = np.zeros((2, steps, 1))
    ranges = [where for where, _ in by_horizon(mae, cells, cells, parts=parts)]
    assert len(ranges) == min(steps, parts)
    assert [step for start, stop in ranges for step in range(start, stop)] == list(range(steps))
    lengths = {stop - start for start, stop in ranges}
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


@pytest.mark.parametrize("parts", [1, 2, 10])
def test_parts_weighted_by_their_cells_give_the_whole(parts):
    scores = by_horizon(mse, MEASURED, PREDICTED, parts=parts)
    total = sum((stop - start) * value for (start, stop), value in scores)
    np.testing.assert_allclose(total / 7, mse(MEASURED, PREDICTED))
    np.testing.assert_allclose(
        np.mean(by_channel(mse, MEASURED, PREDICTED)), mse(MEASURED, PREDICTED)
    )
