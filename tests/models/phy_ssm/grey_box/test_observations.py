"""Channels that are functions of hidden states: forecast by their expressions, with constants that
are recovered.
"""

import numpy as np
import pytest
from scipy.linalg import expm

from physsm import PhySSM, System
from physsm._values import Forecast, Panel, Query, Series

# A tank behind a sensor with gain and bias, and a wheel of which only the speed is measured.
TEXT = """control u hold previous
h' = -?k*h + u
w' = -?a*w + ?b*u
observe level = ?gain*h + ?bias, z = abs(w)
unknown ?k, ?a, ?b, ?gain, ?bias constant
?k >= 0
?a >= 0
?b >= 0
"""
TRUE = {"k": 0.6, "a": 1.5, "b": 2.0, "gain": 3.0, "bias": 1.0}
ROWS, CUT = 40, 30


def tanks(seed: int, number: int = 5) -> Panel:
    """Driven by steps of both signs, with small errors, at irregular times."""
    rng = np.random.default_rng(seed)
    A, B = np.diag([-TRUE["k"], -TRUE["a"]]), np.array([1.0, TRUE["b"]])
    series = []
    for i in range(number):
        times = np.cumsum(rng.uniform(0.1, 0.3, ROWS))
        u = np.repeat(rng.uniform(-1, 1, ROWS // 10), 10) + 0.3
        states = np.zeros((ROWS, 2))
        states[0] = rng.uniform(0.2, 1, 2)
        for row in range(1, ROWS):
            step = expm(A * (times[row] - times[row - 1]))
            still = -np.linalg.solve(A, B * u[row - 1])
            states[row] = still + step @ (states[row - 1] - still)
        level = TRUE["gain"] * states[:, 0] + TRUE["bias"]
        values = np.stack([level, np.abs(states[:, 1])], 1)
        values += rng.standard_normal(values.shape) * [0.03, 0.01]
        series.append(Series(str(i), times, values, u[:, None]))
    return Panel.from_series(series, ["level", "z"], ["u"])


@pytest.fixture(scope="module")
def fitted():
    settings = {**PhySSM.test_settings(), "context": 15, "horizon": 10}
    return PhySSM(System.parse(TEXT), **settings).fit(tanks(0), tanks(1), seed=0)


@pytest.fixture(scope="module")
def forecast(fitted) -> Forecast:
    future = tanks(2).between(CUT, ROWS)
    query = Query(future.times, future.controls, future.lengths)
    return fitted.forecast(tanks(2).between(0, CUT), times=query, coverage=None)


def test_constants_of_equations_and_observations_are_recovered(fitted, forecast):
    names = [unknown.name for unknown in fitted.system.unknowns]
    found = dict(zip(names, forecast.unknowns[0, 0], strict=True))
    assert {name: pytest.approx(value, rel=0.05) for name, value in TRUE.items()} == found


def test_channels_are_their_expressions(fitted, forecast):
    names = [unknown.name for unknown in fitted.system.unknowns]
    gain, bias = (forecast.unknowns[..., names.index(name)] for name in ("gain", "bias"))
    h, w = np.moveaxis(forecast.states, -1, 0)
    level, z = np.moveaxis(forecast.mean, -1, 0)
    np.testing.assert_allclose(z, np.abs(w), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(level, gain * h + bias, rtol=1e-5, atol=1e-6)


def test_forecasts_are_as_good_as_the_measurements(forecast):
    error = forecast.mean - tanks(2).values[:, CUT:]
    assert (np.sqrt((error**2).mean((0, 1))) < [0.06, 0.03]).all()
