"""Flights cut from raw logs, and the published channels derived from them.

Flights agree with the published ones row by row, so the cut drops the same samples: two at both
ends of an interval, and the last two before a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from physsm._errors import DataError
from physsm.datasets._crazyflie_log import Event

GRAVITY = 9.81  # m/s^2
PUBLISHED_GRAVITY_Z = 9.18  # an error in the published channels: digits of 9.81 are swapped
MOTOR_LAG = 0.05  # s
_ARM = 0.028  # m, along each axis from the centre to a motor
_FULL = 65536  # the set-point of a motor at full power
_ARMS = _ARM * np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])
_GAP = 3.0  # in median gaps: a larger gap is a break
_SHORTEST = 0.01  # of the interval: shorter pieces are skipped
_DROPPED = 2  # samples at each end of an interval, and before a gap

CHANNELS = tuple(f"{what}_{axis}" for what in ("acc", "gyro", "dgyro") for axis in "xyz")
CONTROLS = ("rpm1", "rpm2", "rpm3", "rpm4", "thrust_z", "torque_x", "torque_y")
Slopes = Literal["central", "backward"]


@dataclass(frozen=True, eq=False)
class Flight:
    """Samples of a flight without a break: s, m/s^2 (g times 9.81), rad/s, set-points 0 to 1.

    `number` are their indices in the log.
    """

    name: str
    number: Int[np.ndarray, " rows"]
    times: Float[np.ndarray, " rows"]
    acceleration: Float[np.ndarray, "rows 3"]
    rate: Float[np.ndarray, "rows 3"]
    motors: Float[np.ndarray, "rows 4"]

    def piece(self, start: int, stop: int, name: str) -> Flight:
        """Rows `start` to `stop`, before channels are derived, so that nothing crosses the cut."""
        rows = slice(start, stop)
        fields = (self.number, self.times, self.acceleration, self.rate, self.motors)
        return Flight(name, *(field[rows] for field in fields))


def cut_flights(
    log: str, event: Event, intervals: tuple[tuple[float, float], ...]
) -> Iterator[Flight]:
    """Flights of a log, named `log_0`, `log_1`, and so on."""
    columns = {
        "acc": ("acc.x", "acc.y", "acc.z"),
        "gyro": ("gyro.x", "gyro.y", "gyro.z"),
        "motor": ("motor.m1", "motor.m2", "motor.m3", "motor.m4"),
    }
    for names in columns.values():
        if missing := [name for name in names if name not in event.variables]:
            raise DataError(f"the log {log} has no variable {missing[0]}")
    with np.errstate(invalid="ignore"):  # casting a NaN may warn; it is an error below
        acc, gyro, motor = (
            np.stack([event.variables[name] for name in names], 1).astype(float)
            for names in columns.values()
        )
    if (np.diff(event.times) <= 0).any():
        row = int(np.flatnonzero(np.diff(event.times) <= 0)[0])
        raise DataError(f"the log {log}, record {row + 2}: the time does not increase")
    for what, values in zip(columns, (acc, gyro, motor), strict=True):
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise DataError(f"the log {log}, record {row + 1}: {what} is not a number")
    flights = 0
    for low, high in intervals:
        interval = np.flatnonzero((low < event.times) & (event.times < high))
        for number in _pieces(interval, event.times):
            yield Flight(
                f"{log}_{flights}",
                number,
                event.times[number],
                acc[number] * GRAVITY,
                np.deg2rad(gyro[number]),
                motor[number] / _FULL,
            )
            flights += 1


def _pieces(interval: Int[np.ndarray, " rows"], times: np.ndarray) -> Iterator[np.ndarray]:
    """Rows between breaks, without those that the published cut drops."""
    if len(interval) < 2 * _DROPPED + 2:
        return
    gaps = np.diff(times[interval])
    breaks = np.flatnonzero(gaps > _GAP * np.median(gaps))
    starts = np.concatenate([[_DROPPED], breaks + 1])
    stops = np.concatenate([breaks + 1, [len(interval)]]) - _DROPPED
    shortest = _SHORTEST * (times[interval[-1]] - times[interval[0]])
    for start, stop in zip(starts, stops, strict=True):
        if stop - start > 1 and times[interval[stop - 1]] - times[interval[start]] > shortest:
            yield interval[start:stop]


def derive(
    flight: Flight, *, faithful: bool, slopes: Slopes
) -> tuple[Float[np.ndarray, "rows 9"], Float[np.ndarray, "rows 7"]]:
    """Channels and controls of a flight.

    `faithful`: keep the error of the published acceleration along z. `slopes`: differences for the
    angular acceleration. Central ones, as published, reveal the next rate one row early; backward
    ones do not, and the first row is then NaN.
    """
    acceleration = np.array(flight.acceleration)
    if faithful:
        acceleration[:, 2] *= PUBLISHED_GRAVITY_Z / GRAVITY
    x = np.concatenate([acceleration, flight.rate, _slope(flight, slopes)], 1)
    torque = flight.motors @ np.cross(_ARMS, [0.0, 0.0, 1.0])
    thrust = flight.motors.sum(1, keepdims=True)
    return x, np.concatenate([_lagged(flight), thrust, torque[:, :2]], 1)


def _slope(flight: Flight, slopes: Slopes) -> Float[np.ndarray, "rows 3"]:
    if slopes == "central":
        return np.gradient(flight.rate, flight.times, axis=0)
    steps = np.diff(flight.rate, axis=0) / np.diff(flight.times)[:, None]
    return np.concatenate([np.full((1, 3), np.nan), steps])


def _lagged(flight: Flight) -> Float[np.ndarray, "rows 4"]:
    """Set-points after a first-order lag, which approximates the speed of the motors."""
    keep = np.exp(-np.diff(flight.times) / MOTOR_LAG)
    lagged = np.empty_like(flight.motors)
    lagged[0] = flight.motors[0]
    for row, share in enumerate(keep, start=1):
        lagged[row] = share * lagged[row - 1] + (1 - share) * flight.motors[row]
    return lagged
