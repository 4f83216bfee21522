"""Fits of measured records with default settings, beside the limits that a least-squares fit of the
same equations in SciPy sets; and of two simulated tanks, whose constants are known.

Records are found through `$PHYSSM_DATA`; those that are not there are left out. Part of
`make promises`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Measure

CONTEXT = 20  # rows from which a record is simulated


@dataclass(frozen=True)
class Record:
    """Rows of a record: times, channels, controls."""

    times: np.ndarray
    values: np.ndarray
    controls: np.ndarray

    def __getitem__(self, rows: slice) -> Record:
        return Record(self.times[rows], self.values[rows], self.controls[rows])


def measures() -> list[Measure]:
    results = _tanks()
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    for name, fit in (("emps", _emps), ("daisy", _exchanger), ("ced", _ced)):
        if (folder / name).exists():
            results += fit(folder / name)
        else:
            print(f"{name} is left out: set PHYSSM_DATA to the folder of the records")
    return results


def _panel(records: list[Record], channels: list[str], controls: list[str]) -> Any:
    import physsm

    return physsm.panel_from_arrays(
        [record.times for record in records],
        [record.values for record in records],
        controls=[record.controls for record in records],
        channels=channels,
        control_names=controls,
    )


def _simulated(
    system: Any, train: list[Record], tests: list[Record], columns: tuple[list[str], list[str]]
) -> tuple[Any, list[float], float]:
    """The default fit, the error of each test record after its first rows, and the seconds."""
    import physsm

    began = time.perf_counter()
    fitted = physsm.PhySSM(system).fit(_panel(train, *columns))
    seconds, errors = time.perf_counter() - began, []
    for test in tests:
        history, future = test[:CONTEXT], test[CONTEXT:]
        forecast = fitted.forecast(
            _panel([history], *columns), times=future.times, controls=future.controls, coverage=None
        )
        errors.append(float(np.sqrt(((forecast.mean[0] - future.values) ** 2).mean())))
    return fitted, errors, seconds


def _limits(name: str, seconds: float, errors: list[float], limits: list[float]) -> list[Measure]:
    return [
        Measure(f"{name}: RMSE {error:.4g}", seconds, f"{limit:g}", error / limit, 1.0)
        for error, limit in zip(errors, limits, strict=True)
    ]


def _emps(folder: Path) -> list[Measure]:
    import physsm
    from physsm.datasets.emps import read_recording

    records = []
    for name in ("DATA_EMPS", "DATA_EMPS_PULSES"):
        recording = read_recording(folder / f"{name}.mat")
        rows = np.arange(0, len(recording.position), 10)
        count = np.diff(np.append(rows, len(recording.force)))
        force = np.add.reduceat(recording.force, rows) / count
        records.append(Record(rows / 1000, recording.position[rows][:, None], force[:, None]))
    system = physsm.System.load("emps")
    _, errors, seconds = _simulated(system, records[:1], records[1:], (["q"], ["force"]))
    return _limits("EMPS, whole pulse record", seconds, errors, [0.008])


def _exchanger(folder: Path) -> list[Measure]:
    import physsm

    rows = np.genfromtxt(folder / "exchanger.csv", delimiter=",", skip_header=1)
    record = Record(rows[:, 0], rows[:, 2:3], rows[:, 1:2])
    system = physsm.System.load("exchanger")
    _, errors, seconds = _simulated(system, [record[:3000]], [record[3000:]], (["th"], ["q"]))
    return _limits("heat exchanger, last 1,000 rows", seconds, errors, [0.63])


def _ced(folder: Path) -> list[Measure]:
    import physsm

    rows = np.genfromtxt(folder / "DATAUNIF.csv", delimiter=",", names=True)
    times = 0.02 * np.arange(len(rows))
    records = [Record(times, rows[f"z1{i}"][:, None], rows[f"u1{i}"][:, None]) for i in (1, 2)]
    train, tests = [r[:300] for r in records], [r[300:] for r in records]
    _, errors, seconds = _simulated(physsm.System.load("ced"), train, tests, (["z"], ["u"]))
    return _limits("coupled drives, last 200 rows", seconds, errors, [0.36, 0.26])


TANKS = """\
control pump hold previous
constant rim = 10
h1' = -?k1*sqrt(h1) + ?k4*pump - ?spill*[max(h1 - rim, 0)]
h2' = ?k2*sqrt(h1) - ?k3*sqrt(h2)
unknown ?k1, ?k2, ?k3, ?k4, ?spill constant
?k1, ?k2, ?k3, ?k4, ?spill >= 0
state h1, h2 >= 0
observe h2
"""


def _tanks() -> list[Measure]:
    """One record of 1,024 rows, the upper tank hidden and overflowing, with 1 % of noise."""
    import physsm

    rng = np.random.default_rng(0)
    true = {"k1": 0.2, "k2": 0.2, "k3": 0.25, "k4": 0.15, "spill": 0.5}
    pump = np.repeat(rng.uniform(0.5, 8.0, 64), 16)[:, None]
    h1, h2, levels = 3.0, 3.0, []
    for u in pump[:, 0]:
        levels.append(h2)
        for _ in range(40):
            over = max(h1 - 10, 0.0)
            down = np.sqrt(h1)
            h1 += 0.1 * (-true["k1"] * down + true["k4"] * u - true["spill"] * over)
            h2 += 0.1 * (true["k2"] * down - true["k3"] * np.sqrt(h2))
            h1, h2 = max(h1, 0.0), max(h2, 0.0)
    clean = np.array(levels)[:, None]
    noise = 0.01 * clean.std()
    record = Record(4.0 * np.arange(len(clean)), clean + noise * rng.normal(size=clean.shape), pump)
    system = physsm.System.parse(TANKS)
    fitted, errors, seconds = _simulated(system, [record], [record], (["h2"], ["pump"]))
    values = fitted.unknowns(_panel([record[:50]], ["h2"], ["pump"])).mean[0, -1]
    results = _limits("tanks, whole record", seconds, errors, [1.2 * float(noise)])
    for unknown, value in zip(system.unknowns, values, strict=True):
        error = abs(float(value) / true[unknown.name] - 1)
        label = f"tanks: {unknown.name} {error:.1%} off"
        results.append(Measure(label, seconds, "5 %", error / 0.05, 1.0))
    return results
