"""Constant velocity against lines in closed form, NumPy's least squares and turned frames."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._errors import ConfigError, DataError
from physsm.models.constant_velocity import MODEL
from tests.examples import examples
from tests.models.tracks import arcs, turned, turned_values

TRACK = {"positions": ["x", "y"], "heading": "psi", "velocities": ["v_x", "v_y"]}
NOISY = arcs(4, [0.3, -0.5, 0.0, 0.9, -0.2, 0.1], noise=0.2)


def test_a_straight_track_is_exact_with_its_heading_and_velocities():
    panel = arcs(0, [0.0] * 6)
    fitted = MODEL.create(None, {"tracks": [TRACK]}).fit(panel)
    history, future = panel.between(0, 20), panel.between(20, 30)
    found = fitted.forecast(history, times=future.times)
    np.testing.assert_allclose(found.mean, future.values, atol=1e-9)


def test_equals_least_squares_through_rows_where_both_axes_were_measured():
    values = NOISY.values.copy()
    values[:, 27, 0] = values[:, 28, 1] = np.nan
    panel = replace(NOISY, values=values)
    fitted = MODEL.create(None, {"points": [4], "tracks": [{"positions": ["x", "y"]}]}).fit(
        panel, NOISY
    )
    times = panel.times[:, -1:] + np.array([0.3, 2.0])
    found = fitted.forecast(panel, times=times).mean
    rows = [24, 25, 26, 29]
    for i in range(len(panel)):
        slope, start = np.polyfit(panel.times[i, rows], values[i, rows, :2], 1)
        np.testing.assert_allclose(found[i, :, :2], start + np.outer(times[i], slope))
    np.testing.assert_allclose(found[..., 2:], np.repeat(values[:, -1:, 2:], 2, axis=1))


@settings(max_examples=examples(20))
@given(angle=st.floats(-10, 10))
def test_a_turned_frame_turns_the_forecast(angle):
    times = NOISY.times[:, -1:] + np.array([0.5, 3.0])
    chosen = {"points": [2, 5, 12], "horizon": 6, "tracks": [TRACK]}
    one, other = (
        MODEL.create(None, chosen).fit(panel, panel) for panel in (NOISY, turned(NOISY, angle))
    )
    assert one.describe() == other.describe()
    found = one.forecast(NOISY, times=times).mean
    there = other.forecast(turned(NOISY, angle), times=times).mean
    np.testing.assert_allclose(there, turned_values(found, angle), rtol=1e-9, atol=1e-7)


def test_axes_that_were_never_measured_together_stay_as_they_were():
    fitted = MODEL.create(None, {"tracks": [{"positions": ["x", "y"]}]}).fit(NOISY)
    values = NOISY.values.copy()
    values[:, ::2, 0] = values[:, 1::2, 1] = np.nan
    panel = replace(NOISY, values=values)
    found = fitted.forecast(panel, times=panel.times[:, -1:] + 1.0).mean[:, 0]
    np.testing.assert_array_equal(found[:, 0], NOISY.values[:, 29, 0])
    np.testing.assert_array_equal(found[:, 1], NOISY.values[:, 28, 1])


def test_tracks_are_checked():
    with pytest.raises(DataError, match="name the channels of positions in the setting tracks"):
        MODEL.create(None, {}).fit(NOISY)
    with pytest.raises(DataError, match="no channel q"):
        MODEL.create(None, {"tracks": [{"positions": ["x", "q"]}]}).fit(NOISY)
    with pytest.raises(DataError, match="x occurs twice"):
        MODEL.create(None, {"tracks": [{"positions": ["x", "x"]}]}).fit(NOISY)
    with pytest.raises(DataError, match="two channels"):
        MODEL.create(None, {}).fit(NOISY.only(["x"]))
    with pytest.raises(ConfigError, match="positions"):
        MODEL.create(None, {"tracks": [{"positions": ["x"]}]})
    with pytest.raises(ConfigError, match="points"):
        MODEL.create(None, {"points": [1]})
