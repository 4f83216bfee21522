"""Summaries of results: means over seeds with their standard deviations, as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from physsm.metrics._metric import Score, every_score, ranking_score, shown_scores

SECONDS = "seconds"  # the column of fit times, after those of the scores


@dataclass(frozen=True)
class Cell:
    """Mean of a score over seeds, its standard deviation (None for one seed), whether it is best in
    its column, and the published value, if there is one.
    """

    mean: float
    spread: float | None
    is_best: bool = False
    published: float | None = None


@dataclass(frozen=True)
class Line:
    """One model: its label, its number of seeds, and its scores by key.

    `saw_all_windows`: a result was trained on all windows of its series, not on the protocol's.
    """

    label: str
    seeds: int
    ablation: str | None
    cells: Mapping[str, Cell | None]
    saw_all_windows: bool = False

    @property
    def marked_label(self) -> str:
        """The label, with a dagger if it was trained on all windows."""
        return f"{self.label} †" if self.saw_all_windows else self.label


@dataclass(frozen=True)
class Sheet:
    """All models on one data set under one protocol, best first.

    Models that reread a window for each step may be scored one step ahead on fewer windows.
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


Published = Mapping[str, Mapping[str, Mapping[str, float]]]  # by data set, model and score


def summarise(
    results: Sequence[Mapping[str, Any]], published: Published | None = None
) -> list[Sheet]:
    """One sheet for each data set, protocol and budget; the protocol `paper` comes last. A score is
    followed by its published value.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        key = (result["dataset"], result["protocol"], result["budget"])
        groups.setdefault(key, []).append(result)
    ordered = sorted(groups, key=lambda key: (key[0], key[1] == "paper", key[1], key[2]))
    known = published or {}
    return [_sheet(key, groups[key], known.get(f"{key[0]}:{key[1]}", {})) for key in ordered]


def headings(sheet: Sheet) -> list[str]:
    """The heading of each column of a sheet."""
    known = {score.key: score.heading for score in every_score()}
    return [{**known, SECONDS: "fit (s)"}[key] for key in sheet.columns]


def number(value: float) -> str:
    """A number with three or four figures."""
    return format(value, _figures(value)) if math.isfinite(value) else "–"


def _figures(value: float) -> str:
    if value != 0 and abs(value) < 0.001:
        return ".1e"
    return ".3f" if abs(value) < 10 else ".1f"


def cell_text(cell: Cell | None) -> str:
    """The mean with its standard deviation, in the figures of the mean."""
    if cell is None:
        return "–"
    published = "" if cell.published is None else f" [{number(cell.published)}]"
    if cell.spread is None or not math.isfinite(cell.mean):
        return f"{number(cell.mean)}{published}"
    return f"{number(cell.mean)} ± {format(cell.spread, _figures(cell.mean))}{published}"


def _sheet(
    key: tuple[str, str, str],
    results: list[Mapping[str, Any]],
    published: Mapping[str, Mapping[str, float]],
) -> Sheet:
    metrics = [result["metrics"] for result in results]
    known = {key for values in metrics for key, value in values.items() if value is not None}
    scores = shown_scores("benchmarks", known)
    columns = [score.key for score in scores]
    labels = dict.fromkeys(result["label"] for result in results)
    lines = [
        _line(label, [r for r in results if r["label"] == label], columns, published.get(label, {}))
        for label in labels
    ]
    ranking = ranking_score(columns)
    if ranking is not None:
        lines.sort(key=lambda line: _loss(line, ranking))
    first = results[0]
    return Sheet(
        *key,
        test_windows=first["test_windows"],
        interp_windows=min(m.get("interp_windows", first["test_windows"]) for m in metrics),
        unit_of_errors=first["unit_of_errors"],
        notes=tuple(first["notes"]),
        columns=(*columns, SECONDS),
        lines=tuple(_with_best(lines, scores)),
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
    cells[SECONDS] = _cell([r["seconds"]["fit"] for r in results])
    return Line(
        label=label,
        seeds=len(results),
        ablation=results[0]["ablation"],
        cells=cells,
        saw_all_windows=any(r.get("training_windows") == "all" for r in results),
    )


def _cell(values: list[float | None], published: float | None = None) -> Cell | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Cell(fmean(known), stdev(known) if len(known) > 1 else None, published=published)


def _loss(line: Line, score: Score) -> float:
    cell = line.cells[score.key]
    return math.inf if cell is None else score.loss(cell.mean)


def _with_best(lines: list[Line], scores: Sequence[Score]) -> list[Line]:
    """The lines with the best cell of each score marked."""
    best = {score.key: min(_loss(line, score) for line in lines) for score in scores}

    def marked(line: Line, score: Score) -> Cell | None:
        cell = line.cells[score.key]
        if cell is None or _loss(line, score) > best[score.key]:
            return cell
        return replace(cell, is_best=True)

    return [
        replace(line, cells={**line.cells, **{s.key: marked(line, s) for s in scores}})
        for line in lines
    ]
