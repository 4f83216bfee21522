"""The pendulum's motion against closed forms, SciPy and Gymnasium."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from physsm.datasets.pendulum import Coefficients, simulate, simulate_gym


def coefficients(*k_c_gain):
    return Coefficients(*(np.atleast_1d(np.asarray(value, float)) for value in k_c_gain))


def irregular_times(series, rows, mean_gap=0.1, seed=0):
    gaps = mean_gap * np.random.default_rng(seed).uniform(0.1, 1.9, (series, rows))
    return np.cumsum(gaps, axis=1) - gaps[:, :1]


def reference(k, c, gain, start, times, torque):
    """One series by SciPy, far more accurate than what is tested."""

    def slope(time, state):
        return [state[1], -k * np.sin(state[0]) - c * state[1] + gain * torque(time)]

    span = (times[0], times[-1])
    solution = solve_ivp(slope, span, start, t_eval=times, method="DOP853", rtol=1e-12, atol=1e-13)
    return solution.y.T


def test_the_paper_s_coefficients():
    pendulums = Coefficients.of_point_mass(
        np.array([1.0, 2.0]), mass=0.5, gravity=10.0, damping=0.7
    )
    np.testing.assert_allclose(pendulums.k, [10.0, 5.0])
    np.testing.assert_allclose(pendulums.c, [1.4, 1.4])
    np.testing.assert_allclose(pendulums.gain, [2.0, 0.5])


def test_agrees_with_scipy_at_irregular_times():
    rng = np.random.default_rng(1)
    pendulums = Coefficients.of_point_mass(
        rng.uniform(1, 2, 5), mass=1.0, gravity=10.0, damping=0.2
    )
    start = rng.uniform([-2.5, -1], [2.5, 1], (5, 2))
    amplitude = rng.uniform(-1, 1, 5)
    times = irregular_times(5, 120)
    states = simulate(pendulums, start, times, lambda t: amplitude * np.cos(0.6 * t))
    for i in range(5):
        expected = reference(
            pendulums.k[i],
            pendulums.c[i],
            pendulums.gain[i],
            start[i],
            times[i],
            lambda t, i=i: amplitude[i] * np.cos(0.6 * t),
        )
        np.testing.assert_allclose(states[i], expected, rtol=0, atol=1e-8)


def test_held_torque_acts_from_its_row_to_the_next():
    times = irregular_times(1, 30, mean_gap=0.4)
    torque = np.random.default_rng(2).uniform(-3, 3, times.shape)
    states = simulate(coefficients(8.0, 0.3, 0.7), np.array([[0.5, 0.0]]), times, torque)
    state = states[0, 0]
    for row in range(29):
        span = times[0, row : row + 2]
        state = reference(8.0, 0.3, 0.7, state, span, lambda t, row=row: torque[0, row])[-1]
        np.testing.assert_allclose(states[0, row + 1], state, rtol=0, atol=1e-8)


@settings(max_examples=20)
@given(st.floats(0.1, 3.0), st.floats(1.0, 20.0), st.integers(0, 1000))
def test_energy_is_kept_without_friction_and_torque(angle, k, seed):
    times = irregular_times(1, 40, mean_gap=0.2, seed=seed)
    states = simulate(
        coefficients(k, 0.0, 0.0), np.array([[angle, 0.0]]), times, np.zeros_like(times)
    )
    energy = states[0, :, 1] ** 2 / 2 - k * np.cos(states[0, :, 0])
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-8 * k)


def test_small_swings_are_a_damped_oscillation():
    k, c, angle = 6.0, 0.4, 1e-4
    times = irregular_times(1, 100)
    states = simulate(
        coefficients(k, c, 0.0), np.array([[angle, 0.0]]), times, np.zeros_like(times)
    )
    decay, turn = c / 2, np.sqrt(k - c**2 / 4)
    wave = np.cos(turn * times) + decay / turn * np.sin(turn * times)
    expected = angle * np.exp(-decay * times) * wave
    np.testing.assert_allclose(states[:, :, 0], expected, rtol=0, atol=1e-8 * angle)


def test_a_large_swing_has_the_period_of_the_elliptic_integral():
    k, angle = 10.0, 2.5
    period = 4 * ellipk(np.sin(angle / 2) ** 2) / np.sqrt(k)
    times = np.array([[0.0, period / 4, period / 2, period]])
    states = simulate(
        coefficients(k, 0.0, 0.0), np.array([[angle, 0.0]]), times, np.zeros_like(times)
    )
    np.testing.assert_allclose(states[0, :, 0], [angle, 0, -angle, angle], rtol=0, atol=1e-8)


def test_series_do_not_touch_each_other():
    times = irregular_times(2, 20)
    start = np.array([[0.5, 0.0], [2.0, 1.0]])
    torque = np.ones_like(times)
    both = simulate(coefficients([5.0, 9.0], [0.1, 0.2], [1.0, 1.0]), start, times, torque)
    alone = simulate(coefficients(5.0, 0.1, 1.0), start[:1], times[:1], torque[:1])
    np.testing.assert_allclose(both[:1], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("start", [[0.4, -0.3], [1.0, 7.9]], ids=["slow", "at the speed limit"])
def test_gym_update_is_gymnasium_s_own(start):
    torque = np.random.default_rng(3).uniform(0, 2, (1, 100))  # within Gymnasium's limit
    env: Any = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    env.state = np.array([start[0] + np.pi, start[1]])
    expected = [env.state]
    for value in torque[0, :-1]:
        env.step(np.array([value]))
        expected.append(env.state)
    states = simulate_gym(coefficients(15.0, 0.0, 3.0), np.array([start]), torque)
    np.testing.assert_allclose(states[0], np.array(expected) - [np.pi, 0], rtol=0, atol=1e-12)
    assert (np.abs(states[0, :, 1]).max() == 8.0) == (start[1] > 7)


def test_gym_update_with_friction_converges_to_the_equations():
    """Its error is of first order in its step: a slower motion in the same steps halves it."""
    errors = []
    for slower in (1.0, 2.0):
        pendulums = coefficients(4.0 / slower**2, 0.5 / slower, 0.0)
        torque = np.zeros((1, int(40 * slower) + 1))
        times = 0.05 * np.arange(torque.shape[1])[None]
        start = np.array([[1.0, 0.0]])
        exact = simulate(pendulums, start, times, torque)[0, -1, 0]
        errors.append(abs(simulate_gym(pendulums, start, torque)[0, -1, 0] - exact))
    assert 1e-4 < errors[1] < errors[0]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.15)
