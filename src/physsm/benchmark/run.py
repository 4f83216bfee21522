"""One run: a model fitted to a table or a data set, and stored in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from physsm._errors import ConfigError, DataError
from physsm._json import plain
from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark import run_folder
from physsm.benchmark.evaluate import NO_UNITS, Score
from physsm.benchmark.evaluation_windows import windows_of_validation_part
from physsm.benchmark.pipeline import (
    Prepared,
    Record,
    Report,
    RunData,
    TrainingOptions,
    fit_and_score,
    prepare,
    protocol_data,
    table_data,
)
from physsm.benchmark.report_data import build_report_data, fingerprint
from physsm.benchmark.verdict import verdict_on
from physsm.data.window import Sizes
from physsm.datasets._dataset import Split
from physsm.models._base import AbstractFitted, check_clock, load, with_columns
from physsm.physics.system import System

VALIDATION = "the validation part"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run is asked to do. `data` is the name of a data set and its protocol, if the run is
    fitted to one. `context` and `horizon` are the question in time steps, by default of the
    settings or the table. `validation` is a table; without one a part of the table of the fit
    validates.
    """

    model: str
    settings: Mapping[str, Any]
    system: System | None
    seed: int
    data: str | None = None
    context: int | None = None
    horizon: int | None = None
    validation: Panel | None = None

    def note(self, panel: Panel) -> dict[str, Any]:
        """All that a run depends on, as plain values for `run.json`."""
        return plain(
            {
                "model": self.model,
                "settings": dict(self.settings),
                "physics": None if self.system is None else self.system.text,
                "seed": self.seed,
                "fingerprint": fingerprint(panel),
                "columns": [*panel.channels, *panel.control_names],
                "data": self.data,
                "context": self.context,
                "horizon": self.horizon,
                "validation": None if self.validation is None else fingerprint(self.validation),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run, scored on windows of `sizes`. `is_new` is False if the folder held it
    already.
    """

    folder: Path
    model: AbstractFitted
    sizes: Sizes
    report_data: dict[str, Any]
    is_new: bool = True

    @property
    def left_out(self) -> list[str]:
        """Which baselines could not be fitted, and why, a sentence each."""
        return self.report_data.get("left_out", [])

    @property
    def warnings(self) -> list[str]:
        """Warnings on the run as a whole."""
        verdict = verdict_on(self.scores, VALIDATION)
        return [] if verdict is None else [verdict]

    @property
    def question(self) -> dict[str, Any] | None:
        """Context and horizon that were asked for, and whether they were given."""
        return self.report_data.get("question")

    @property
    def scores(self) -> list[Score]:
        """Scores on the validation part: of the model, then of the baselines."""
        return self.report_data["scores"]


def fit_run(
    request: Request,
    source: Panel | Split,
    folder: Path,
    *,
    title: str,
    resume: bool = False,
    report: Report = lambda _: None,
    stage: Callable[[str], None] = lambda _: None,
) -> Run:
    """Fit a model, compare it with the baselines on the validation part, and store the run.

    `source` is a table, of which a part is set aside for validation unless the request has a
    validation table, or the split of a protocol. `stage` is told what is done outside of training.
    """
    panel = source.train.panel if isinstance(source, Split) else source
    if isinstance(source, Split):
        _refuse_question(request)
    elif request.validation is not None:
        request = replace(request, validation=_like(request.validation, source))
    prepared, data = _prepare(request, source)
    run_folder.claim(folder, request.note(panel), resume)
    if resume and (report_data := run_folder.finished_report_data(folder)) is not None:
        return _stored_run(folder, report_data)
    training = TrainingOptions(
        folder=folder / "checkpoints", resume=resume, report=report, stage=stage
    )
    try:
        record = fit_and_score(
            prepared.forecaster,
            data,
            seed=request.seed,
            training=training,
            with_baselines=True,
            system=_compared_system(request, source),
            units=NO_UNITS if request.system is None else request.system.units,
        )
    except (DataError, ConfigError):
        if not resume:
            run_folder.release(folder)
        raise
    stage("writing the report data")
    report_data = _report_data(request, prepared, data, record, title)
    extra = {"fingerprint": fingerprint(panel), "seed": request.seed}
    run_folder.write_outcome(folder, record, data.sizes, report_data, extra)
    return Run(
        folder=folder,
        model=record.model,
        sizes=data.sizes,
        report_data=report_data,
    )


def _report_data(
    request: Request, prepared: Prepared, data: RunData, record: Record, title: str
) -> dict[str, Any]:
    """What the report of a run shows."""
    used = record.model.describe().get("config", prepared.settings)
    scores = record.evaluation.scores
    report_data = build_report_data(
        record.scored,
        data.validation_panel,
        record.evaluation,
        title=title,
        settings={**used, "seed": request.seed},
        question=prepared.question.content(),
        final=record.model,
        warnings=[verdict] if (verdict := verdict_on(scores, VALIDATION)) else [],
    )
    report_data["left_out"] = list(record.left_out)
    return report_data


def _prepare(request: Request, source: Panel | Split) -> tuple[Prepared, RunData]:
    """The forecaster with its window sizes, and the parts that it is fitted to and scored on."""
    settings = {**_protocol_settings(source, request.model), **request.settings}
    if isinstance(source, Split):
        prepared = prepare(request.model, request.system, settings, source.train)
        question = replace(
            prepared.question, context=source.sizes.context, horizon=source.sizes.horizon
        )
        data = protocol_data(source, partial(windows_of_validation_part, source), is_test=False)
        return prepared._replace(question=question), data
    prepared = prepare(
        request.model,
        request.system,
        settings,
        source,
        context=request.context,
        horizon=request.horizon,
    )
    return prepared, table_data(source, prepared, request.seed, request.validation)


def _refuse_question(request: Request) -> None:
    """Refuse a question or a validation table for a data set: its protocol has them."""
    if request.context is not None or request.horizon is not None or request.validation is not None:
        raise ConfigError(
            "context, horizon and validation part of the scores are set by the data set's protocol"
        )


def _like(validation: Panel, table: Panel) -> Panel:
    """The validation table with the columns of the table of the fit, in their order."""
    check_clock(validation.layout, table.layout)
    try:
        return with_columns(validation, table.channels, table.control_names)
    except DataError as error:
        raise DataError(f"validation: {error.message}", hint=error.hint) from error


def _compared_system(request: Request, source: Panel | Split) -> System | None:
    """The physics of the baselines: that of the model, or that given with a table."""
    uses_physics = find("models", request.model, "MODEL").physics
    return request.system if uses_physics or not isinstance(source, Split) else None


def _stored_run(folder: Path, report_data: dict[str, Any]) -> Run:
    return Run(
        folder=folder,
        model=load(folder),
        sizes=run_folder.run_sizes(folder),
        report_data=report_data,
        is_new=False,
    )


def _protocol_settings(source: Panel | Split, model: str) -> dict[str, Any]:
    """Settings that a protocol gives to baselines: the horizon, and the channels that are
    positions.
    """
    kind = find("models", model, "MODEL")
    if not isinstance(source, Split) or kind.trains:
        return {}
    settings: dict[str, Any] = {"horizon": source.sizes.horizon}
    if source.tracks:
        settings["tracks"] = [{"positions": pair} for pair in source.tracks]
    return {name: value for name, value in settings.items() if name in kind.Config.model_fields}
