"""Promises of the README, checked: the demo over three seeds, and fits of three tables with
default settings. Takes about a quarter of an hour on two cores; `make promises`.

Every number is a share of its limit: an error against that of another model or of the signal, a
time against three minutes.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.measure import Measure

SEEDS = (0, 1, 2)
SECONDS, CONSTANT_ERROR, FORECAST_ERROR = 180.0, 0.15, 0.15
SERIES, ROWS, AHEAD = 20, 160, 50

Rates = Callable[[np.ndarray, float, np.ndarray], list[float]]


@dataclass(frozen=True)
class Table:
    """Series to simulate: rates of change of (state, control, numbers of the series)."""

    name: str
    physics: str
    channels: tuple[str, str]
    rates: Rates
    start: Callable[[np.random.Generator], np.ndarray]
    gap: float
    empty: float
    control: str | None = None


TABLES = (
    Table(
        "oscillator",
        "x' = v\nv' = -?k*x - ?c*v\nobserve x, v\nunknown ?k, ?c constant\n?k >= 0\n?c >= 0\n",
        ("x", "v"),
        lambda y, u, p: [y[1], -2 * y[0] - 0.15 * y[1]],
        lambda rng: 2 * rng.standard_normal(2),
        gap=0.15,
        empty=0.25,
    ),
    Table(
        "pendulum",
        "pendulum",
        ("theta", "omega"),
        lambda y, u, p: [y[1], -5 * np.sin(y[0]) - 0.3 * y[1] + 1.5 * u],
        lambda rng: rng.uniform(-1.5, 1.5, 2),
        gap=0.1,
        empty=0.3,
        control="torque",
    ),
    Table(
        "lotka_volterra",
        "lotka_volterra",
        ("hare", "lynx"),
        lambda y, u, p: [
            y[0] * (1 + 0.2 * p[0]) - 0.5 * y[0] * y[1],
            0.3 * y[0] * y[1] - (0.8 + 0.2 * p[1]) * y[1],
        ],
        lambda rng: rng.uniform(1, 4, 2),
        gap=0.15,
        empty=0.15,
    ),
)


def measures() -> list[Measure]:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            results += _demo(seed, Path(folder) / f"demo{seed}")
        for table in TABLES:
            results += _fit(table, Path(folder) / table.name)
    return results


def _physsm(folder: Path, *arguments: str) -> tuple[str, float]:
    """Output and seconds of a command with an empty compile cache."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    command = [str(Path(sys.executable).with_name("physsm")), *arguments]
    began = time.perf_counter()
    result = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=folder
    )
    return result.stdout, time.perf_counter() - began


def _demo(seed: int, folder: Path) -> list[Measure]:
    output, seconds = _physsm(folder, "demo", "--seed", str(seed), "--json", "--out", "run")
    content = json.loads(output)
    errors = {row["model"]: row["extrap_mae"] for row in content["rows"]}
    ours = errors.pop("phy_ssm")
    name = f"demo, seed {seed}"
    results = [Measure(f"{name}: duration", seconds, "3 min", seconds / SECONDS, 1.0)]
    for other, error in errors.items():
        results.append(Measure(f"{name}: error", seconds, f"that of {other}", ours / error, 1.0))
    for unknown in content["unknowns"]:
        if unknown["name"] in ("friction", "g_over_l"):
            error = abs(unknown["value"] / unknown["true"] - 1)
            label = f"{name}: {unknown['name']} {error:.1%} off"
            results.append(Measure(label, seconds, "15 %", error / CONSTANT_ERROR, 1.0))
    return results


def _fit(table: Table, folder: Path) -> list[Measure]:
    folder.mkdir()
    truth = _write(table, folder)
    physics = table.physics
    if "\n" in physics:
        (folder / "own.phys").write_text(physics)
        physics = "own.phys"
    _, seconds = _physsm(folder, "fit", "past.csv", "--physics", physics, "--out", "run")
    _physsm(folder, "forecast", "run", "past.csv", "--times", "future.csv", "--out", "found.csv")
    with (folder / "found.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = np.array([[float(row[channel]) for channel in table.channels] for row in rows])
    error = float(np.max(np.sqrt(((found - truth) ** 2).mean(0)) / truth.std(0)))
    name = f"default fit, {table.name}"
    return [
        Measure(f"{name}: duration", seconds, "3 min", seconds / SECONDS, 1.0),
        Measure(f"{name}: {error:.1%} of the signal", seconds, "15 %", error / FORECAST_ERROR, 1.0),
    ]


def _write(table: Table, folder: Path) -> np.ndarray:
    """Write past and future of all series; returns the true future, rows by channels."""
    rng = np.random.default_rng(5)
    past: list[Sequence[object]] = []
    future: list[Sequence[object]] = []
    truth = []
    for series in range(SERIES):
        times = np.cumsum(rng.uniform(0.3, 1.7, ROWS + AHEAD) * table.gap)
        phase, size = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 1.0)
        numbers = rng.uniform(-1, 1, 2)

        def control(t: float, size: float = size, phase: float = phase) -> float:
            return float(size * np.sin(0.7 * t + phase))

        def rates(t: float, y: np.ndarray, control=control, numbers=numbers) -> list[float]:
            return table.rates(y, control(t), numbers)

        solution = solve_ivp(
            rates, (0, times[-1]), table.start(rng), t_eval=times, rtol=1e-8, atol=1e-10
        )
        states = solution.y.T
        noisy = states + 0.05 * states.std(0) * rng.standard_normal(states.shape)
        is_empty = rng.random(states.shape) < table.empty
        for i, t in enumerate(times):
            driven = [control(t)] if table.control else []
            if i < ROWS:
                cells = ["" if empty else x for x, empty in zip(noisy[i], is_empty[i], strict=True)]
                past.append([series, t, *cells, *driven])
            else:
                future.append([series, t, *driven])
                truth.append(states[i])
    controls = [table.control] if table.control else []
    _write_csv(folder / "past.csv", ["series", "time", *table.channels, *controls], past)
    _write_csv(folder / "future.csv", ["series", "time", *controls], future)
    return np.array(truth)


def _write_csv(path: Path, header: list[str], rows: list[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
