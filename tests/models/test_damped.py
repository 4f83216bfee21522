"""The damped trend against its closed form, the line and a simulated approach to rest."""

import numpy as np
import pytest

from physsm._errors import ConfigError
from physsm._values import Panel, Series
from physsm.models.damped import MODEL
from physsm.models.line import MODEL as LINE


def panel_of(times: list[np.ndarray], values: list[np.ndarray]) -> Panel:
    made = [
        Series(str(k), t, x, np.empty((len(t), 0)))
        for k, (t, x) in enumerate(zip(times, values, strict=True))
    ]
    return Panel.from_series(made, [f"x{c}" for c in range(values[0].shape[1])])


def irregular(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, rows).cumsum()


def walks(seed: int, series: int, rows: int) -> Panel:
    random = np.random.default_rng(seed)
    times = [irregular(seed + k, rows) for k in range(series)]
    return panel_of(times, [random.normal(size=(rows, 2)).cumsum(0) for _ in times])


def test_equals_a_polynomial_fit_with_the_slope_integrated():
    """The slope decays as exp(-t/tau): its integral by quadrature."""
    panel = walks(3, 6, 30)
    panel.values[:, [27, 29], 0] = np.nan
    fitted = MODEL.create(None, {"points": [5], "dampings": [7.0]}).fit(panel)
    tau = 7.0 * fitted.interface.median_gap
    times = panel.times[:, -1:] + np.array([0.3, 2.0, 30.0])
    found = fitted.forecast(panel, times=times).mean
    for i, one in enumerate(panel):
        for channel in range(2):
            seen = np.flatnonzero(~np.isnan(one.values[:, channel]))[-5:]
            slope, start = np.polyfit(one.times[seen], one.values[seen, channel], 1)
            last = one.times[seen[-1]]
            for step, t in enumerate(times[i]):
                clock = np.linspace(0, t - last, 20001)
                wanted = start + slope * last + np.trapezoid(slope * np.exp(-clock / tau), clock)
                np.testing.assert_allclose(found[i, step, channel], wanted, atol=1e-5)


def test_a_long_damping_is_the_line_and_a_short_one_stays():
    panel = walks(0, 6, 40)
    times = panel.times[:, -1:] + np.array([1.0, 5.0])
    line = LINE.create(None, {"points": [4]}).fit(panel).forecast(panel, times=times).mean
    slow = MODEL.create(None, {"points": [4], "dampings": [1e9]}).fit(panel)
    np.testing.assert_allclose(slow.forecast(panel, times=times).mean, line, rtol=1e-6)
    fast = MODEL.create(None, {"points": [2], "dampings": [1e-9]}).fit(panel)
    last = np.repeat(panel.values[:, -1:], 2, axis=1)
    np.testing.assert_allclose(fast.forecast(panel, times=times).mean, last, atol=1e-6)


def test_chooses_the_damping_of_each_channel():
    """Channel 0 comes to rest with a time constant of 5 gaps, channel 1 runs straight on."""
    times = [np.arange(60.0) for _ in range(8)]
    starts = np.random.default_rng(0).normal(size=8)
    values = [
        np.stack([s * (1 - np.exp(-t / 5)), s * t], 1) for s, t in zip(starts, times, strict=True)
    ]
    settings = {"points": [2], "dampings": [1.0, 5.0, 1e5], "horizon": 10}
    fitted = MODEL.create(None, settings).fit(panel_of(times, values))
    assert fitted.describe() == {"points": [2, 2], "dampings": [5.0, 1e5]}
    history = panel_of([times[0][:5]], [values[0][:5]])
    found = fitted.forecast(history, times=times[0][5:]).mean[0]
    np.testing.assert_allclose(found[:, 0], values[0][5:, 0], atol=0.06 * abs(starts[0]))
    np.testing.assert_allclose(found[:, 1], values[0][5:, 1], rtol=1e-3)


def test_settings_are_checked():
    for wrong in ({"points": [1]}, {"points": []}, {"dampings": [0.0]}, {"dampings": []}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            MODEL.create(None, wrong)
