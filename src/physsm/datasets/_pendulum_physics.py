"""Simulation of driven, damped pendulums, many at once.

    theta' = omega
    omega' = -k*sin(theta) - c*omega + gain*torque

Angles are in rad, positive to the right, and zero where the pendulum hangs; they are not wrapped,
so a full turn adds 2*pi. (Gym counts from the upright position: its angle is theta + pi.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

PerSeries = Float[np.ndarray, " series"]
Torque = Callable[[PerSeries], PerSeries]

GYM_STEP = 0.05  # s
GYM_MAX_SPEED = 8.0  # rad/s

# Sub-step times the fastest rate of the motion: errors stay below 1e-8 rad for tens of seconds.
_SUBSTEP = 0.01

# Classical Runge-Kutta method of order four: offset and weight of each slope.
_STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients of `omega' = -k*sin(theta) - c*omega + gain*torque`, one of each per series.

    Units: k in 1/s^2, c in 1/s, gain in 1/(kg m^2).
    """

    k: PerSeries
    c: PerSeries
    gain: PerSeries

    @classmethod
    def of_point_mass(
        cls, length: PerSeries, *, mass: float, gravity: float, damping: float
    ) -> Coefficients:
        """Coefficients of the paper's pendulum: k = g/l, c = b/m, gain = 1/(m l^2).

        Gym's own is a uniform rod, k = 3g/(2l) and gain = 3/(m l^2), without damping.
        """
        return cls(
            k=gravity / length,
            c=np.full_like(length, damping / mass),
            gain=1 / (mass * length**2),
        )


def simulate(
    pendulums: Coefficients,
    start: Float[np.ndarray, "series 2"],
    times: Float[np.ndarray, "series steps"],
    torque: Torque | Float[np.ndarray, "series steps"],
) -> Float[np.ndarray, "series steps 2"]:
    """States (theta, omega) at `times`, any times of each series, by Runge-Kutta of order four.

    `torque` is a function of the times of all series, or one value per row that is held until
    the next row.
    """
    states = np.empty((*times.shape, 2))
    states[:, :1] = start[:, None]
    for row in range(times.shape[1] - 1):
        gap = times[:, row + 1] - times[:, row]
        fastest = max(np.sqrt(pendulums.k).max(), np.abs(states[:, row, 1]).max())
        substeps = max(1, math.ceil(gap.max() * (fastest + pendulums.c.max()) / _SUBSTEP))
        applied = torque if callable(torque) else _held(torque[:, row])
        states[:, row + 1] = _runge_kutta(
            pendulums, states[:, row], times[:, row], gap, substeps, applied
        )
    return states


def simulate_gym(
    pendulums: Coefficients,
    start: Float[np.ndarray, "series 2"],
    torque: Float[np.ndarray, "series steps"],
) -> Float[np.ndarray, "series steps 2"]:
    """States (theta, omega) every 0.05 s, by the update of Gym's Pendulum.

    The speed is updated first (semi-implicit Euler) and clipped to 8 rad/s; the angle then moves
    with the new speed. Gym has no friction: here it is part of the acceleration. Pendulum-v0 moved
    the angle before it clipped the speed, which is the same below that limit.
    """
    states = np.empty((*torque.shape, 2))
    states[:, :1] = start[:, None]
    for row in range(torque.shape[1] - 1):
        theta, omega = states[:, row].T
        push = pendulums.gain * torque[:, row]
        slope = -pendulums.k * np.sin(theta) - pendulums.c * omega + push
        omega = np.clip(omega + GYM_STEP * slope, -GYM_MAX_SPEED, GYM_MAX_SPEED)
        states[:, row + 1] = np.stack([theta + GYM_STEP * omega, omega], axis=1)
    return states


def _held(torque: PerSeries) -> Torque:
    return lambda times: torque


def _runge_kutta(
    pendulums: Coefficients,
    state: Float[np.ndarray, "series 2"],
    time: PerSeries,
    gap: PerSeries,
    substeps: int,
    torque: Torque,
) -> Float[np.ndarray, "series 2"]:
    """State one gap later."""
    k, c, gain = pendulums.k, pendulums.c, pendulums.gain
    theta, omega = state.T
    step = gap / substeps
    for i in range(substeps):
        theta_slope = omega_slope = theta_sum = omega_sum = np.zeros_like(theta)
        for share, weight in _STAGES:
            ahead = share * step
            theta_there, omega_there = theta + ahead * theta_slope, omega + ahead * omega_slope
            push = gain * torque(time + i * step + ahead)
            theta_slope = omega_there
            omega_slope = -k * np.sin(theta_there) - c * omega_there + push
            theta_sum = theta_sum + weight * theta_slope
            omega_sum = omega_sum + weight * omega_slope
        theta, omega = theta + step * theta_sum, omega + step * omega_sum
    return np.stack([theta, omega], axis=1)
