"""Known physics needs no training, constants are recovered, streams agree, warnings say why."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physsm import PhySSM, System
from physsm._errors import DataError
from physsm._values import Panel, Query, Series
from physsm.models.phy_ssm.forecaster import FittedPhySSM
from tests.models.phy_ssm.make import small_panel_settings, untrained

PENDULUM = "theta' = omega\nomega' = -6*sin(theta) - 0.2*omega\nobserve theta, omega"
RATE = "x' = v\nv' = -?k*x - 0.2*v\nunknown ?k constant\nobserve x, v"


def simulate(right, starts, gap, rows, seed=0):
    rng = np.random.default_rng(seed)
    series = []
    for i, start in enumerate(starts):
        times = np.cumsum(rng.uniform(0.5, 1.5, rows) * gap)
        states = solve_ivp(
            right, (times[0], times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-11
        ).y.T
        series.append(Series(str(i), times, states, np.zeros((rows, 0))))
    return series


def cut(series, boundary, channels):
    history = [
        s._replace(
            times=s.times[:boundary], values=s.values[:boundary], controls=s.controls[:boundary]
        )
        for s in series
    ]
    panel = Panel.from_series(history, channels)
    times = np.stack([s.times[boundary:] for s in series])
    query = Query(times, np.zeros((*times.shape, 0)), np.full(len(series), times.shape[1]))
    return panel, query, np.stack([s.values[boundary:] for s in series])


def swings():
    """Histories of pendulums, and their futures."""
    starts = np.random.default_rng(1).uniform(-1, 1, (6, 2))
    series = simulate(lambda t, y: [y[1], -6 * np.sin(y[0]) - 0.2 * y[1]], starts, 0.05, 80)
    return cut(series, 40, ["theta", "omega"])


def oscillators():
    starts = np.random.default_rng(1).uniform(-1, 1, (6, 2))
    return simulate(lambda t, y: [y[1], -3 * y[0] - 0.2 * y[1]], starts, 0.1, 60)


@cache
def known_pendulum() -> FittedPhySSM:
    """Pendulums that are known, before any training."""
    return untrained(PENDULUM, swings()[0])


@pytest.fixture(scope="module")
def oscillator():
    """Fitted to oscillators of one unknown stiffness."""
    panel = Panel.from_series(oscillators(), ["x", "v"])
    return PhySSM(System.parse(RATE), **small_panel_settings(steps=150)).fit(panel, seed=0)


def test_known_physics_needs_no_training():
    panel, query, truth = swings()
    forecast = known_pendulum().forecast(panel, times=query, coverage=None)
    error = np.sqrt(np.mean((forecast.mean - truth) ** 2, axis=(0, 1))) / truth.std((0, 1))
    assert np.all(error < 0.03), error
    assert forecast.unknowns is not None
    assert forecast.unknowns.shape[-1] == 0


def test_one_unknown_constant_is_recovered_from_clean_data(oscillator):
    found = oscillator.unknowns(Panel.from_series(oscillators(), ["x", "v"])).mean[0, -1, 0]
    assert abs(found / 3 - 1) < 0.02


@pytest.mark.parametrize("inference", ["kalman", "encoder"])
def test_a_stream_forecasts_like_the_batch(oscillator, inference):
    series = oscillators()
    for s in series:
        s.values[np.random.default_rng(2).random(s.values.shape) < 0.3] = np.nan
    panel, query, _ = cut(series, 40, ["x", "v"])
    fitted = oscillator
    if inference == "encoder":
        fitted = untrained(RATE, panel, inference="encoder")
    batch = fitted.forecast(panel, times=query, coverage=None)
    stream, one = fitted.start(), panel[2]
    for t, x in zip(one.times, one.values, strict=True):
        stream = fitted.update(stream, t, x)
    for wrong in (
        {"x": ["a", 0]},
        {"x": [1.0]},
        {"x": [1.0, 2.0], "u": [1.0]},
        {"t": np.nan},
        {"t": [1e3, 1e4]},
    ):
        with pytest.raises(DataError):
            fitted.update(stream, **{"t": 1e3, "x": [1.0, 2.0], **wrong})
    streamed = fitted.forecast_stream(stream, times=query.times[2], coverage=None)
    np.testing.assert_allclose(streamed.mean[0], batch.mean[2], rtol=1e-5, atol=1e-5)


def test_a_divergent_forecast_names_its_state_and_time():
    series = simulate(lambda t, y: [0.5 * y[0]], np.ones((6, 1)), 0.1, 40)
    panel = Panel.from_series(series, ["x"])
    fitted = untrained("x' = 0.5*x + ?more*x\n0.4 <= ?more <= 0.6\nobserve x", panel)
    forecast = fitted.forecast(panel, horizon=400, coverage=None)
    assert np.isfinite(forecast.mean).all()
    *of_series, too_far = forecast.warnings
    assert len(of_series) == 6
    assert "time steps ahead; the model was fitted for 6" in too_far
    assert "leaves the stable region at time" in forecast.warnings[0]
    assert "by x (unknown terms in its equation: more)" in forecast.warnings[0]


def test_a_time_beyond_all_steps_is_refused():
    with pytest.raises(DataError, match="steps of the model after the history"):
        known_pendulum().forecast(swings()[0], times=[1e12], coverage=None)
