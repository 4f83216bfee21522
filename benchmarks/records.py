"""Fits of measured records with default settings, beside the limits that a least-squares fit of the
same equations in SciPy sets; and of two of them with one unknown that varies, beside the fit whose
unknowns are all constant, and for the heat exchanger beside an ARX model (0.40 from 20 rows).

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
    results = []
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


def _varying(system: Any, unknown: str) -> Any:
    """The system with an unknown that varies."""
    import physsm

    lines = system.text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("unknown "))
    kept = [name for name in lines[at].split() if name.strip(",") != unknown]
    lines[at] = " ".join(kept).replace(", constant", " constant")
    return physsm.System.parse("\n".join(lines))


def _exchanger(folder: Path) -> list[Measure]:
    import physsm

    rows = np.genfromtxt(folder / "exchanger.csv", delimiter=",", skip_header=1)
    record = Record(rows[:, 0], rows[:, 2:3], rows[:, 1:2])
    system = physsm.System.load("exchanger")
    columns = ["th"], ["q"]
    results = []
    for text, varies, limit in (
        (system, "", 0.63),
        (_varying(system, "?loss"), ", ?loss varies", 0.42),
    ):
        _, errors, seconds = _simulated(text, [record[:3000]], [record[3000:]], columns)
        results += _limits(f"heat exchanger, last 1,000 rows{varies}", seconds, errors, [limit])
    return results


def _ced(folder: Path) -> list[Measure]:
    import physsm

    rows = np.genfromtxt(folder / "DATAUNIF.csv", delimiter=",", names=True)
    times = 0.02 * np.arange(len(rows))
    records = [Record(times, rows[f"z1{i}"][:, None], rows[f"u1{i}"][:, None]) for i in (1, 2)]
    train, tests = [r[:300] for r in records], [r[300:] for r in records]
    system, columns = physsm.System.load("ced"), (["z"], ["u"])
    _, constant, seconds = _simulated(system, train, tests, columns)
    results = _limits("coupled drives, last 200 rows", seconds, constant, [0.36, 0.26])
    _, errors, seconds = _simulated(_varying(system, "?damping"), train, tests, columns)
    name = "coupled drives, last 200 rows, ?damping varies"
    return results + _limits(name, seconds, errors, constant)
