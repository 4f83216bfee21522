"""The path of every run: parts of the data → fit → baselines → scores.

`physsm fit` and a benchmark job both call `fit_and_score`. They differ only in the origin of the
parts (`table_data` or `protocol_data`) and in how the record is stored (a run folder,
or a result file).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark.evaluate import NO_UNITS, Evaluation, beside, fit_baselines, score_all
from physsm.benchmark.evaluation_windows import EvaluationWindows, windows_of_panel
from physsm.benchmark.physics_baselines import fit_physics_baselines
from physsm.benchmark.question import Question, given_sizes, size_reasons
from physsm.data.parts import WindowSettings, make_parts
from physsm.data.scale import channel_moments
from physsm.data.window import Part, Sizes
from physsm.datasets._dataset import Split
from physsm.models._base import AbstractFitted, AbstractForecaster
from physsm.physics.system import System
from physsm.training.loop import Progress

Report = Callable[[Progress], None]


class Prepared(NamedTuple):
    """A forecaster, its settings with all window sizes decided, these sizes, which are those of the
    evaluation windows of a table, and the question that they answer.
    """

    forecaster: AbstractForecaster
    settings: dict[str, Any]
    sizes: Sizes
    question: Question


@dataclass(frozen=True, eq=False, kw_only=True)
class RunData:
    """Training and validation parts of a run, and the windows on which it is scored.

    Parts of a protocol have the windows that a network is trained on; from a panel it takes every
    window of its own context and horizon. `sizes` are those of the evaluation windows.
    `cut_evaluation` is called after the fit, so that the windows take no memory during training.
    They are of the validation part or, if `is_test`, of a part that no fit has seen. `whole` is the
    table that both parts were cut from, if there is one.
    """

    train: Panel | Part
    validation: Panel | Part
    sizes: Sizes
    cut_evaluation: Callable[[], EvaluationWindows]
    is_test: bool = False
    whole: Panel | None = None

    @property
    def validation_panel(self) -> Panel:
        """The series of the validation part."""
        return self.validation.panel if isinstance(self.validation, Part) else self.validation


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Folder of a training's checkpoints, whether it continues from them, and the callback of its
    progress: models without a training loop ignore them. `stage` is told what is done otherwise.
    """

    folder: Path
    resume: bool = False
    report: Report = lambda _: None
    stage: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """A fitted model with its baselines and their evaluation, the model's first; durations in s.
    `left_out` says which baselines could not be fitted, and why.
    """

    model: AbstractFitted
    scored: AbstractFitted
    baselines: Mapping[str, AbstractFitted]
    evaluation: Evaluation
    fit_seconds: float
    score_seconds: float
    left_out: tuple[str, ...] = ()


def prepare(
    model: str,
    system: System | None,
    settings: Mapping[str, Any],
    given: Panel | Part,
    *,
    context: int | None = None,
    horizon: int | None = None,
) -> Prepared:
    """A forecaster for a table or a training part. `context` and `horizon` override the settings.
    Window sizes that both leave open are decided here, once, and written into the settings, so that
    a report states them.
    """
    kind = find("models", model, "MODEL")
    own = kind.Config.model_fields
    known = given_sizes(settings, context, horizon)
    settings = {**settings, **{name: size for name, size in known.items() if name in own}}
    forecaster = kind.create(system, settings)  # which checks the sizes that are settings
    reasons = size_reasons(given, known)
    if isinstance(given, Part):  # baselines are not trained on windows
        sizes = forecaster.window_settings.sizes(given if kind.trains else given.panel)
    else:
        sizes = replace(forecaster.window_settings.sizes(given), **known)
    complete = {
        **settings,
        **{
            name: size
            for name, size in asdict(sizes).items()
            if name in own and settings.get(name) is None
        },
    }
    question = Question(context=sizes.context, horizon=sizes.horizon, chosen=reasons)
    return Prepared(kind.create(system, complete), complete, sizes, question)


def table_data(
    panel: Panel, prepared: Prepared, seed: int, validation: Panel | None = None
) -> RunData:
    """A table and its validation table, by default a part of it, with evaluation windows of the
    validation part.
    """
    sizes = WindowSettings(**asdict(prepared.sizes))
    parts = make_parts(panel, validation, sizes, seed)
    scale = channel_moments(parts.train.panel)[1]
    evaluation = windows_of_panel(parts.validation.panel, prepared.sizes, scale)
    return RunData(
        train=parts.train.panel,
        validation=parts.validation.panel,
        sizes=prepared.sizes,
        cut_evaluation=lambda: evaluation,
        whole=panel if validation is None else None,
    )


def protocol_data(
    split: Split, cut_evaluation: Callable[[], EvaluationWindows], *, is_test: bool
) -> RunData:
    """The parts of a protocol, with evaluation windows of its validation or its test part."""
    return RunData(
        train=split.train,
        validation=split.validation,
        sizes=split.sizes,
        cut_evaluation=cut_evaluation,
        is_test=is_test,
    )


def fit_and_score(
    forecaster: AbstractForecaster,
    data: RunData,
    *,
    seed: int,
    training: TrainingOptions,
    with_baselines: bool,
    system: System | None = None,
    units: Mapping[str, str] = NO_UNITS,
) -> Record:
    """Fit a forecaster to the training and validation parts, and score it on the evaluation
    windows; `with_baselines` also fits and scores the baselines, for the same horizon, and those
    around the equations of `system`, if there is one. `units` are those of the channels, where
    they are known.
    """
    options: dict[str, Any] = {"seed": seed}
    if forecaster.trains:
        options |= {
            "folder": training.folder,
            "resume": training.resume,
            "report": training.report,
        }
    if data.whole is not None and forecaster.refits:
        options |= {"whole": data.whole}
    began = time.perf_counter()
    model = forecaster.fit(data.train, data.validation, **options)
    fitted = time.perf_counter()
    baselines: dict[str, AbstractFitted] = {}
    left_out: tuple[str, ...] = ()
    if with_baselines:
        training.stage("fitting the baselines")
        baselines = fit_baselines(data.train, data.validation, seed, data.sizes.horizon)
    if with_baselines and system is not None:
        more = fit_physics_baselines(
            system,
            data.train,
            data.validation,
            seed=seed,
            sizes=data.sizes,
            model=model,
            stage=training.stage,
        )
        baselines, left_out = {**baselines, **more.fitted}, more.left_out
    compared = time.perf_counter()
    windows = data.cut_evaluation()
    scored = beside(model, baselines)
    if not data.is_test:  # a model that was fitted to the validation part cannot be judged by it
        scored = {name: each.before_refit or each for name, each in scored.items()}
    evaluation = score_all(scored, windows, units, training.stage)
    return Record(
        model=model,
        scored=scored[model.name],
        baselines=baselines,
        evaluation=evaluation,
        fit_seconds=fitted - began,
        score_seconds=time.perf_counter() - compared,
        left_out=left_out,
    )
