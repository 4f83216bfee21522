"""One run: a model fitted to a table or a data set, and stored in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from physsm._errors import ConfigError, DataError
from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark import run_folder
from physsm.benchmark.evaluate import NO_UNITS, Score
from physsm.benchmark.evaluation_windows import windows_of_validation_part
from physsm.benchmark.pipeline import (
    Report,
    TrainingOptions,
    fit_and_score,
    prepare,
    protocol_data,
    table_data,
)
from physsm.benchmark.report_data import build_report_data, fingerprint, plain
from physsm.data.window import Sizes
from physsm.datasets._dataset import Split
from physsm.models._base import AbstractFitted, load
from physsm.physics.system import System


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run is asked to do. `data` is the name of a data set and its protocol, if the run is
    fitted to one.
    """

    model: str
    settings: Mapping[str, Any]
    system: System | None
    seed: int
    data: str | None = None

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
) -> Run:
    """Fit a model, compare it with the baselines on the validation part, and store the run.

    `source` is a table, of which a part is set aside for validation, or the split of a protocol.
    """
    panel = source.train.panel if isinstance(source, Split) else source
    settings = {**_protocol_settings(source, request.model), **request.settings}
    given = source.train if isinstance(source, Split) else source
    prepared = prepare(request.model, request.system, settings, given)
    if isinstance(source, Split):
        data = protocol_data(source, partial(windows_of_validation_part, source))
    else:
        data = table_data(source, prepared, request.seed)
    run_folder.claim(folder, request.note(panel), resume)
    if resume and (report_data := run_folder.finished_report_data(folder)) is not None:
        return _stored_run(folder, report_data)
    training = TrainingOptions(folder=folder / "checkpoints", resume=resume, report=report)
    try:
        record = fit_and_score(
            prepared.forecaster,
            data,
            seed=request.seed,
            training=training,
            with_baselines=True,
            units=NO_UNITS if request.system is None else request.system.units,
        )
    except (DataError, ConfigError):
        if not resume:
            run_folder.release(folder)
        raise
    used = record.model.describe().get("config", prepared.settings)
    report_data = build_report_data(
        record.model,
        record.baselines,
        data.validation_panel,
        title=title,
        sizes=data.sizes,
        scores=record.scores,
        settings={**used, "seed": request.seed},
    )
    extra = {"fingerprint": fingerprint(panel), "seed": request.seed}
    run_folder.write_outcome(folder, record, data.sizes, report_data, extra)
    return Run(
        folder=folder,
        model=record.model,
        sizes=data.sizes,
        report_data=report_data,
    )


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
