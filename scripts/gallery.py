"""Draws the figures of docs/gallery.md and README.md from a demo run and the files in results/.

Run `physsm demo` first, or name its folder: `python -m scripts.gallery demo_run`.
"""

from __future__ import annotations

import json
import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.results_table import BASELINES

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "img"
FOLDER = IMAGES / "gallery"
INK, SOFT = "#333333", "#8a8a8a"
# Colours of Okabe and Ito, which colour-blind readers can tell apart; lines differ in dashes too.
STYLES: dict[str, dict[str, Any]] = {
    "phy_ssm": {"color": "#0072B2", "ls": "-", "lw": 2.2},
    "bypass_alone": {"color": "#56B4E9", "ls": (0, (5, 2)), "lw": 1.6},
    "arx": {"color": "#E69F00", "ls": (0, (4, 2)), "lw": 1.6},
    "arx_100_by_2": {"color": "#E69F00", "ls": (0, (4, 2)), "lw": 1.6},
    "line": {"color": "#D55E00", "ls": (0, (1, 1.5)), "lw": 2.0},
    "damped": {"color": "#009E73", "ls": (0, (7, 2, 1.5, 2)), "lw": 1.6},
    "s5": {"color": "#CC79A7", "ls": (0, (2, 2)), "lw": 1.6},
    "contiformer": {"color": "#CC79A7", "ls": (0, (2, 2)), "lw": 1.6},
    "repeat_last": {"color": SOFT, "ls": (0, (1, 2)), "lw": 1.6},
}
NAMES = {
    "bypass_alone": "linear bypass alone",
    "bypass_alone_no_squares": "bypass, no squares",
    "arx_100_by_2": "arx (100 steps back)",
}


def results(data_set: str) -> dict[str, dict[str, Any]]:
    """Metrics of each method under the strict protocol: the mean over seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((ROOT / "results" / data_set).glob(f"{data_set}-strict-*-cpu-*.json")):
        content = json.loads(path.read_text("utf-8"))
        found.setdefault(content["label"], []).append(content["metrics"])
    return {label: _mean(seeds) for label, seeds in found.items()}


def _mean(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "extrap_mae": float(np.mean([one["extrap_mae"] for one in seeds])),
        "coverage": float(np.mean([one["coverage"] for one in seeds])),
        "horizon": np.mean([one["horizon"] for one in seeds], axis=0).tolist(),
    }


KINDS = {
    "phy_ssm": {"marker": "o", "color": "#0072B2", "ms": 8, "zorder": 3},
    "its untrained linear bypass": {"marker": "D", "color": "#56B4E9", "ms": 5},
    "other network": {"marker": "o", "color": "white", "ms": 5},
    "baseline": {"marker": "s", "color": "#E69F00", "ms": 5},
}


def kind(name: str) -> dict[str, Any]:
    """Marker of a method, by its kind."""
    found = "phy_ssm" if name == "phy_ssm" else "other network"
    if name in BASELINES:
        found = "baseline"
    if name.startswith("bypass_alone"):
        found = "its untrained linear bypass"
    return {"mec": INK, "mew": 0.7, "ls": "", **KINDS[found]}


def kinds_legend(figure: Figure, axes: Axes) -> None:
    """What the markers mean, above a figure."""
    for label, style in KINDS.items():
        axes.plot([], [], label=label, mec=INK, mew=0.7, ls="", **style)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)


def save(figure: Figure, name: str) -> None:
    """As SVG, with a white background: it can be read on a dark page too."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / f"{name}.svg", facecolor="white", metadata={"Date": None})


def panels(columns: int = 1, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """An empty figure of one row of axes."""
    figure = Figure(figsize=(8.2, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns)).ravel())


def numbers(values: list[float | None]) -> np.ndarray:
    """Values of a JSON file; null is missing."""
    return np.array([np.nan if value is None else value for value in values], float)


def forecast_figure(contents: dict[str, Any]) -> None:
    """One forecast of the demo beside the measurements and two other methods."""
    channel = contents["examples"][0]["channels"][0]
    figure, (axes,) = panels()
    times = channel["forecast_times"]
    axes.fill_between(times, numbers(channel["lower"]), numbers(channel["upper"]),
                      color="#0072B2", alpha=0.2, lw=0, label="90 % interval")  # fmt: skip
    for name in ("arx", "s5"):
        axes.plot(times, numbers(channel["others"][name]), label=name, **STYLES[name])
    axes.plot(times, numbers(channel["mean"]), label="phy_ssm", **STYLES["phy_ssm"])
    axes.plot(channel["context_times"], numbers(channel["context_values"]), ".", color=INK, ms=5,
              label="measured")  # fmt: skip
    axes.plot(channel["target_times"], numbers(channel["target_values"]), "o", color=INK, ms=3.2,
              mfc="white", mew=0.8, label="measured later, not seen")  # fmt: skip
    axes.axvline(contents["examples"][0]["boundary"], color=SOFT, lw=0.8)
    axes.set(xlabel="time (s)", ylabel="angle (rad)", ylim=(-1.25, 1.25))
    figure.legend(loc="outside upper center", ncols=6, frameon=False, fontsize=8.5)
    save(figure, "demo_forecast")


def demo_errors_figure(contents: dict[str, Any]) -> None:
    """Errors of the demo by lead time, and the unknowns with their intervals."""
    figure, (left, right) = panels(2)
    for score in contents["scores"]:
        if score["model"] in ("phy_ssm", "s5", "arx"):
            _by_lead_time(left, score["model"], score)
    left.set(xlabel="lead time (time steps)", ylabel="MAE (standard deviations)", ylim=(0, None))
    left.legend(frameon=False, fontsize=8.5)
    unknowns = contents["physics"]["unknowns"]
    for place, unknown in enumerate(unknowns):
        value, low, high = (unknown[key] / unknown["true"] for key in ("value", "lower", "upper"))
        right.errorbar(value, place, xerr=[[value - low], [high - value]], fmt="o", capsize=4,
                       color="#0072B2")  # fmt: skip
    right.axvline(1, color=SOFT, lw=0.9, ls="--")
    right.set_yticks(range(len(unknowns)), [unknown["name"] for unknown in unknowns])
    right.set(xlabel="learned value / true value, 90 % interval", ylim=(-0.6, len(unknowns) - 0.4))
    save(figure, "demo_errors")


def _by_lead_time(axes: Axes, name: str, metrics: dict[str, Any]) -> None:
    parts = metrics["horizon"]
    middle = [(first + last) / 2 for first, last, _ in parts]
    axes.plot(middle, [part[2] for part in parts], label=NAMES.get(name, name), **STYLES[name])


def lead_time_figure() -> None:
    """Errors on the quadrotor and on COVID-19 by lead time."""
    figure, (drone, covid) = panels(2, 3.4)
    for name in ("phy_ssm", "bypass_alone", "arx_100_by_2", "contiformer"):
        _by_lead_time(drone, name, results("drone")[name])
    for name in ("phy_ssm", "line", "damped", "contiformer"):
        _by_lead_time(covid, name, results("covid")[name])
    drone.set(title="quadrotor, strict", xlabel="lead time (time steps, 1 ms each)")
    drone.set(ylabel="MAE (standard deviations)", ylim=(0, 0.7))
    covid.set(title="COVID-19, strict", xlabel="lead time (reported days)", ylim=(0, None))
    for axes in (drone, covid):
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
    save(figure, "lead_time")


def methods_figure() -> None:
    """Extrapolation MAE of all methods on three data sets."""
    figure, axes = panels(3, 4.0)
    titles = ("pendulum", "video pendulum"), ("drone", "quadrotor"), ("covid", "COVID-19")
    for panel, (data_set, title) in zip(axes, titles, strict=True):
        scores = sorted((m["extrap_mae"], name) for name, m in results(data_set).items())
        shown = [(value, name) for value, name in scores if value < 1.2][::-1]
        for place, (value, name) in enumerate(shown):
            panel.plot([0, value], [place, place], color="#dddddd", lw=1, zorder=1)
            panel.plot(value, place, **kind(name))
        labels = [NAMES.get(name, name) for _, name in shown]
        panel.set_yticks(range(len(shown)), labels, fontsize=7.5)
        left_out = (
            f"\n(without {scores[-1][1]},\nwhich has {scores[-1][0]:.2f})"
            if len(shown) < len(scores)
            else ""
        )
        panel.set(title=title, xlabel=f"extrapolation MAE{left_out}", xlim=(0, None))
    kinds_legend(figure, axes[0])
    save(figure, "methods")


def coverage_figure() -> None:
    """Share of measurements inside intervals that promise 90 %."""
    figure, (axes,) = panels(1, 2.6)
    data_sets = {"drone": "quadrotor", "covid": "COVID-19", "pendulum": "video pendulum"}
    for place, (data_set, _) in enumerate(data_sets.items()):
        for name, metrics in results(data_set).items():
            axes.plot(metrics["coverage"], place, alpha=0.85, **kind(name))
    axes.axvline(0.9, color=SOFT, lw=1, ls="--")
    axes.set_yticks(range(len(data_sets)), list(data_sets.values()))
    axes.set(xlabel="share of measurements inside the 90 % interval", ylim=(-0.5, 2.5))
    kinds_legend(figure, axes)
    save(figure, "coverage")


def frames_figure() -> None:
    """Frames of the video pendulum as a model sees them, and without noise."""
    from physsm.datasets._pendulum_frames import render

    angles = np.linspace(-0.9, 0.9, 8)
    clean = render(angles).reshape(8, 28, 28)
    noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)
    figure = Figure(figsize=(8.2, 2.2), layout="constrained")
    axes = figure.subplots(2, 8)
    for row, frames in enumerate((noisy, clean)):
        for column, frame in enumerate(frames):
            axes[row, column].imshow(frame, cmap="gray", vmin=0, vmax=1)
            axes[row, column].set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("input")
    axes[1, 0].set_ylabel("truth")
    save(figure, "frames")


def explain_picture() -> None:
    """What `physsm explain pendulum` prints."""
    from rich.console import Console

    from physsm.physics.explain import render
    from physsm.physics.read import load_structure

    console = Console(record=True, width=84, file=StringIO(), force_terminal=True)
    console.print(render(load_structure("pendulum"), "pendulum"))
    svg = console.export_svg(title="physsm explain pendulum", unique_id="explain")
    # The picture must not load fonts from elsewhere: any monospaced font will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, DejaVu Sans Mono")
    (IMAGES / "explain_pendulum.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    mpl.rcParams.update({"svg.hashsalt": "gallery", "font.size": 9.5, "axes.titlesize": 10.5})
    FOLDER.mkdir(parents=True, exist_ok=True)
    run = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "demo_run")
    demo = json.loads((run / "evaluation.json").read_text("utf-8"))
    forecast_figure(demo)
    demo_errors_figure(demo)
    lead_time_figure()
    methods_figure()
    coverage_figure()
    frames_figure()
    explain_picture()
