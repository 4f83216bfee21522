"""Errors of tracks against closed forms: distances of known triangles, polynomials in time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physsm import ConfigError
from physsm.metrics import acceleration_error, ade, fde, jerk_error, speed_error

GAP = 0.1
EVERY_MOTION = [speed_error, acceleration_error, jerk_error]
TIMES = GAP * np.arange(30)


def along(distance, angle=0.6):
    """One window: a straight track with this distance from its start at each step."""
    return distance[None, :, None] * np.array([np.cos(angle), np.sin(angle)])


def test_displacements_are_euclidean():
    measured = np.zeros((1, 2, 2))
    predicted = np.array([[[3.0, 4.0], [5.0, 12.0]]])
    assert ade(measured, predicted) == (5 + 13) / 2
    assert fde(measured, predicted) == 13


def test_ade_weighs_windows_the_same_whatever_was_measured_of_them():
    measured = np.zeros((2, 4, 2))
    measured[1, 1:, 0] = np.nan  # one coordinate is not a point
    predicted = np.zeros((2, 4, 2))
    predicted[0, :, 0] = [1.0, 2.0, 3.0, 4.0]
    predicted[1, :, 1] = [7.0, 100.0, 100.0, 100.0]
    assert ade(measured, predicted) == (2.5 + 7) / 2


def test_fde_is_at_the_last_valid_point_of_each_window():
    measured = np.zeros((3, 4, 2))
    measured[1, 2:] = np.nan
    measured[2] = np.nan
    predicted = np.zeros((3, 4, 2))
    predicted[:, :, 0] = [[1.0, 2.0, 3.0, 4.0]]
    assert fde(measured, predicted) == (4 + 2) / 2


@given(st.floats(0, 20), st.floats(0, 3), st.floats(0, 20), st.floats(0, 3), st.integers(1, 7))
def test_constant_accelerations(speed, acceleration, other_speed, other, smooth):
    """The speed over a gap of such a track is that in its middle, smoothed or not."""
    measured = along(speed * TIMES + acceleration * TIMES**2 / 2)
    predicted = along(other_speed * TIMES + other * TIMES**2 / 2, angle=-2.0)
    middles = (TIMES[:-smooth] + TIMES[smooth:]) / 2
    expected = np.abs((other_speed - speed) + (other - acceleration) * middles).mean()
    options = {"gap": GAP, "smooth": smooth}
    np.testing.assert_allclose(speed_error(measured, predicted, **options), expected, atol=1e-9)
    np.testing.assert_allclose(
        acceleration_error(measured, predicted, **options),
        abs(other - acceleration),
        atol=1e-8,
    )
    np.testing.assert_allclose(jerk_error(measured, predicted, **options), 0, atol=1e-6)


def test_jerk_of_a_cubic():
    jerk = 1.8
    measured = along(3 * TIMES + jerk * TIMES**3 / 6)
    predicted = along(3 * TIMES)
    np.testing.assert_allclose(jerk_error(measured, predicted, gap=GAP), jerk, rtol=1e-8)
    # (v[i+1] - v[i]) / h is the acceleration at the point between, exactly, for a cubic.
    np.testing.assert_allclose(
        acceleration_error(measured, predicted, gap=GAP),
        (jerk * TIMES[1:-1]).mean(),
        rtol=1e-9,
    )


def test_a_turn_at_constant_speed_has_no_acceleration_along_the_track():
    angle = 0.3 * TIMES
    circle = 20 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)[None]
    resting = np.zeros_like(circle)
    chord = 2 * 20 * np.sin(0.3 * GAP / 2)
    np.testing.assert_allclose(speed_error(circle, resting, gap=GAP), chord / GAP)
    assert acceleration_error(circle, resting, gap=GAP) < 1e-10


@pytest.mark.parametrize(("number", "metric"), list(enumerate(EVERY_MOTION, start=1)))
@pytest.mark.parametrize("smooth", [1, 3])
def test_counts_only_where_all_points_were_measured(number, metric, smooth):
    """A value needs `number + smooth` points in a row, and one fewer is too few."""
    rng = np.random.default_rng(0)
    values, predicted = rng.normal(size=(2, 1, 12, 2))
    run = number + smooth
    measured = np.full_like(values, np.nan)
    measured[:, 2 : 2 + run - 1] = values[:, 2 : 2 + run - 1]
    measured[:, 10] = values[:, 10]
    assert math.isnan(metric(measured, predicted, gap=GAP, smooth=smooth))
    measured[:, 2 : 2 + run] = values[:, 2 : 2 + run]
    alone = metric(values[:, 2 : 2 + run], predicted[:, 2 : 2 + run], gap=GAP, smooth=smooth)
    np.testing.assert_allclose(metric(measured, predicted, gap=GAP, smooth=smooth), alone)


def test_motion_weighs_windows_the_same_whatever_was_measured_of_them():
    measured = np.concatenate([along(1.0 * TIMES), along(2.0 * TIMES)])
    measured[1, 5:] = np.nan
    resting = np.zeros_like(measured)
    np.testing.assert_allclose(speed_error(measured, resting, gap=GAP), (1 + 2) / 2)


def test_smoothing_undoes_linear_interpolation_between_keyframes():
    """Constant acceleration seen at every fifth step: all of it is in jumps at the keyframes."""
    acceleration, every = 2.0, 5
    steps = np.arange(41)
    true = acceleration * (GAP * steps) ** 2 / 2
    keyframes = steps[::every]
    measured = along(np.interp(steps, keyframes, true[keyframes]))
    perfect = along(true)
    inner = len(keyframes) - 2
    at_jumps = inner * (every - 1) * acceleration  # each holds what all steps around it lack
    elsewhere = (len(steps) - 2 - inner) * acceleration
    np.testing.assert_allclose(
        acceleration_error(measured, perfect, gap=GAP),
        (at_jumps + elsewhere) / (len(steps) - 2),
    )
    assert jerk_error(measured, perfect, gap=GAP) > 10
    # Before the first and after the last jump there is nothing to spread.
    inner_part = slice(every - 2, -(every - 2))
    for metric in (acceleration_error, jerk_error):
        smoothed = metric(measured[:, inner_part], perfect[:, inner_part], gap=GAP, smooth=every)
        np.testing.assert_allclose(smoothed, 0, atol=1e-9)


@pytest.mark.parametrize("metric", EVERY_MOTION)
def test_units_of_time(metric):
    """Twice the gap: the same points at half the speed, a quarter of the acceleration, ..."""
    measured, predicted = np.random.default_rng(1).normal(size=(2, 4, 9, 2))
    power = EVERY_MOTION.index(metric) + 1
    np.testing.assert_allclose(
        metric(measured, predicted, gap=2 * GAP) * 2**power, metric(measured, predicted, gap=GAP)
    )


@pytest.mark.parametrize("metric", EVERY_MOTION)
def test_too_few_steps_have_no_score(metric):
    for steps in range(4):
        short = np.zeros((2, steps, 2))
        assert math.isnan(metric(short, short, gap=GAP, smooth=4))


@pytest.mark.parametrize("metric", EVERY_MOTION)
def test_a_forecast_that_blew_up_has_no_score(metric):
    measured = np.zeros((1, 8, 2))
    assert math.isnan(metric(measured, np.full_like(measured, np.inf), gap=GAP))


@pytest.mark.parametrize("metric", EVERY_MOTION)
def test_wrong_settings_are_reported(metric):
    measured = np.zeros((1, 8, 2))
    for gap in (0.0, -0.1, math.nan):
        with pytest.raises(ConfigError, match="the gap must be a positive number"):
            metric(measured, measured, gap=gap)
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        metric(measured, measured, gap=GAP, smooth=0)
