"""Constant turn rate against circles and lines in closed form, and turned frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._errors import ConfigError
from physsm._values import Panel, Series
from physsm.models.constant_turn_rate import MODEL
from physsm.models.constant_velocity import MODEL as STRAIGHT
from tests.examples import examples
from tests.models.tracks import arcs, turned, turned_values

TRACK = {"positions": ["x", "y"], "heading": "psi", "velocities": ["v_x", "v_y"]}
NOISY = arcs(4, [0.3, -0.5, 0.0, 0.9, -0.2, 0.1], noise=0.05)
TURN_RATES = [0.5, -1.5, 0.0, 1e-3, 3.0, -0.01]


def without_turns(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.parametrize("turn_from", ["positions", "heading"])
@pytest.mark.parametrize("points", [3, 8])
def test_circles_and_lines_are_exact_at_irregular_times(turn_from, points):
    panel = arcs(0, TURN_RATES)
    chosen = {"tracks": [TRACK], "turn_from": turn_from, "points": [points]}
    fitted = MODEL.create(None, chosen).fit(panel)
    history, future = panel.between(0, 20), panel.between(20, 30)
    found = fitted.forecast(history, times=future.times).mean
    error = found - future.values
    error[..., 2] = without_turns(error[..., 2])
    np.testing.assert_allclose(error, 0, atol=1e-6)


def test_the_heading_grows_beyond_half_a_turn():
    panel = arcs(0, [1.0] * 5)
    fitted = MODEL.create(None, {"tracks": [TRACK]}).fit(panel)
    times = panel.times[:, -1:] + np.array([1.0, 101.0])
    heading = fitted.forecast(panel, times=times).mean[..., 2]
    np.testing.assert_allclose(np.diff(heading), 100.0, rtol=1e-6)


@settings(max_examples=examples(20))
@given(angle=st.floats(-10, 10))
@pytest.mark.parametrize("turn_from", ["positions", "heading"])
def test_a_turned_frame_turns_the_forecast(turn_from, angle):
    times = NOISY.times[:, -1:] + np.array([0.5, 3.0])
    chosen = {"points": [3, 8], "horizon": 6, "tracks": [TRACK], "turn_from": turn_from}
    one, other = (
        MODEL.create(None, chosen).fit(panel, panel) for panel in (NOISY, turned(NOISY, angle))
    )
    assert one.describe() == other.describe()
    found = one.forecast(NOISY, times=times).mean
    there = other.forecast(turned(NOISY, angle), times=times).mean
    np.testing.assert_allclose(there, turned_values(found, angle), rtol=1e-8, atol=1e-6)


@settings(max_examples=examples(20))
@given(
    step=st.sampled_from([0.0, 1e-12, 0.01, 0.04]),
    seed=st.integers(0, 1000),
)
def test_slow_tracks_go_straight_and_never_far(step, seed):
    """A thing that stands, measured with noise: at 0.1 s, 0.01 m of noise looks like 0.1 m/s."""
    random = np.random.default_rng(seed)
    made = [
        Series(str(k), 0.1 * np.arange(20), step * random.normal(size=(20, 2)), np.empty((20, 0)))
        for k in range(6)
    ]
    panel = Panel.from_series(made, ("x", "y"))
    times = panel.times[:, -1:] + np.array([0.1, 5.0])
    slow = {"points": [20], "least_speed": 0.5}
    found = MODEL.create(None, slow).fit(panel, panel).forecast(panel, times=times).mean
    straight = STRAIGHT.create(None, {"points": [20]}).fit(panel, panel)
    np.testing.assert_allclose(found, straight.forecast(panel, times=times).mean, atol=1e-12)
    spinning = MODEL.create(None, {"points": [3], "least_speed": 0.0}).fit(panel, panel)
    far = spinning.forecast(panel, times=times).mean
    assert np.isfinite(far).all()
    assert np.abs(far).max() <= 200 * step


def test_measured_headings_steer_a_slow_track():
    """Crawling at 0.1 m/s on a circle: too slow for positions, and exact with the heading."""
    t = 0.1 * np.arange(40)
    made = []
    for k in range(6):
        psi = k + 0.5 * t
        values = np.stack([0.2 * np.sin(psi), -0.2 * np.cos(psi), psi], 1)
        made.append(Series(str(k), t, values, np.empty((40, 0))))
    panel = Panel.from_series(made, ("x", "y", "psi"))
    track = {"positions": ["x", "y"], "heading": "psi"}
    history, future = panel.between(0, 20), panel.between(20, 40)
    error = {}
    for turn_from in ("positions", "heading"):
        fitted = MODEL.create(None, {"tracks": [track], "turn_from": turn_from}).fit(panel)
        found = fitted.forecast(history, times=future.times).mean
        error[turn_from] = np.abs(found - future.values).max()
    assert error["heading"] < 1e-9
    assert error["positions"] > 0.01


def test_two_points_go_straight_and_one_stays():
    fitted = MODEL.create(None, {"tracks": [{"positions": ["x", "y"]}]}).fit(NOISY)
    times = NOISY.times[:, 1:2] + 1.0
    one = fitted.forecast(NOISY.between(0, 1), times=times).mean[:, 0, :2]
    np.testing.assert_allclose(one, NOISY.values[:, 0, :2])
    two = fitted.forecast(NOISY.between(0, 2), times=times).mean[:, 0, :2]
    gap = (NOISY.times[:, 1] - NOISY.times[:, 0])[:, None]
    slope = (NOISY.values[:, 1, :2] - NOISY.values[:, 0, :2]) / gap
    np.testing.assert_allclose(two, NOISY.values[:, 1, :2] + slope, rtol=1e-9)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="heading"):
        MODEL.create(None, {"turn_from": "heading", "tracks": [{"positions": ["x", "y"]}]}).fit(
            NOISY
        )
    with pytest.raises(ConfigError, match="turn_from"):
        MODEL.create(None, {"turn_from": "wheels"})
    with pytest.raises(ConfigError, match="least_speed"):
        MODEL.create(None, {"least_speed": -1})
