"""A damped, driven oscillator with irregular times, missing cells and different lengths."""

import numpy as np
import polars as pl

from physsm._values import Panel, Series
from physsm.data.table import to_panel

STIFFNESS, DAMPING, GAIN = 1.0, 0.1, 0.5
FINE = 0.01


def recording(rows: int, generator: np.random.Generator, name: str) -> Series:
    """One series, with a tenth of the cells missing; the last row is complete."""
    times = 5.0 + np.cumsum(generator.uniform(0.2, 0.8, rows))
    phase = generator.uniform(0, 6)
    clock = np.arange(5.0, times[-1] + FINE, FINE)
    states = np.empty((len(clock), 2))
    state = generator.normal(size=2)
    for i, t in enumerate(clock):
        states[i] = state
        force = np.sin(0.4 * t + phase)
        slope = -STIFFNESS * state[0] - DAMPING * state[1] + GAIN * force
        state = state + FINE * np.array([state[1] + FINE * slope, slope])
    values = np.stack([np.interp(times, clock, column) for column in states.T], 1)
    values += 0.02 * generator.normal(size=values.shape)
    values[:-1][generator.random((rows - 1, 2)) < 0.1] = np.nan
    return Series(name, times, values, np.sin(0.4 * times + phase)[:, None])


def as_frame(series: list[Series], with_control: bool = True) -> pl.DataFrame:
    """The same as a table in long form."""
    columns = {
        "series": [one.id for one in series for _ in one.times],
        "time": np.concatenate([one.times for one in series]),
        "x": np.concatenate([one.values[:, 0] for one in series]),
        "v": np.concatenate([one.values[:, 1] for one in series]),
    }
    if with_control:
        columns["force"] = np.concatenate([one.controls[:, 0] for one in series])
    return pl.DataFrame(columns)


def recordings(seed: int, lengths: tuple[int, ...]) -> list[Series]:
    generator = np.random.default_rng(seed)
    return [recording(rows, generator, f"run {k}") for k, rows in enumerate(lengths)]


def toy_panel(seed: int, lengths: tuple[int, ...]) -> Panel:
    """Channels x and v, control force."""
    return to_panel(as_frame(recordings(seed, lengths)), controls=["force"])
