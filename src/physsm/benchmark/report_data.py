"""Report data of a run as plain JSON values: the contents of `evaluation.json`."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from physsm._json import plain
from physsm._values import Panel, Unknowns
from physsm._version import __version__
from physsm.benchmark.evaluate import Evaluation
from physsm.benchmark.evaluation_windows import EvaluationWindows
from physsm.metrics._metric import NOMINAL_COVERAGE
from physsm.models._base import AbstractFitted
from physsm.physics.explain import learned_equations, lifted_equations
from physsm.physics.system import System

FORMAT = 1
MAX_EXAMPLES = 4
MAX_WARNINGS = 4
_Z90 = 1.645


def build_report_data(
    model: AbstractFitted,
    panel: Panel,
    evaluation: Evaluation,
    *,
    title: str,
    settings: Mapping[str, Any],
    truth: Mapping[str, float] | None = None,
    question: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    final: AbstractFitted | None = None,
) -> dict[str, Any]:
    """The report data of a model, which is the first of an evaluation, beside the others in it.
    `panel` holds series that the model was not trained on; `truth` holds the true values of
    unknowns, known for simulated series; `warnings` are on the run as a whole. `final` is the model
    after a last fit to all rows, whose unknowns are shown.
    """
    panel = model.check(panel)
    system, truth = model.system, truth or {}
    has_unknowns = system is not None and system.unknowns
    unknowns = (final or model).unknowns(panel) if has_unknowns else None
    windows = evaluation.windows
    forecasts, *_ = evaluation.forecasts.values()
    return plain(
        {
            "format": FORMAT,
            "title": title,
            "model": model.name,
            "version": __version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "physics": None if system is None else _physics(system, unknowns, truth),
            "data": _data(panel),
            "question": question,
            "scores": evaluation.scores,
            "coverage_wanted": NOMINAL_COVERAGE,
            "examples": [
                {
                    **_example(i, evaluation, {} if system is None else system.units),
                    "unknowns": _unknown_curves(
                        _series(windows.history.ids[i]), system, unknowns, truth
                    ),
                }
                for i in _examples(windows)
            ],
            "stages": [asdict(stage) for stage in getattr(model, "stages", ())],
            "training": _training(model),
            "settings": _flat(settings),
            "warnings": [*warnings, *_first(forecasts.warnings)],
        }
    )


def fingerprint(panel: Panel) -> str:
    """A short hash of all values, times and controls of a panel."""
    digest = hashlib.sha256()
    for array in (panel.times, panel.values, panel.controls, panel.lengths):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def unknown_rows(
    system: System, unknowns: Unknowns | None, truth: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Each unknown with its mean over all time steps, and the interval of 90 % of its values.

    A constant has one value: its interval follows from its standard error, if the model has one.
    There is none for an unknown that could vary and does not, because its network was dropped.
    """
    rows = []
    for i, unknown in enumerate(system.unknowns if unknowns is not None else ()):
        assert unknowns is not None
        mean, std = unknowns.mean[..., i], unknowns.std[..., i]
        values = mean[np.isfinite(mean)]
        stds = std[np.isfinite(std)]
        around = float(_Z90 * np.sqrt((stds**2).mean())) if stds.size else float("nan")
        low, high = np.quantile(values, [0.05, 0.95]) if values.size else (np.nan, np.nan)
        least, most = unknown.bounds.ends
        rows.append(
            {
                "name": unknown.name,
                "kind": unknown.kind,
                "unit": system.units.get(f"?{unknown.name}"),
                "value": float(values.mean()),
                "lower": max(float(low) - around, least),
                "upper": min(float(high) + around, most),
                "bound": _reached_bound(float(low) - around, float(high) + around, (least, most)),
                "true": truth.get(unknown.name),
            }
        )
    return rows


def _reached_bound(lower: float, upper: float, ends: tuple[float, float]) -> float | None:
    """The bound that an interval reaches, if it reaches one."""
    if lower <= ends[0]:
        return ends[0]
    return ends[1] if upper >= ends[1] else None


def _physics(
    system: System, unknowns: Unknowns | None, truth: Mapping[str, float]
) -> dict[str, Any]:
    rows = unknown_rows(system, unknowns, truth)
    values = {row["name"]: row["value"] for row in rows}
    written = lifted_equations(system.structure)[: len(system.states)]
    learned = learned_equations(system.structure, values) if rows else written
    return {
        "text": system.text,
        "equations": [{"written": a, "learned": b} for a, b in zip(written, learned, strict=True)],
        "unknowns": rows,
    }


def _data(panel: Panel) -> dict[str, Any]:
    cells = panel.lengths.sum() * len(panel.channels)
    return {
        "series": len(panel),
        "rows": int(panel.lengths.sum()),
        "channels": list(panel.channels),
        "controls": list(panel.control_names),
        "missing_share": float(1 - panel.observed.sum() / max(cells, 1)),
        "median_gap": panel.median_gap,
        "time_label": _time_label(panel),
        "fingerprint": fingerprint(panel),
    }


def _time_label(panel: Panel) -> str:
    layout = panel.layout
    if layout.origin is None:
        return layout.time
    return f"{layout.time} ({layout.time_unit} since {layout.origin})"


def _examples(windows: EvaluationWindows) -> list[int]:
    """Indices of the first window of each of the first series."""
    first: dict[str, int] = {}
    for i, name in enumerate(windows.history.ids):
        first.setdefault(_series(name), i)
    return list(first.values())[:MAX_EXAMPLES]


def _first(warnings: Sequence[str]) -> list[str]:
    """The first warnings, and how many more there are."""
    more = len(warnings) - MAX_WARNINGS
    return [*warnings[:MAX_WARNINGS], *([f"{more} more of this kind"] if more > 0 else [])]


def _series(window: str) -> str:
    """The series of a window such as `7@160`."""
    return window.rsplit("@", 1)[0]


def _example(i: int, evaluation: Evaluation, units: Mapping[str, str]) -> dict[str, Any]:
    """Context, target and forecasts of one window, by channel."""
    windows = evaluation.windows
    context, target = windows.history[i], windows.target[i]
    forecast, *_ = evaluation.forecasts.values()
    _, *others = evaluation.forecasts.items()
    n = len(target.times)
    return {
        "series": _series(windows.history.ids[i]),
        "boundary": float(context.times[-1]),
        "channels": [
            {
                "name": name,
                "unit": units.get(name),
                "context_times": context.times,
                "context_values": context.values[:, c],
                "target_times": target.times,
                "target_values": target.values[:, c],
                "forecast_times": target.times,
                "mean": forecast.mean[i, :n, c],
                "lower": forecast.lower[i, :n, c],
                "upper": forecast.upper[i, :n, c],
                "others": {k: other.mean[i, :n, c] for k, other in others},
            }
            for c, name in enumerate(windows.history.channels)
        ],
    }


def _unknown_curves(
    series: str, system: System | None, unknowns: Unknowns | None, truth: Mapping[str, float]
) -> list[dict[str, Any]]:
    if system is None or unknowns is None or series not in unknowns.ids:
        return []
    i = unknowns.ids.index(series)
    n = int(unknowns.lengths[i])
    curves = []
    for k, unknown in enumerate(system.unknowns):
        if unknown.kind == "constant":
            continue
        mean, reach = unknowns.mean[i, :n, k], _Z90 * unknowns.std[i, :n, k]
        true = truth.get(unknown.name)
        curves.append(
            {
                "name": unknown.name,
                "unit": system.units.get(f"?{unknown.name}"),
                "times": unknowns.times[i, :n],
                "mean": mean,
                "lower": mean - reach,
                "upper": mean + reach,
                "true": None if true is None else [true] * n,
            }
        )
    return curves


def _training(model: AbstractFitted) -> dict[str, Any] | None:
    result = model.training
    if result is None:
        return None
    return {
        "curve": [
            {key: point[key] for key in ("step", "loss", "validation")} for point in result.curve
        ],
        "seconds": max(0.0, result.progress.seconds - result.progress.compile_seconds),
        "compile_seconds": result.progress.compile_seconds,
        "skipped_steps": result.progress.skipped,
        "best_step": result.progress.best_step,
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
