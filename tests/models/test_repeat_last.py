"""Repeat-last against what can be said without it."""

import numpy as np
import pytest

from physsm._errors import DataError
from physsm._values import Panel, Series
from physsm.models.repeat_last import MODEL


def panel_of(*series: tuple[list[float], list[list[float]]], channels=("a", "b")) -> Panel:
    made = [
        Series(str(k), np.array(t, float), np.array(x, float), np.empty((len(t), 0)))
        for k, (t, x) in enumerate(series)
    ]
    return Panel.from_series(made, channels)


def walks(seed: int, series: int, rows: int, channels: int = 1) -> Panel:
    """Random walks, of variance one in a unit of time, at irregular times."""
    random = np.random.default_rng(seed)
    made = []
    for k in range(series):
        gaps = random.uniform(0.5, 1.5, rows)
        steps = random.normal(size=(rows, channels)) * np.sqrt(gaps)[:, None]
        made.append(Series(str(k), gaps.cumsum(), steps.cumsum(0), np.empty((rows, 0))))
    return Panel.from_series(made, [f"x{c}" for c in range(channels)])


TRAIN = panel_of(
    ([0, 1, 2, 3], [[1, 10], [2, 20], [3, np.nan], [6, 30]]),
    ([0, 2, 3], [[0, 10], [4, 20], [8, 30]]),
)


def test_is_the_last_measurement_of_each_channel():
    history = panel_of(
        ([0, 1, 5], [[1.5, 7], [2.5, np.nan], [np.nan, np.nan]]),
        ([0, 1], [[np.nan, 4], [np.nan, 3]]),
    )
    found = MODEL.create(None, {}).fit(TRAIN, TRAIN).forecast(history, times=[6.0, 100.0])
    mean_of_a = (1 + 2 + 3 + 6 + 0 + 4 + 8) / 7
    np.testing.assert_array_equal(found.mean[0], [[2.5, 7.0]] * 2)
    np.testing.assert_allclose(found.mean[1], [[mean_of_a, 3.0]] * 2)


def test_one_step_is_the_measurement_before():
    panel = panel_of(([0, 1, 4, 5], [[1, 5], [np.nan, 6], [3, np.nan], [4, 8]]))
    found = MODEL.create(None, {}).fit(TRAIN, TRAIN).one_step(panel)
    np.testing.assert_array_equal(found.mean[0], [[np.nan, np.nan], [1, 5], [1, 6], [3, 6]])
    assert np.isnan(found.lower[0, 0]).all()
    assert np.isfinite(found.lower[0, 1:]).all()


def test_spread_of_a_random_walk_grows_with_the_square_root_of_the_lead():
    fitted = MODEL.create(None, {"horizon": 30}).fit(walks(0, 40, 120), walks(1, 40, 120))
    history = walks(2, 1, 10)
    last = history[0].times[-1]
    ahead = np.array([1.0, 4.0, 16.0, 25.0, 100.0, 400.0])
    found = fitted.forecast(history, times=last + ahead, coverage=0.9)
    half_width = (found.upper - found.lower)[0, :, 0] / 2
    np.testing.assert_allclose(half_width, 1.645 * np.sqrt(ahead), rtol=0.12)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_hold_their_share_of_new_random_walks(coverage):
    fitted = MODEL.create(None, {"horizon": 25}).fit(walks(0, 60, 80, 2), walks(1, 60, 80, 2))
    panel = walks(3, 300, 60, 2)
    history, future = panel.between(0, 40), panel.between(40, 60)
    found = fitted.forecast(history, times=future.times, coverage=coverage)
    inside = (found.lower <= future.values) & (future.values <= found.upper)
    assert abs(inside.mean() - coverage) < 0.04


def test_lead_counts_from_the_last_measurement_of_the_channel():
    fitted = MODEL.create(None, {}).fit(walks(0, 10, 60, 2), walks(1, 10, 60, 2))
    panel = walks(2, 1, 30, 2)
    panel.values[0, -10:, 1] = np.nan
    found = fitted.forecast(panel, times=panel.times[0, -1:] + 1.0)
    width = (found.upper - found.lower)[0, 0]
    assert width[1] > 1.5 * width[0]


def test_constant_channels_and_huge_offsets_stay_finite():
    values = [[3.0, 1e9 + k % 2] for k in range(12)]
    times = [1.7e9 + k for k in range(12)]
    panel = panel_of(*[(times, values)] * 6)
    fitted = MODEL.create(None, {}).fit(panel)
    found = fitted.forecast(panel, horizon=5)
    np.testing.assert_array_equal(found.mean[0, 0], values[-1])
    assert (found.upper >= found.mean).all()
    assert np.isfinite(found.upper).all()
    assert (found.upper - found.lower)[..., 0].max() < 1e-6
    assert 1.0 < (found.upper - found.lower)[..., 1].min() < 4.0


def test_one_short_series_cannot_be_split():
    with pytest.raises(DataError, match="too few"):
        MODEL.create(None, {}).fit(panel_of(([0, 1], [[1, 2], [3, 4]])))


def test_a_single_series_is_split_by_time():
    fitted = MODEL.create(None, {}).fit(walks(4, 1, 200))
    assert np.isfinite(fitted.forecast(walks(5, 1, 9), horizon=3).upper).all()


def test_intervals_are_calibrated_where_errors_are_not_gaussian():
    """Steps with heavy tails: half of them are far smaller than their root mean square."""

    def jumps(seed: int, series: int) -> Panel:
        steps = np.random.default_rng(seed).standard_t(2.2, size=(series, 60, 1))
        made = [
            Series(str(k), np.arange(60.0), one.cumsum(0), np.empty((60, 0)))
            for k, one in enumerate(steps)
        ]
        return Panel.from_series(made, ("x",))

    fitted = MODEL.create(None, {"horizon": 1}).fit(jumps(0, 40), jumps(1, 40))
    panel = jumps(2, 100)
    found = fitted.one_step(panel, coverage=0.5)
    inside = ((found.lower <= panel.values) & (panel.values <= found.upper))[:, 1:]
    assert abs(inside.mean() - 0.5) < 0.05
