"""Results of many units as one table: means over seeds, with their spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

# The columns of a table, as far as results have them; of all but the coverage, less is better.
_POINTS = (
    "interp_mae",
    "interp_mse",
    "window_mae",
    "window_mse",
    "extrap_mae",
    "extrap_mae_median",
    "extrap_mse",
    "extrap_crps",
    "coverage",
)
_DEBIASED = ("extrap_mae_debiased", "extrap_mse_debiased")
_TRACKS = ("in_ade", "in_fde", "in_speed", "in_acceleration", "in_jerk", "out_ade", "out_fde")
SCORES = (*_POINTS, *_DEBIASED, *_TRACKS)
_HEADINGS = {
    "interp_mae": "interp MAE",
    "interp_mse": "interp MSE",
    "window_mae": "window MAE",
    "window_mse": "window MSE",
    "extrap_mae": "extrap MAE",
    "extrap_mae_median": "its median",
    "extrap_mse": "extrap MSE",
    "extrap_crps": "extrap CRPS",
    "coverage": "in 90 %",
    "extrap_mae_debiased": "debiased MAE",
    "extrap_mse_debiased": "debiased MSE",
    "in_ade": "ADE 0-5 s (m)",
    "in_fde": "FDE 0-5 s (m)",
    "in_speed": "speed (m/s)",
    "in_acceleration": "accel. (m/s²)",
    "in_jerk": "jerk (m/s³)",
    "out_ade": "ADE 5-6 s (m)",
    "out_fde": "FDE 5-6 s (m)",
    "seconds": "fit (s)",
}
WANTED_COVERAGE = 0.9


@dataclass(frozen=True)
class Cell:
    """The mean of a score over seeds, its standard deviation (None for one seed), whether it is the
    best of its column, and what was published of it, if something was.
    """

    mean: float
    spread: float | None
    is_best: bool = False
    published: float | None = None


@dataclass(frozen=True)
class Line:
    """One model: its name, how many seeds, and its scores by name."""

    label: str
    seeds: int
    ablation: str | None
    cells: Mapping[str, Cell | None]


@dataclass(frozen=True)
class Sheet:
    """All models on one data set under one protocol, best extrapolation first.

    One step ahead, models that read a window for each row may be scored on fewer windows.
    """

    dataset: str
    protocol: str
    budget: str
    test_windows: int
    interp_windows: int
    unit_of_errors: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


Published = Mapping[str, Mapping[str, Mapping[str, float]]]  # by column, row and score


def summarise(
    results: Sequence[Mapping[str, Any]], published: Published | None = None
) -> list[Sheet]:
    """One sheet for each data set, protocol and budget; strict protocols come first. Beside a score
    stands what was published of it.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        key = (result["dataset"], result["protocol"], result["budget"])
        groups.setdefault(key, []).append(result)
    ordered = sorted(groups, key=lambda key: (key[0], key[1] == "paper", key[1], key[2]))
    known = published or {}
    return [_sheet(key, groups[key], known.get(f"{key[0]}:{key[1]}", {})) for key in ordered]


def heading(column: str) -> str:
    """What a column is called in a table."""
    return _HEADINGS[column]


def number(value: float) -> str:
    """Three or four figures, as a table shows them."""
    return format(value, _figures(value)) if math.isfinite(value) else "–"


def _figures(value: float) -> str:
    if value != 0 and abs(value) < 0.001:
        return ".1e"
    return ".3f" if abs(value) < 10 else ".1f"


def cell_text(cell: Cell | None) -> str:
    """The mean with its spread, in the figures of the mean."""
    if cell is None:
        return "–"
    said = "" if cell.published is None else f" [{number(cell.published)}]"
    if cell.spread is None or not math.isfinite(cell.mean):
        return f"{number(cell.mean)}{said}"
    return f"{number(cell.mean)} ± {format(cell.spread, _figures(cell.mean))}{said}"


def _sheet(
    key: tuple[str, str, str],
    results: list[Mapping[str, Any]],
    published: Mapping[str, Mapping[str, float]],
) -> Sheet:
    scores = [result["metrics"] for result in results]
    columns = tuple(name for name in SCORES if any(score.get(name) is not None for score in scores))
    labels = dict.fromkeys(result["label"] for result in results)
    lines = [
        _line(label, [r for r in results if r["label"] == label], columns, published.get(label, {}))
        for label in labels
    ]
    lines.sort(key=_by_extrapolation)
    first = results[0]
    return Sheet(
        *key,
        test_windows=first["test_windows"],
        interp_windows=min(score.get("interp_windows", first["test_windows"]) for score in scores),
        unit_of_errors=first["unit_of_errors"],
        notes=tuple(first["notes"]),
        columns=(*columns, "seconds"),
        lines=tuple(_with_best(lines, columns)),
    )


def _line(
    label: str,
    results: list[Mapping[str, Any]],
    columns: Sequence[str],
    published: Mapping[str, float],
) -> Line:
    cells = {
        name: _cell([r["metrics"].get(name) for r in results], published.get(name))
        for name in columns
    }
    cells["seconds"] = _cell([r["seconds"]["fit"] for r in results])
    return Line(label, len(results), results[0]["ablation"], cells)


def _cell(values: list[float | None], published: float | None = None) -> Cell | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Cell(fmean(known), stdev(known) if len(known) > 1 else None, published=published)


def _by_extrapolation(line: Line) -> float:
    cell = line.cells.get("in_ade") or line.cells.get("extrap_mae")
    return math.inf if cell is None else cell.mean


def _with_best(lines: list[Line], columns: Sequence[str]) -> list[Line]:
    """The lines with the best cell of each column marked."""
    best = {}
    for name in columns:
        known = [cell for line in lines if (cell := line.cells[name]) is not None]
        best[name] = min((_badness(name, cell.mean) for cell in known), default=math.inf)

    def marked(name: str, cell: Cell | None) -> Cell | None:
        if cell is None or name not in best or _badness(name, cell.mean) > best[name]:
            return cell
        return replace(cell, is_best=True)

    return [
        Line(
            line.label,
            line.seeds,
            line.ablation,
            {name: marked(name, cell) for name, cell in line.cells.items()},
        )
        for line in lines
    ]


def _badness(name: str, value: float) -> float:
    return abs(value - WANTED_COVERAGE) if name == "coverage" else value
