"""Gaps cut into steps, against a loop over gaps and steps."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._errors import DataError
from physsm._values import Panel, Query, Series
from physsm.models._steps import cut_gaps, future_steps
from tests.examples import examples

SEEDS = st.integers(0, 10_000)
LONGEST = st.sampled_from([0.1, 0.25, 0.7, 5.0])


def random_times(seed: int, series: int = 3, most: int = 6) -> np.ndarray:
    """Increasing times; shorter series repeat their last one."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0.1, 0.25, 0.5, 1.0, 0.333], (series, most))
    gaps[np.arange(most) >= rng.integers(0, most + 1, series)[:, None]] = 0
    return rng.uniform(-5, 5, (series, 1)) + np.pad(gaps.cumsum(1), ((0, 0), (1, 0)))


def by_loop(times: np.ndarray, longest: float, most: int) -> list[tuple[float, int, float]]:
    """Length, gap and share of each step of one series."""
    steps = []
    for i, gap in enumerate(np.diff(times)):
        wanted = max(1, ceil(gap / longest - 1e-6)) if gap > 0 else 0
        parts = min(wanted, most - len(steps))
        steps += [(gap / parts, i, (k + 1) / parts) for k in range(parts)]
    return steps


@settings(max_examples=examples(50))
@given(SEEDS, LONGEST, st.sampled_from([4, 1000]), st.sampled_from([1, 16]))
def test_steps_are_those_of_a_loop(seed, longest, most, unit):
    times = random_times(seed)
    found = cut_gaps(times, longest, most, lambda steps: -(-steps // unit) * unit)
    loops = [by_loop(one, longest, most) for one in times]
    assert found.lengths.shape[1] == -(-max(*map(len, loops), 1) // unit) * unit
    for s, steps in enumerate(loops):
        n = len(steps)
        columns = np.array(steps).reshape(-1, 3).T
        np.testing.assert_allclose(found.lengths[s, :n], columns[0])
        np.testing.assert_array_equal(found.gap[s, :n], columns[1])
        np.testing.assert_allclose(found.share[s, :n], columns[2])
        np.testing.assert_array_equal(found.lengths[s, n:], 0)
        np.testing.assert_array_equal(found.share[s, n:], 1)
        ends = [sum(gap < r for _, gap, _ in steps) for r in range(times.shape[1])]
        assert found.reached[s].tolist() == ends


@settings(max_examples=examples(50))
@given(SEEDS, LONGEST)
def test_controls_are_held_or_linear(seed, longest):
    times = random_times(seed)
    rng = np.random.default_rng(seed)
    controls = rng.standard_normal((*times.shape, 2))
    for s, one in enumerate(times):  # what repeats a time repeats its control
        controls[s] = controls[s][np.searchsorted(one, one)]
    found = cut_gaps(times, longest, 1000)
    held, linear = found.zero_order_hold(controls), found.at_ends(controls, holds_start=False)
    at_ends = found.at_ends(controls, holds_start=True)
    for s, steps in enumerate(by_loop(one, longest, 1000) for one in times):
        for k, (_, gap, share) in enumerate(steps):
            np.testing.assert_array_equal(held[s, k], controls[s, gap])
            is_last = share == 1
            np.testing.assert_array_equal(at_ends[s, k], controls[s, gap + is_last])
            time = times[s, gap] + share * (times[s, gap + 1] - times[s, gap])
            expected = [np.interp(time, times[s], column) for column in controls[s].T]
            np.testing.assert_allclose(linear[s, k], expected, atol=1e-9)


def random_history(seed: int) -> tuple[Panel, Query]:
    """Series of different lengths, and times after their ends, of different numbers too."""
    rng = np.random.default_rng(seed)
    series = [
        Series(
            str(i),
            np.cumsum(rng.uniform(0.1, 1, n)),
            rng.standard_normal((n, 1)),
            rng.standard_normal((n, 2)),
        )
        for i, n in enumerate(rng.integers(1, 6, 3))
    ]
    panel = Panel.from_series(series, ["x"], ["u", "w"])
    ends = panel.times[np.arange(3), panel.lengths - 1]
    times = ends[:, None] + rng.choice([0.2, 0.5, 1.3], (3, 5)).cumsum(1)
    return panel, Query(times, rng.standard_normal((3, 5, 2)), rng.integers(1, 6, 3))


@settings(max_examples=examples(50))
@given(SEEDS, LONGEST, st.booleans())
def test_a_future_reaches_each_time_of_its_query(seed, longest, holds_start):
    history, query = random_history(seed)
    found = future_steps(history, query, longest, holds_start, lambda steps: steps + 3)
    assert (found.gaps <= longest * (1 + 1e-5)).all()
    for s in range(3):
        last, length = history.lengths[s] - 1, int(query.lengths[s])
        times = np.append(history.times[s, last], query.times[s, :length])
        controls = np.concatenate([history.controls[s, last][None], query.controls[s, :length]])
        elapsed = times[0] + found.gaps[:, s].cumsum()
        at = found.steps[s, :length]
        np.testing.assert_allclose(elapsed[at], times[1:])
        np.testing.assert_array_equal(found.steps[s, length:], at[-1])
        np.testing.assert_array_equal(found.gaps[at[-1] + 1 :, s], 0)
        np.testing.assert_allclose(found.controls[at, s], controls[1:])
        for k in range(at[-1] + 1):
            place = np.searchsorted(times, elapsed[k] + 1e-9) - 1
            line = [np.interp(elapsed[k], times, column) for column in controls.T]
            expected = controls[place] if holds_start else line
            np.testing.assert_allclose(found.controls[k, s], expected, atol=1e-6)


def test_a_time_beyond_all_steps_is_refused():
    history, query = random_history(0)
    far = replace(query, times=query.times + 1e9)
    with pytest.raises(DataError, match="steps of the model after the history"):
        future_steps(history, far, 0.1, True, lambda steps: steps)
