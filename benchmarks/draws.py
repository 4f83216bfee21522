"""Default fits of simulated records of every built-in system with constant or per-series unknowns,
and of two texts like those of users, beside the true system: `python -m benchmarks draws`, part of
`make promises`.

Each draw of the parameters gives twenty series of 160 irregular rows, noisy, a tenth of the cells
missing. The default fit forecasts other series; its error is compared with that of the true
equations in SciPy, started by least squares from the same noisy history, from which come also the
parameters that each series has for itself. A draw whose error is not
finite or over the limit is named. Finished draws are kept: a second call continues there.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from benchmarks.kept_rows import kept_rows, release_programs
from benchmarks.measure import Measure

DRAWS = int(os.environ.get("PHYSSM_DRAWS", "20"))
SERIES, TESTS, ROWS, HISTORY, AHEAD = 20, 6, 160, 60, 60
NOISE, MISSING, LIMIT = 0.03, 0.1, 1.5
ROUND = 5  # draws of one system after the other, which share programs

Rates = Callable[[np.ndarray, float, dict[str, float]], list[float]]


@dataclass(frozen=True)
class Spec:
    """A system to simulate: its rates of change, the ranges of its parameters and starts, and the
    function that gives the channels. `spread` is the relative difference of series in parameters
    that each series has for itself. `text` is that of a system which is not built in.
    """

    name: str
    rates: Rates
    ranges: dict[str, tuple[float, float]]
    start: tuple[tuple[float, float], ...]
    gap: float
    channels: tuple[str, ...]
    measured: Callable[[np.ndarray], np.ndarray]
    control: tuple[str, float, float] | None = None
    declare: str = ""
    spread: float = 0.0
    text: str = ""


def _first(z: np.ndarray) -> np.ndarray:
    return z[:1]


def _root(level: float) -> float:
    return float(np.sqrt(max(level, 0.0)))


# A difference of temperatures is far smaller than either of them.
_HOUSE = """
control heat
room' = ?a*wall - ?a*room + ?c*heat
wall' = ?b*room - ?b*wall + ?d*275 - ?d*wall
observe room
unknown ?a, ?b, ?c, ?d constant
"""
# The hidden action of insulin is a factor of what is measured.
_GLUCOSE = """
control insulin
glucose' = -[action]*glucose - ?a*glucose + ?a*90
action' = -?b*action + ?c*insulin
observe glucose
unknown ?a, ?b, ?c constant
"""

SPECS = (
    Spec(
        "oscillator",
        lambda z, u, p: [z[1], -p["stiffness"] * z[0] - p["damping"] * z[1] + p["gain"] * u],
        {"stiffness": (0.5, 8), "damping": (0.02, 0.8), "gain": (0.3, 3)},
        ((-2, 2), (-2, 2)),
        0.15,
        ("x",),
        _first,
        ("force", -2, 2),
    ),
    Spec(
        "duffing",
        lambda z, u, p: [
            z[1],
            -p["damping"] * z[1] - p["linear"] * z[0] - p["cubic"] * z[0] ** 3 + p["gain"] * u,
        ],
        {"damping": (0.1, 0.6), "linear": (0.5, 3), "cubic": (0.2, 2), "gain": (0.3, 2)},
        ((-1.5, 1.5), (-1.5, 1.5)),
        0.12,
        ("x",),
        _first,
        ("force", -2, 2),
    ),
    Spec(
        "lotka_volterra",
        lambda z, u, p: [
            p["birth"] * z[0] - p["hunted"] * z[0] * z[1],
            p["growth"] * z[0] * z[1] - p["death"] * z[1],
        ],
        {"birth": (0.6, 1.4), "hunted": (0.3, 0.7), "growth": (0.2, 0.5), "death": (0.5, 1.0)},
        ((1, 4), (1, 4)),
        0.15,
        ("hare", "lynx"),
        lambda z: z,
        spread=0.1,
    ),
    Spec(
        "cascaded_tanks",
        lambda z, u, p: [
            -p["k1"] * _root(z[0]) + p["k4"] * u,
            p["k2"] * _root(z[0]) - p["k3"] * _root(z[1]),
        ],
        {"k1": (0.1, 0.3), "k2": (0.1, 0.3), "k3": (0.1, 0.3), "k4": (0.05, 0.15)},
        ((2, 8), (2, 8)),
        3.0,
        ("h2",),
        lambda z: z[1:],
        ("pump", 1, 6),
    ),
    Spec(
        "cascaded_tanks_overflow",
        lambda z, u, p: [
            -p["k1"] * _root(z[0]) + p["k4"] * u - p["spill"] * max(z[0] - 0.25, 0.0),
            p["k2"] * _root(z[0]) - p["k3"] * _root(z[1]) + p["catch"] * max(z[0] - 0.25, 0.0),
        ],
        {
            "k1": (0.02, 0.05),
            "k2": (0.02, 0.05),
            "k3": (0.02, 0.05),
            "k4": (0.004, 0.008),
            "spill": (0.05, 0.2),
            "catch": (0.02, 0.1),
        },
        ((0.1, 0.3), (0.1, 0.3)),
        3.0,
        ("h2",),
        lambda z: z[1:],
        ("pump", 1, 6),
    ),
    Spec(
        "exchanger",
        lambda z, u, p: [
            p["supply"] - p["loss"] * z[0] - p["cool"] * z[1] * z[0],
            p["rate"] * (u - z[1]),
        ],
        {"supply": (3, 6), "loss": (0.02, 0.05), "cool": (0.03, 0.08), "rate": (0.1, 0.4)},
        ((60, 100), (0.2, 0.8)),
        1.5,
        ("th",),
        _first,
        ("q", 0.1, 1.0),
    ),
    Spec(
        "ced",
        lambda z, u, p: [
            z[1],
            p["gain"] * z[2] - p["stiffness"] * z[0] - p["damping"] * z[1],
            p["lag"] * (u - z[2]) + p["offset"],
        ],
        {
            "gain": (20, 60),
            "stiffness": (15, 40),
            "damping": (2, 8),
            "lag": (2, 8),
            "offset": (-1, 1),
        },
        ((-1, 1), (-1, 1), (-1, 1)),
        0.04,
        ("z",),
        lambda z: np.abs(z[:1]),
        ("u", -1.5, 1.5),
    ),
    Spec(
        "ball_beam",
        lambda z, u, p: [z[1], np.sin(u) * p["gain"] - p["friction"] * z[1] + p["offset"]],
        {"gain": (2, 6), "friction": (0.3, 1.5), "offset": (-0.3, 0.3)},
        ((-0.3, 0.3), (-0.3, 0.3)),
        0.1,
        ("y",),
        _first,
        ("u", -0.6, 0.6),
    ),
    Spec(
        "emps",
        lambda z, u, p: [
            z[1],
            p["mobility"] * u
            - p["viscous"] * z[1]
            - p["coulomb"] * z[1] / np.sqrt(z[1] ** 2 + 0.002**2)
            + p["offset"],
        ],
        {
            "mobility": (0.005, 0.03),
            "viscous": (1, 5),
            "coulomb": (0.05, 0.3),
            "offset": (-0.1, 0.1),
        },
        ((-0.1, 0.1), (-0.1, 0.1)),
        0.03,
        ("q",),
        _first,
        ("force", -70, 70),
    ),
    Spec(
        "pendulum",
        lambda z, u, p: [z[1], -p["k"] * np.sin(z[0]) - p["c"] * z[1] + p["gain"] * u],
        {"k": (2, 9), "c": (0.1, 0.5), "gain": (0.5, 2)},
        ((-1.5, 1.5), (-1.5, 1.5)),
        0.1,
        ("theta", "omega"),
        lambda z: z,
        ("torque", -1, 1),
        declare="constant",
    ),
    Spec(
        "sir_conserving",
        lambda z, u, p: [
            -p["beta"] * z[0] * z[1],
            p["beta"] * z[0] * z[1] - p["gamma"] * z[1],
            p["gamma"] * z[1],
        ],
        {"beta": (0.3, 0.8), "gamma": (0.05, 0.15)},
        ((0.9, 0.99), (0.005, 0.02), (0, 0.01)),
        0.4,
        ("S", "I", "R"),
        lambda z: z,
        declare="constant",
    ),
    Spec(
        "sir",
        lambda z, u, p: [
            -p["beta"] * z[0] * z[1],
            p["beta"] * z[0] * z[1] - p["gamma"] * z[1],
            p["gamma"] * z[1],
        ],
        {"beta": (0.3, 0.8), "gamma": (0.05, 0.15)},
        ((0.9, 0.99), (0.005, 0.02), (0, 0.01)),
        0.4,
        ("S", "I", "R"),
        lambda z: z,
        declare="constant",
    ),
    Spec(
        "house",
        lambda z, u, p: [
            p["a"] * (z[1] - z[0]) + p["c"] * u,
            p["b"] * (z[0] - z[1]) + p["d"] * (275 - z[1]),
        ],
        {"a": (0.3, 1), "b": (0.05, 0.2), "c": (1, 3), "d": (0.02, 0.08)},
        ((285, 295), (280, 290)),
        0.5,
        ("room",),
        _first,
        ("heat", 0, 4),
        text=_HOUSE,
    ),
    Spec(
        "glucose",
        lambda z, u, p: [
            -z[1] * z[0] + p["a"] * (90 - z[0]),
            -p["b"] * z[1] + p["c"] * u,
        ],
        {"a": (0.01, 0.04), "b": (0.02, 0.06), "c": (1e-5, 3e-5)},
        ((70, 180), (0, 0.02)),
        3.0,
        ("glucose",),
        _first,
        ("insulin", 0, 80),
        text=_GLUCOSE,
    ),
)


class Record(NamedTuple):
    """One simulated series: noisy channels with missing cells, controls, and its parameters."""

    times: np.ndarray
    values: np.ndarray
    controls: np.ndarray
    parameters: dict[str, float]


def measures() -> list[Measure]:
    # In rounds, so that an early end leaves some draws of every system.
    jobs = [
        (spec.name, draw)
        for first in range(0, DRAWS, ROUND)
        for spec in SPECS
        for draw in range(first, min(first + ROUND, DRAWS))
    ]
    done = kept_rows("draws", jobs, _job)
    return [measure for spec in SPECS for measure in _summary(spec, done)]


def _job(name: str, draw: int) -> dict[str, Any]:
    if draw % ROUND == 0:  # the programs of the system before
        release_programs()
    return _one(next(spec for spec in SPECS if spec.name == name), draw)


def _summary(spec: Spec, done: dict[Any, dict[str, Any]]) -> Iterator[Measure]:
    rows = [done[spec.name, draw] for draw in range(DRAWS)]
    ratios = np.array([np.inf if row["ratio"] is None else row["ratio"] for row in rows])
    over = [row["job"][1] for row in rows if not (row["ratio"] or np.inf) <= LIMIT]
    name = (
        f"{spec.name}, {DRAWS} draws, median ratio {np.median(ratios):.3f}, over: {over or 'none'}"
    )
    seconds = float(np.median([row["seconds"] for row in rows]))
    yield Measure(name, seconds, "the true system", float(ratios.max()), LIMIT)


def _one(spec: Spec, draw: int) -> dict[str, Any]:
    """The default fit of one draw, and its error beside that of the true system."""
    import physsm

    rng = np.random.default_rng([draw, *spec.name.encode()])
    common = {name: float(rng.uniform(*ends)) for name, ends in spec.ranges.items()}
    records = [_simulate(spec, common, rng) for _ in range(SERIES + TESTS)]
    train, tests = records[:SERIES], records[SERIES:]
    began = time.perf_counter()
    fitted = physsm.PhySSM(_system(spec)).fit(_panel(spec, train), seed=draw)
    seconds = time.perf_counter() - began
    history = _panel(spec, [_part(record, slice(HISTORY)) for record in tests])
    future = [_part(record, slice(HISTORY, HISTORY + AHEAD)) for record in tests]
    controls = np.stack([record.controls for record in future]) if spec.control else None
    times = np.stack([record.times for record in future])
    forecast = fitted.forecast(history, times=times, controls=controls, coverage=None).mean
    wanted = np.stack([record.values for record in future])
    scale = np.nanstd(np.concatenate([record.values for record in train]), axis=0)
    true = np.stack([_continued(spec, common, record) for record in tests])
    ours, theirs = (
        float(np.sqrt(np.nanmean(((found - wanted) / scale) ** 2))) for found in (forecast, true)
    )
    ratio = ours / theirs
    return {
        "error": ours if np.isfinite(ours) else None,
        "true_error": theirs,
        "ratio": ratio if np.isfinite(ratio) else None,
        "seconds": round(seconds, 1),
    }


def _system(spec: Spec) -> Any:
    import physsm

    if spec.text:
        return physsm.System.parse(spec.text)
    system = physsm.System.load(spec.name)
    if not spec.declare:
        return system
    named = [unknown for unknown in system.unknowns if "?" + unknown.name in system.text]
    if named:
        declared = ", ".join(f"?{unknown.name}" for unknown in named)
        return physsm.System.parse(f"{system.text}\nunknown {declared} {spec.declare}\n")
    # Anonymous unknowns are named, one after the other.
    parts = system.text.split("?")
    names = [f"u{i}" for i in range(1, len(parts))]
    text = parts[0] + "".join(f"?{name}{part}" for name, part in zip(names, parts[1:], strict=True))
    declared = ", ".join(f"?{name}" for name in names)
    observed = ", ".join(spec.channels)
    return physsm.System.parse(f"{text}\nunknown {declared} {spec.declare}\nobserve {observed}\n")


def _panel(spec: Spec, records: list[Record]) -> Any:
    import physsm

    return physsm.panel_from_arrays(
        [record.times for record in records],
        [record.values for record in records],
        controls=[record.controls for record in records] if spec.control else None,
        channels=list(spec.channels),
        control_names=[spec.control[0]] if spec.control else None,
    )


def _part(record: Record, rows: slice) -> Record:
    return Record(record.times[rows], record.values[rows], record.controls[rows], record.parameters)


def _simulate(spec: Spec, common: dict[str, float], rng: np.random.Generator) -> Record:
    """One series; its control keeps its value from row to row."""
    parameters = {
        name: value * (1 + spec.spread * rng.uniform(-1, 1)) for name, value in common.items()
    }
    times = np.cumsum(rng.uniform(0.4, 1.6, ROWS) * spec.gap)
    controls = np.zeros((ROWS, 1))
    if spec.control:
        _, low, high = spec.control
        levels = np.repeat(rng.uniform(low, high, ROWS // 8), 8)
        controls[:, 0] = levels
    start = np.array([rng.uniform(*ends) for ends in spec.start])
    states = _states(spec, parameters, start, times, controls)
    values = np.array([spec.measured(z) for z in states])
    values = values + NOISE * values.std(0) * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < MISSING] = np.nan
    return Record(times, values, controls, parameters)


def _states(
    spec: Spec,
    parameters: dict[str, float],
    start: np.ndarray,
    times: np.ndarray,
    controls: np.ndarray,
) -> np.ndarray:
    """States at all times, piece by piece: each row's control holds until the next row."""
    jumps = np.flatnonzero(np.diff(controls[:-1, 0])) + 1
    ends = [0, *jumps, len(times) - 1]
    states = [start[None]]
    for first, last in itertools.pairwise(ends):
        piece, u = times[first : last + 1], float(controls[first, 0])
        states.append(_solved(spec, parameters, states[-1][-1], piece, u)[1:])
    return np.concatenate(states)


def _solved(
    spec: Spec, parameters: dict[str, float], start: np.ndarray, times: np.ndarray, u: float
) -> np.ndarray:
    """States at times between which the control has one value."""
    solution = solve_ivp(
        lambda _, z: spec.rates(z, u, parameters),
        (times[0], times[-1]),
        start,
        t_eval=times,
        rtol=1e-6,
        atol=1e-9,
        method="LSODA",
    )
    return solution.y.T


def _continued(spec: Spec, common: dict[str, float], record: Record) -> np.ndarray:
    """The true system after a history: by least squares from it come the state at its first row
    and, where series differ in their parameters, those of the series, around the common ones.
    """
    rows = slice(HISTORY + AHEAD)
    times, values, controls = record.times[rows], record.values[rows], record.controls[rows]
    seen = ~np.isnan(values[:HISTORY])
    noise = NOISE * np.nanstd(values, axis=0)
    states = len(spec.start)

    def simulated(y: np.ndarray, count: int) -> np.ndarray:
        part, parameters = slice(count), record.parameters
        if spec.spread:
            shares = zip(common.items(), y[states:], strict=True)
            parameters = {name: value * (1 + spec.spread * x) for (name, value), x in shares}
        found = _states(spec, parameters, y[:states], times[part], controls[part])
        return np.array([spec.measured(z) for z in found])

    def errors(y: np.ndarray) -> np.ndarray:
        difference = (simulated(y, HISTORY) - values[:HISTORY]) / noise
        # The parameters of a series are uniform, with a variance of a third.
        return np.concatenate([np.where(seen, difference, 0.0).ravel(), np.sqrt(3) * y[states:]])

    free = len(common) if spec.spread else 0
    scales = np.append([high - low for low, high in spec.start], np.ones(free))
    least = [0 if low >= 0 else -np.inf for low, _ in spec.start]  # of levels and populations
    low, high = (
        np.append(least, -2 * np.ones(free)),
        np.append([np.inf] * states, 2 * np.ones(free)),
    )
    fits = (
        least_squares(errors, np.append(start, np.zeros(free)), x_scale=scales, bounds=(low, high))
        for start in _starts(spec)
    )
    best = min(fits, key=lambda result: result.cost)
    return simulated(best.x, HISTORY + AHEAD)[HISTORY:]


def _starts(spec: Spec) -> list[np.ndarray]:
    """First guesses of the state: the middle of the ranges, and one on either side."""
    low, high = np.array(spec.start).T
    return [low + share * (high - low) for share in (0.5, 0.2, 0.8)]
