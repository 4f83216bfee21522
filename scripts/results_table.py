"""The one table of results in README.md and docs/index.md, from the files in results/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parent.parent
BASELINES = (
    "repeat_last", "mean", "line", "line_5", "damped", "arx", "arx_20", "arx_100_by_2",
    "least_squares",
)  # fmt: skip
OURS = ("phy_ssm", "phy_ssm_paper", "bypass_alone", "bypass_alone_no_squares")


class Row(NamedTuple):
    """A data set, and where the difference to the others comes from; braces hold scores."""

    data_set: str
    words: str
    origin: str


ROWS = (
    Row(
        "drone",
        "Quadrotor, 200 time steps (0.2 s)",
        "The linear bypass: alone and without any training it has {bypass_alone}. It takes from "
        "the equations that rotors pull with the square of their speed; without these squares it "
        "has {bypass_alone_no_squares}.",
    ),
    Row(
        "pendulum",
        "Video pendulum, 784 pixels",
        "The preset `default`: the published model with the same equations, preset `paper`, has "
        "{phy_ssm_paper}. One seed.",
    ),
    Row(
        "covid",
        "COVID-19, 80 reported days",
        "No gain: a straight line through the last points wins. Both test countries hardly "
        "reported recoveries, which no SIR model describes. One seed.",
    ),
)


def scores(data_set: str) -> dict[str, float]:
    """Extrapolation MAE of each method under the strict protocol: the mean over seeds."""
    found: dict[str, list[float]] = {}
    for path in sorted((ROOT / "results" / data_set).glob(f"{data_set}-strict-*-cpu-*.json")):
        content = json.loads(path.read_text("utf-8"))
        found.setdefault(content["label"], []).append(content["metrics"]["extrap_mae"])
    return {label: float(np.mean(seeds)) for label, seeds in found.items()}


def table() -> str:
    """Markdown: ours, the best baseline and the best other network on each data set."""
    lines = [
        "| data, lead time | `phy_ssm` | best baseline | best other network | where the difference "
        "comes from |",
        "|---|---:|---:|---:|---|",
    ]
    for row in ROWS:
        found = scores(row.data_set)
        baseline = min((value, name) for name, value in found.items() if name in BASELINES)
        networks = set(found) - {*BASELINES, *OURS}
        network = min((found[name], name) for name in networks)
        cells = [(found["phy_ssm"], "phy_ssm"), baseline, network]
        best = min(cells)
        shown = [_cell(value, name, (value, name) == best) for value, name in cells]
        origin = row.origin.format(**{name: f"{value:.3f}" for name, value in found.items()})
        lines.append(f"| {row.words} | {' | '.join(shown)} | {origin} |")
    return "\n".join(lines)


def _cell(value: float, name: str, is_best: bool) -> str:
    number = f"**{value:.3f}**" if is_best else f"{value:.3f}"
    return number if name == "phy_ssm" else f"{number} ({name})"
