"""One run: a model fitted to a table, kept in a folder with all that belongs to it.

The folder holds `run.json` (what was asked for), `checkpoints/` while training, `model.json` and
`model.safetensors`, `classical/` (the rows to compare with), `metrics.jsonl` (the training curve)
and `evaluation.json` (what a report shows).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from physsm._errors import ConfigError, DataError, RunError
from physsm._registry import find
from physsm._values import Panel
from physsm.benchmark.evaluate import CLASSICAL, Score, beside, fit_classical, score_all
from physsm.benchmark.story import fingerprint, make_story, plain
from physsm.benchmark.trial import Trial, panel_trial, validation_trial
from physsm.data.scale import channel_moments
from physsm.data.split import default_split
from physsm.data.window import Sizes
from physsm.datasets._dataset import Split
from physsm.models._base import AbstractFitted, AbstractForecaster, load
from physsm.models._files import save_model
from physsm.physics.system import System
from physsm.training.checkpoint import make_folder, read_json, write_atomically, write_json
from physsm.training.loop import Progress

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Request:
    """What a run is asked to do. `data` names a data set and its protocol, if it is one."""

    model: str
    settings: Mapping[str, Any]
    physics: str | None
    seed: int
    data: str | None = None


@dataclass(frozen=True)
class Run:
    """A finished run, scored on windows of `sizes`. `is_new` is False if it had been finished
    before it was asked for.
    """

    folder: Path
    model: AbstractFitted
    sizes: Sizes
    scores: list[Score]
    story: dict[str, Any]
    is_new: bool = True


def fit_run(
    request: Request,
    panel: Panel,
    folder: Path,
    *,
    title: str,
    split: Split | None = None,
    resume: bool = False,
    report: Report = lambda _: None,
) -> Run:
    """Fit, compare with the classical rows on the validation part, and keep everything.

    Without a `split`, of which `panel` is the training part, some series are set aside for
    validation.
    """
    system = None if request.physics is None else System.parse(request.physics)
    kind, settings = find("models", request.model, "MODEL"), dict(request.settings)
    if split is not None:
        settings = {**_settings_of(split, kind), **settings}
    forecaster = kind.create(system, settings)
    own = forecaster.sizes(panel)
    aside = _set_aside(panel, split, own, request.seed)
    _claim(folder, request, panel, resume)
    if resume and (finished := _finished(folder)) is not None:
        return finished
    how: dict[str, Any] = {"seed": request.seed}
    if forecaster.trains:
        how |= {"folder": folder / "checkpoints", "resume": resume, "report": report}
    try:
        fitted = forecaster.fit(aside.train, aside.validation, **how)
    except (DataError, ConfigError):
        if not resume:
            _release(folder)
        raise
    classical = fit_classical(aside.train, aside.validation, request.seed, aside.horizon)
    scores = score_all(beside(fitted, classical), aside.trial)
    settings = fitted.describe().get("config", settings)
    used = {name: size for name, size in asdict(own).items() if settings.get(name, 0) is None}
    story = make_story(
        title,
        fitted,
        classical,
        aside.validation,
        aside.sizes,
        scores,
        {**settings, **used, "seed": request.seed},
    )
    extra = {"fingerprint": fingerprint(panel), "seed": request.seed}
    _keep(folder, fitted, classical, story, extra)
    note = read_json(folder / "run.json")
    write_json(folder / "run.json", {**note, "sizes": plain(vars(aside.sizes))})
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return Run(folder, fitted, aside.sizes, scores, story)


class _Aside(NamedTuple):
    """What a model is fitted to and what it is scored on. `horizon` is what classical rows are made
    for; None: what they choose.
    """

    train: Panel
    validation: Panel
    sizes: Sizes
    trial: Trial
    horizon: int | None


def _set_aside(panel: Panel, split: Split | None, own: Sizes, seed: int) -> _Aside:
    """As a data set's protocol says, or some series with windows of the model's `own` sizes."""
    if split is not None:
        trial = validation_trial(split)
        return _Aside(panel, split.validation.panel, split.sizes, trial, split.sizes.horizon)
    train, validation = default_split(panel, seed, own.context + own.horizon)
    trial = panel_trial(validation, own, channel_moments(train)[1])
    return _Aside(train, validation, own, trial, None)


def _settings_of(split: Split, kind: type[AbstractForecaster]) -> dict[str, Any]:
    """What a data set says for classical models: how far to forecast, which channels are places."""
    known = {} if kind.trains else kind.Config.model_fields
    tracks = [{"positions": pair} for pair in split.tracks]
    said = {"horizon": split.sizes.horizon, **({"tracks": tracks} if tracks else {})}
    return {name: value for name, value in said.items() if name in known}


def load_classical(folder: Path) -> dict[str, AbstractFitted]:
    """The classical rows of a run."""
    return {
        name: load(folder / "classical" / name)
        for name in CLASSICAL
        if (folder / "classical" / name).is_dir()
    }


def run_sizes(folder: Path) -> Sizes:
    """The rows of context and target that a run was scored on."""
    try:
        return Sizes(**read_json(folder / "run.json")["sizes"])
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder / 'run.json'} is damaged, or the run is not finished") from error


def is_table_of(folder: Path, panel: Panel) -> bool:
    """Whether a run was fitted to this very table."""
    note = read_json(folder / "run.json")
    request = note.get("request") if isinstance(note, dict) else None
    return isinstance(request, dict) and request.get("fingerprint") == fingerprint(panel)


def data_of(folder: Path) -> str | None:
    """The data set and protocol that a run was fitted to, if it was one."""
    note = read_json(folder / "run.json")
    request = note.get("request") if isinstance(note, dict) else None
    return request.get("data") if isinstance(request, dict) else None


def _claim(folder: Path, request: Request, panel: Panel, resume: bool) -> None:
    """Note what the run is for, and never mix two runs in one folder."""
    wanted = plain(
        {
            "model": request.model,
            "settings": dict(request.settings),
            "physics": request.physics,
            "seed": request.seed,
            "fingerprint": fingerprint(panel),
            "columns": [*panel.channels, *panel.control_names],
            "data": request.data,
        }
    )
    note = folder / "run.json"
    if note.exists():
        if not resume:
            raise RunError(
                f"{folder} already holds a run: choose another folder, or continue it with --resume"
            )
        before = read_json(note)
        known = before.get("request") if isinstance(before, dict) else None
        if known != wanted:
            different = [
                "table" if key == "fingerprint" else str(key)
                for key in wanted
                if not known or known.get(key) != wanted[key]
            ]
            raise RunError(
                f"{folder} holds a run that differs in {' and '.join(different)}: continue it with "
                "what it was started with, or choose another folder"
            )
        return
    if resume:
        raise RunError(f"{folder} holds no run to continue: start one without --resume")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file: choose a folder for the run")
    if folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder} is not empty and holds no run: choose another folder")
    make_folder(folder)
    write_json(note, {"request": wanted})


def _finished(folder: Path) -> Run | None:
    """The run of a folder, if it has come to its end; there is nothing left to continue then."""
    if "sizes" not in read_json(folder / "run.json"):
        return None
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    path = folder / "evaluation.json"
    story = read_json(path) if path.exists() else None
    if not isinstance(story, dict) or not {"scores", "physics", "training"} <= set(story):
        raise RunError(
            f"the run is finished, but {path} is missing or damaged; its model can still be used: "
            f"physsm evaluate {folder} scores it on a table"
        )
    return Run(folder, load(folder), run_sizes(folder), story["scores"], story, is_new=False)


def _release(folder: Path) -> None:
    """Give a folder back whose run was refused before it began."""
    if not (folder / "checkpoints").exists():
        (folder / "run.json").unlink(missing_ok=True)
        folder.rmdir()


def _keep(
    folder: Path,
    fitted: AbstractFitted,
    classical: Mapping[str, AbstractFitted],
    story: Mapping[str, Any],
    extra: dict[str, Any],
) -> None:
    for name, row in classical.items():
        save_model(row, folder / "classical" / name)
    save_model(fitted, folder, extra)
    write_atomically(folder / "metrics.jsonl", _curve(fitted))
    write_json(folder / "evaluation.json", story)


def _curve(fitted: AbstractFitted) -> bytes:
    rows = fitted.training.curve if fitted.training is not None else []
    return "".join(json.dumps(plain(row)) + "\n" for row in rows).encode()
