"""The straight line against closed forms and NumPy's least squares."""

import numpy as np
import pytest

from physsm._errors import ConfigError, DataError
from physsm._values import Panel, Series
from physsm.models.line import MODEL


def panel_of(times: list[np.ndarray], values: list[np.ndarray]) -> Panel:
    made = [
        Series(str(k), t, x, np.empty((len(t), 0)))
        for k, (t, x) in enumerate(zip(times, values, strict=True))
    ]
    return Panel.from_series(made, [f"x{c}" for c in range(values[0].shape[1])])


def irregular(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, rows).cumsum()


def lines(seed: int, series: int, rows: int, noise: float, offset: float = 0.0) -> Panel:
    random = np.random.default_rng(seed)
    times = [irregular(seed + k, rows) for k in range(series)]
    slopes = random.normal(size=(series, 2))
    values = [
        offset + np.outer(t, slope) + noise * random.normal(size=(rows, 2))
        for t, slope in zip(times, slopes, strict=True)
    ]
    return panel_of(times, values)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_line_without_noise_is_exact_at_irregular_times(offset):
    panel = lines(0, 8, 40, noise=0.0, offset=offset)
    panel.values[:, 5:9, 0] = np.nan
    fitted = MODEL.create(None, {}).fit(panel)
    history, future = panel.between(0, 25), panel.between(25, 40)
    found = fitted.forecast(history, times=future.times)
    np.testing.assert_allclose(found.mean, future.values, atol=1e-9 * max(1, offset * 0.01))


def test_equals_least_squares_through_the_last_measurements():
    panel = lines(3, 6, 30, noise=1.0)
    panel.values[:, [27, 29], 0] = np.nan
    fitted = MODEL.create(None, {"points": [5]}).fit(panel)
    times = panel.times[:, -1:] + np.array([0.3, 2.0, 9.0])
    found = fitted.forecast(panel, times=times)
    for i, one in enumerate(panel):
        for channel in range(2):
            seen = np.flatnonzero(~np.isnan(one.values[:, channel]))[-5:]
            slope, start = np.polyfit(one.times[seen], one.values[seen, channel], 1)
            np.testing.assert_allclose(found.mean[i, :, channel], start + slope * times[i])


def test_more_noise_takes_more_points():
    """Channel 0 turns often and has no noise, channel 1 is a line under much noise."""
    random = np.random.default_rng(0)
    times = [irregular(k, 120) for k in range(10)]
    values = [
        np.stack([np.abs(t % 20 - 10), 0.05 * t + random.normal(size=len(t))], 1) for t in times
    ]
    fitted = MODEL.create(None, {"horizon": 4}).fit(panel_of(times, values))
    few, many = fitted.describe()["points"]
    assert few <= 3
    assert many >= 40


def test_short_histories_use_what_they_have():
    fitted = MODEL.create(None, {"points": [8]}).fit(lines(0, 6, 20, noise=0.1))
    one = panel_of([np.array([2.0])], [np.array([[3.0, np.nan]])])
    found = fitted.forecast(one, times=[5.0])
    np.testing.assert_allclose(found.mean[0, 0], [3.0, fitted.channel_scales.mean[1]])
    two = panel_of([np.array([2.0, 4.0])], [np.array([[3.0, 1.0], [4.0, -1.0]])])
    np.testing.assert_allclose(fitted.forecast(two, times=[6.0]).mean[0, 0], [5.0, -3.0])


def test_intervals_hold_their_share():
    """Lines under noise, forecast from their last 8 points."""
    train = lines(0, 40, 60, noise=0.5)
    fitted = MODEL.create(None, {"points": [8], "horizon": 15}).fit(train, seed=2)
    panel = lines(500, 200, 55, noise=0.5)
    history, future = panel.between(0, 40), panel.between(40, 55)
    found = fitted.forecast(history, times=future.times, coverage=0.9)
    inside = (found.lower <= future.values) & (future.values <= found.upper)
    assert abs(inside.mean() - 0.9) < 0.03


def test_points_of_a_line_are_checked():
    with pytest.raises(ConfigError, match="points"):
        MODEL.create(None, {"points": [1]})
    with pytest.raises(ConfigError, match="points"):
        MODEL.create(None, {"points": []})


def test_a_validation_part_that_decides_nothing_is_refused():
    panel = lines(0, 6, 20, noise=0.1)
    with pytest.raises(DataError, match="validation"):
        MODEL.create(None, {}).fit(panel, panel.between(0, 1))
