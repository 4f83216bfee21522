"""Two tanks, of which the upper one is hidden and overflows: `python -m benchmarks tanks`.

One record of 1,024 rows with 1 % of noise. Its default fit must find every constant and simulate
the record; the same text must never give a number that is not finite, whatever the record's pump
and noise and the random starts of the fit. Fifty records take about half an hour on one core;
`PHYSSM_TANKS` sets another number. Part of `make promises`.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from benchmarks.kept_rows import kept_rows
from benchmarks.measure import Measure

SEEDS = int(os.environ.get("PHYSSM_TANKS", "50"))
CONTEXT, ROWS, HELD = 20, 1024, 16  # rows of a history, of a record, of one value of the pump
GAP, STEPS = 4.0, 40  # of the measurements, and solver steps in it
NOISE, NOISE_LIMIT, CONSTANT_LIMIT = 0.01, 1.2, 0.05
TRUE = {"k1": 0.2, "k2": 0.2, "k3": 0.25, "k4": 0.15, "spill": 0.5}
RIM = 10.0
TEXT = f"""\
control pump hold previous
constant rim = {RIM:g}
h1' = -?k1*sqrt(h1) + ?k4*pump - ?spill*[max(h1 - rim, 0)]
h2' = ?k2*sqrt(h1) - ?k3*sqrt(h2)
unknown ?k1, ?k2, ?k3, ?k4, ?spill constant
?k1, ?k2, ?k3, ?k4, ?spill >= 0
state h1, h2 >= 0
observe h2
"""


def measures() -> list[Measure]:
    rows = kept_rows("tanks", [(seed,) for seed in range(SEEDS)], _one)
    first, seconds = rows[(0,)], float(np.median([row["seconds"] for row in rows.values()]))
    results = [
        Measure(
            f"tanks: {name} {error:.1%} off", first["seconds"], "5 %", error / CONSTANT_LIMIT, 1.0
        )
        for name, error in first["errors"].items()
    ]
    shares = np.array(
        [np.inf if row["of_noise"] is None else row["of_noise"] for row in rows.values()]
    )
    for name, share in (("record 0", shares[0]), (f"worst of {SEEDS} records", shares.max())):
        limit = NOISE_LIMIT if name == "record 0" else None
        results.append(Measure(f"tanks, simulation, {name}", seconds, "the noise", share, limit))
    broken = [row["job"][0] for row in rows.values() if row["of_noise"] is None]
    name = f"tanks, records with a number that is not finite: {broken or 'none'}"
    return [*results, Measure(name, seconds, "none", float(len(broken)), 0.0)]


def _one(seed: int) -> dict[str, Any]:
    """The default fit of one record: its simulation after the first rows, and its constants."""
    import physsm

    times, pump, clean = _simulate(seed)
    noise = NOISE * clean.std()
    values = clean + noise * np.random.default_rng([seed, 1]).normal(size=clean.shape)
    began = time.perf_counter()
    fitted = physsm.PhySSM(physsm.System.parse(TEXT)).fit(_panel(times, values, pump), seed=seed)
    seconds = time.perf_counter() - began
    start, rest = slice(CONTEXT), slice(CONTEXT, None)
    history = _panel(times[start], values[start], pump[start])
    forecast = fitted.forecast(history, times=times[rest], controls=pump[rest]).mean[0]
    unknowns = fitted.unknowns(history)
    found = dict(zip(unknowns.names, unknowns.mean[0, -1], strict=True))
    error = float(np.sqrt(((forecast - values[rest]) ** 2).mean())) / noise
    is_finite = np.isfinite(error) and np.isfinite(list(found.values())).all()
    return {
        "of_noise": float(error) if is_finite else None,
        "errors": {
            name: float(abs(found[name] / true - 1)) for name, true in TRUE.items() if is_finite
        },
        "seconds": round(seconds, 1),
    }


def _simulate(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, the pump and the level of the lower tank, by small Euler steps."""
    rng = np.random.default_rng(seed)
    pump = np.repeat(rng.uniform(0.5, 8.0, ROWS // HELD), HELD)[:, None]
    upper, lower, levels = 3.0, 3.0, []
    for u in pump[:, 0]:
        levels.append(lower)
        for _ in range(STEPS):
            down, over = np.sqrt(upper), max(upper - RIM, 0.0)
            rate = -TRUE["k1"] * down + TRUE["k4"] * u - TRUE["spill"] * over
            drained = TRUE["k2"] * down - TRUE["k3"] * np.sqrt(lower)
            upper = max(upper + GAP / STEPS * rate, 0.0)
            lower = max(lower + GAP / STEPS * drained, 0.0)
    return GAP * np.arange(ROWS), pump, np.array(levels)[:, None]


def _panel(times: np.ndarray, values: np.ndarray, pump: np.ndarray) -> Any:
    import physsm

    return physsm.panel_from_arrays(
        [times], [values], controls=[pump], channels=["h2"], control_names=["pump"]
    )
