"""The path of every run: parts of the data → fit → baselines → scores.

`physsm fit` and a benchmark job both call `fit_and_score`. They differ only in the origin of the
parts (`table_parts`, or the protocol of a data set) and in how the record is stored (a run folder,
or a result file).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark.evaluate import Score, beside, fit_baselines, score_all
from physsm.benchmark.trial import Trial, panel_trial
from physsm.data.scale import channel_moments
from physsm.data.split import default_split
from physsm.data.window import Sizes, windows
from physsm.datasets._dataset import Part, Split
from physsm.models._base import AbstractFitted, AbstractForecaster
from physsm.physics.system import System
from physsm.training.loop import Progress

Report = Callable[[Progress], None]


class Prepared(NamedTuple):
    """A forecaster, its settings with all window sizes decided, and these sizes."""

    forecaster: AbstractForecaster
    settings: dict[str, Any]
    sizes: Sizes


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """Training and validation parts of a run, and the windows on which it is scored.

    `sizes` are those of the evaluation windows. `cut_evaluation` is called after the fit, so that
    the windows take no memory during training.
    """

    train: Part
    validation: Part
    sizes: Sizes
    cut_evaluation: Callable[[], Trial]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Where a training stores its checkpoints, whether it continues from them, and who receives
    its progress. Models without a training loop ignore all of them.
    """

    folder: Path
    resume: bool = False
    report: Report = lambda _: None


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """A fitted model with its baselines and scores, the model's first; durations in s."""

    model: AbstractFitted
    baselines: Mapping[str, AbstractFitted]
    evaluation: Trial
    scores: list[Score]
    fit_seconds: float
    score_seconds: float


def prepare(
    model: str, system: System | None, settings: Mapping[str, Any], panel: Panel
) -> Prepared:
    """A forecaster for a panel. Window sizes that the settings leave open are decided here, once:
    a forecaster that decided in `fit` would see only the training part, and choose smaller ones.
    """
    kind = find("models", model, "MODEL")
    sizes = kind.create(system, settings).sizes(panel)
    missing = {
        name: size
        for name, size in asdict(sizes).items()
        if name in kind.Config.model_fields and settings.get(name) is None
    }
    complete = {**settings, **missing}
    return Prepared(kind.create(system, complete), complete, sizes)


def table_parts(panel: Panel, sizes: Sizes, seed: int) -> Parts:
    """The default split of a table, with windows of these sizes. The validation windows, whose
    targets do not overlap, are also the evaluation windows.
    """
    context, horizon, stride = sizes.context, sizes.horizon, sizes.stride
    train, validation = default_split(panel, seed, context + horizon)
    evaluation = panel_trial(validation, sizes, channel_moments(train)[1])
    return Parts(
        train=Part(train, windows(train, context, horizon, stride), raw=()),
        validation=Part(validation, windows(validation, context, horizon, horizon), raw=()),
        sizes=sizes,
        cut_evaluation=lambda: evaluation,
    )


def protocol_parts(split: Split, cut_evaluation: Callable[[], Trial]) -> Parts:
    """The parts of a protocol, with evaluation windows of its validation or its test part."""
    return Parts(
        train=split.train,
        validation=split.validation,
        sizes=split.sizes,
        cut_evaluation=cut_evaluation,
    )


def fit_and_score(
    forecaster: AbstractForecaster,
    parts: Parts,
    *,
    seed: int,
    training: TrainingOptions,
    with_baselines: bool,
) -> Record:
    """Fit a forecaster to the parts, and score it on their evaluation windows; `with_baselines`
    also fits and scores the baselines, for the same horizon.
    """
    train, validation = _fit_input(parts.train), _fit_input(parts.validation)
    options: dict[str, Any] = {"seed": seed}
    if forecaster.trains:
        options |= {
            "folder": training.folder,
            "resume": training.resume,
            "report": training.report,
        }
    began = time.perf_counter()
    model = forecaster.fit(train, validation, **options)
    fitted = time.perf_counter()
    baselines = (
        fit_baselines(train, validation, seed, parts.sizes.horizon) if with_baselines else {}
    )
    compared = time.perf_counter()
    evaluation = parts.cut_evaluation()
    scores = score_all(beside(model, baselines), evaluation)
    return Record(
        model=model,
        baselines=baselines,
        evaluation=evaluation,
        scores=scores,
        fit_seconds=fitted - began,
        score_seconds=time.perf_counter() - compared,
    )


def _fit_input(part: Part) -> Panel:
    """What `fit` of a forecaster takes of a part."""
    return part.panel
