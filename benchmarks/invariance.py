"""Forecasts of every model for the same table in other units, on a shifted clock, in another order:
`python -m benchmarks invariance`, part of `make promises`.

The table is an oscillator with a force; `s` is as it was simulated, the others must give the same
forecasts up to a thousandth of their size. Order of series and channels: for models without a
training loop; a network draws its first weights and its batches in the order of the table.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Measure

LIMIT = 1e-3
SETTINGS = {  # of networks: a few steps, which must be the same steps
    "context": 8,
    "horizon": 4,
    "stride": 2,
    "samples": 4,
    "training": {"steps": 20, "batch_size": 16, "validations": 2},
}
STIFFNESS, DAMPING, GAIN, FINE = 1.0, 0.1, 0.5, 0.01


class Table(NamedTuple):
    """Series as times, values (x, v) and controls."""

    times: list[np.ndarray]
    values: list[np.ndarray]
    controls: list[np.ndarray]


class Change(NamedTuple):
    """Factors of time, x, v and force, a shift of the clock, and whether series and channels are
    in another order.
    """

    name: str
    time: float = 1.0
    x: float = 1.0
    v: float = 1.0
    force: float = 1.0
    shift: float = 0.0
    is_reordered: bool = False


CHANGES = (
    Change("ms", time=1e3, v=1e-3),
    Change("h", time=1 / 3600, v=3600.0),
    Change("other units of x and force", x=7.3, v=7.3, force=0.2),
    Change("clock + 1e9 s", shift=1e9),
    Change("another order", is_reordered=True),
)


def measures() -> list[Measure]:
    from physsm._registry import find, names_in

    results = []
    for name in names_in("models"):
        kind = find("models", name, "MODEL")
        began = time.perf_counter()
        wanted = _forecast(kind, Change("s"))
        size = float(np.abs(wanted).max())
        for change in CHANGES:
            if change.is_reordered and kind.trains and name not in ("phy_ssm", "grey_box"):
                continue
            if name == "constant_turn_rate" and change.time != 1:
                continue  # both channels are coordinates in a plane: they have one unit
            found = _forecast(kind, change)
            ratio = float(np.abs(found - wanted).max()) / size
            seconds = time.perf_counter() - began
            results.append(Measure(f"{name}, {change.name}", seconds, "its size", ratio, LIMIT))
            print(results[-1], flush=True)
    return results


def _forecast(kind: Any, change: Change) -> np.ndarray:
    """Forecasts in the units of the simulation, (series, steps, channels)."""
    import physsm

    fields = kind.Config.model_fields
    settings = {key: value for key, value in SETTINGS.items() if key in fields}
    system = physsm.System.load("oscillator") if kind.physics else None
    model = kind.create(system, settings)
    train, validation, test = (_panel(_simulate(seed, n), change) for seed, n in _SIZES)
    fitted = model.fit(train, validation, seed=0)
    history = test.between(0, 16)
    future = test.between(16, 24)
    query = {"times": future.times, "controls": future.controls}
    mean = fitted.forecast(history, **query, coverage=None).mean
    places = [list(test.channels).index(name) for name in ("x", "v")]
    mean = mean[..., places] / np.array([change.x, change.v])
    return mean[np.argsort([int(name) for name in test.ids])]


_SIZES = ((1, 20), (2, 4), (3, 4))  # seed and number of series: training, validation, test


def _panel(table: Table, change: Change) -> Any:
    import physsm

    order = np.arange(len(table.times))[:: -1 if change.is_reordered else 1]
    channels = ["v", "x"] if change.is_reordered else ["x", "v"]
    factors = np.array([change.x, change.v])

    def values(i: int) -> np.ndarray:
        scaled = table.values[i] * factors
        return scaled[:, ::-1] if change.is_reordered else scaled

    return physsm.panel_from_arrays(
        [(table.times[i] + change.shift) * change.time for i in order],
        [values(i) for i in order],
        controls=[table.controls[i] * change.force for i in order],
        channels=channels,
        control_names=["force"],
        ids=[str(i) for i in order],
    )


def _simulate(seed: int, number: int) -> Table:
    rng = np.random.default_rng(seed)
    table = Table([], [], [])
    for _ in range(number):
        times = np.cumsum(rng.uniform(0.2, 0.8, 24))
        phase, clock = rng.uniform(0, 6), np.arange(0, 25, FINE)
        states, state = [], rng.normal(size=2)
        for drive in np.sin(0.4 * clock + phase):
            states.append(state)
            slope = -STIFFNESS * state[0] - DAMPING * state[1] + GAIN * drive
            state = state + FINE * np.array([state[1] + FINE * slope, slope])
        values = np.stack([np.interp(times, clock, column) for column in np.array(states).T], 1)
        values = values + 0.02 * rng.normal(size=values.shape)
        values[:-1][rng.random((23, 2)) < 0.1] = np.nan
        table.times.append(times)
        table.values.append(values)
        table.controls.append(np.sin(0.4 * times + phase)[:, None])
    return table
