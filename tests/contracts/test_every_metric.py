"""Contract of every metric; a new file in `metrics` is tested without another change.

All metrics are tested on forecasts of tracks, by the distance of a score from the best one. Metrics
of positions see them as positions, the others as values.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import physsm.metrics
from physsm._registry import find, names_in
from physsm.metrics._metric import every_score

pytestmark = pytest.mark.parametrize("name", names_in("metrics"))

sizes = st.tuples(st.integers(2, 6), st.integers(4, 8))
seeds = st.integers(0, 2**32 - 1)


def distance_from_best(name, measured, predicted):
    """0 for the best score; a forecast of one number is also an interval and a distribution."""
    metric = find("metrics", name, "METRIC")
    if metric.needs == "motion":
        score = metric.function(measured, predicted, gap=0.1)
    elif metric.needs == "interval":
        score = metric.function(measured, predicted, predicted)
    elif metric.needs == "quantiles":
        levels = np.array([0.25, 0.5, 0.75])
        score = metric.function(measured, np.stack([predicted] * 3), levels)
    else:
        score = metric.function(measured, predicted)
    assert type(score) is float
    # An interval of one number has no width: it includes what is right and nothing else.
    return 1 - score if metric.is_share or metric.direction == "higher" else score


def tracks(seed, size):
    return np.random.default_rng(seed).normal(0.0, 10.0, (*size, 2))


def test_is_documented_and_has_the_name_of_its_file(name):
    function = find("metrics", name, "METRIC").function
    assert function.__doc__
    assert find("metrics", name, "METRIC").description
    assert function.__name__ == name
    assert getattr(physsm.metrics, name) is function
    assert name in dir(physsm.metrics)


def test_fills_columns_of_its_own(name):
    columns = find("metrics", name, "METRIC").columns
    others = [score.column for score in every_score() if score.column not in columns]
    assert columns
    for column in columns:
        assert column.key.isidentifier()
        assert column.heading
        assert column.key not in {other.key for other in others}
        assert column.heading not in {other.heading for other in others}


@given(seeds, sizes)
def test_perfection_is_best(name, seed, size):
    measured = tracks(seed, size)
    assert distance_from_best(name, measured, measured) == 0
    wrong = distance_from_best(name, measured, 1.25 * measured)
    assert wrong > 0
    assert distance_from_best(name, measured, 1.5 * measured) >= wrong


@given(seeds, sizes, st.floats(0, 1), st.sampled_from([0.0, 1e6, np.inf, np.nan]))
def test_values_that_were_not_measured_do_not_count(name, seed, size, share, elsewhere):
    rng = np.random.default_rng(seed)
    values = tracks(seed, size)
    seen = rng.random(values.shape) < share
    measured = np.where(seen, values, np.nan)
    predicted = rng.normal(0.0, 10.0, values.shape)
    score = distance_from_best(name, measured, predicted)
    other = distance_from_best(name, measured, np.where(seen, predicted, elsewhere))
    np.testing.assert_equal(other, score)
    assert not seen.all() or math.isfinite(score)


@pytest.mark.parametrize("shape", [(0, 5, 2), (3, 0, 2), (3, 5, 2)])
def test_nothing_measured_has_no_score(name, shape):
    assert math.isnan(distance_from_best(name, np.full(shape, np.nan), np.zeros(shape)))


@given(seeds, sizes)
def test_a_forecast_cannot_leave_out_a_window(name, seed, size):
    measured = tracks(seed, size)
    predicted = np.array(measured)
    predicted[0] = np.nan
    assert math.isnan(distance_from_best(name, measured, predicted))


@given(seeds, sizes, st.randoms(use_true_random=False))
def test_order_of_windows_does_not_matter(name, seed, size, random):
    measured, predicted = tracks(seed, size), tracks(seed + 1, size)
    measured[0, 1] = np.nan
    order = list(range(size[0]))
    random.shuffle(order)
    np.testing.assert_allclose(
        distance_from_best(name, measured[order], predicted[order]),
        distance_from_best(name, measured, predicted),
        rtol=1e-12,
    )


@given(seeds, st.integers(2, 8), st.integers(0, 8), arrays(bool, 10))
def test_batches_weighted_by_their_measured_windows_give_the_whole(name, seed, cut, right, seen):
    if not find("metrics", name, "METRIC").is_mean:
        pytest.skip("the metric is not a mean")
    assume(seen.any())
    measured, predicted = tracks(seed, (10, 5)), tracks(seed + 1, (10, 5))
    predicted[:right] = measured[:right]
    measured[~seen] = np.nan
    total = sum(
        seen[batch].sum() * distance_from_best(name, measured[batch], predicted[batch])
        for batch in (slice(0, cut), slice(cut, None))
        if seen[batch].any()
    )
    whole = distance_from_best(name, measured, predicted)
    np.testing.assert_allclose(total / seen.sum(), whole, rtol=1e-12, atol=1e-15)
