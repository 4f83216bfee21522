"""Circles and lines in a plane, at irregular times, in closed form."""

from dataclasses import replace

import numpy as np

from physsm._values import Panel, Series

CHANNELS = ("x", "y", "psi", "v_x", "v_y", "mass")


def arcs(seed: int, turn_rates: list[float], rows: int = 30, noise: float = 0.0) -> Panel:
    """Speed 1 to 20 on a circle of each turn rate (0 is a line). Heading wraps at half a turn."""
    random = np.random.default_rng(seed)
    series = []
    for k, turn_rate in enumerate(turn_rates):
        t = random.uniform(0.05, 0.3, rows).cumsum()
        speed, heading = random.uniform(1, 20), random.uniform(-3, 3)
        psi = heading + turn_rate * t
        start = random.normal(size=2) * 100
        if turn_rate:
            way = np.stack([np.sin(psi), -np.cos(psi)], 1) * speed / turn_rate
        else:
            way = speed * np.outer(t, [np.cos(heading), np.sin(heading)])
        velocity = speed * np.stack([np.cos(psi), np.sin(psi)], 1)
        wrapped = (psi + np.pi) % (2 * np.pi) - np.pi
        position = start + way + noise * random.normal(size=way.shape)
        values = np.column_stack([position, wrapped, velocity, np.full(rows, 3.0)])
        series.append(Series(str(k), t, values, np.empty((rows, 0))))
    return Panel.from_series(series, CHANNELS)


def turned(panel: Panel, angle: float) -> Panel:
    """The same motion in another frame."""
    return replace(panel, values=turned_values(panel.values, angle))


def turned_values(values: np.ndarray, angle: float) -> np.ndarray:
    """Positions, heading and velocities in another frame."""
    result = values.copy()
    c, s = np.cos(angle), np.sin(angle)
    for i, j in ((0, 1), (3, 4)):
        result[..., i] = c * values[..., i] - s * values[..., j]
        result[..., j] = s * values[..., i] + c * values[..., j]
    result[..., 2] += angle
    return result
