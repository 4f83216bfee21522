"""The folder of a run: its claim by one run, and its files.

`run.json` holds the request, and once the run is finished the window sizes of its scores;
`checkpoints/` exists during training; `model.json` and `model.safetensors` hold the model,
`baselines/` those it is compared with, `metrics.jsonl` the training curve, and `evaluation.json`
the report data.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physsm._errors import RunError
from physsm._json import plain, to_json
from physsm._values import Panel
from physsm.benchmark.evaluate import BASELINES
from physsm.benchmark.physics_baselines import PHYSICS_BASELINES
from physsm.benchmark.pipeline import Record
from physsm.benchmark.report_data import fingerprint
from physsm.data.window import Sizes
from physsm.models._base import AbstractFitted, load
from physsm.models._files import save_model
from physsm.training.checkpoint import make_folder, read_json, write_atomically, write_json

_NOTE = "run.json"
_REPORT_DATA = "evaluation.json"


def claim(folder: Path, request: Mapping[str, Any], resume: bool) -> None:
    """Write the request into a new folder, or check that the folder holds the run to continue."""
    if (folder / _NOTE).exists():
        if not resume:
            raise RunError(
                f"{folder} already holds a run: choose another folder, or continue it with --resume"
            )
        _check_same_request(folder, request)
        return
    if resume:
        raise RunError(f"{folder} holds no run to continue: start one without --resume")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file: choose a folder for the run")
    if folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder} is not empty and holds no run: choose another folder")
    make_folder(folder)
    write_json(folder / _NOTE, {"request": dict(request)})


def _check_same_request(folder: Path, request: Mapping[str, Any]) -> None:
    stored = _stored_request(folder) or {}
    names = {"fingerprint": "table", "validation": "validation table"}
    different = [
        names.get(key, key) for key, wanted in request.items() if stored.get(key) != wanted
    ]
    if not different:
        return
    raise RunError(
        f"{folder} holds a run that differs in {' and '.join(different)}: continue it with the "
        "same table, settings and seed, or choose another folder"
    )


def release(folder: Path) -> None:
    """Remove the folder of a run that failed before its training began."""
    if not (folder / "checkpoints").exists():
        (folder / _NOTE).unlink(missing_ok=True)
        folder.rmdir()


def write_outcome(
    folder: Path,
    record: Record,
    sizes: Sizes,
    report_data: Mapping[str, Any],
    extra: dict[str, Any],
) -> None:
    """Write a finished run; `extra` goes into `model.json`. The window sizes are written last:
    they mark the run as finished.
    """
    for name, baseline in record.baselines.items():
        save_model(baseline, folder / "baselines" / name)
    save_model(record.model, folder, extra)
    write_atomically(folder / "metrics.jsonl", _training_curve(record.model))
    write_json(folder / _REPORT_DATA, report_data)
    note = read_json(folder / _NOTE)
    outcome = {"sizes": vars(sizes), "question": report_data.get("question")}
    write_json(folder / _NOTE, {**note, **plain(outcome)})
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _training_curve(model: AbstractFitted) -> bytes:
    points = model.training.curve if model.training is not None else []
    return "".join(to_json(point) + "\n" for point in points).encode()


def finished_report_data(folder: Path) -> dict[str, Any] | None:
    """The report data of a finished run; None if training has to continue."""
    if "sizes" not in read_json(folder / _NOTE):
        return None
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    path = folder / _REPORT_DATA
    report_data = read_json(path) if path.exists() else None
    if not isinstance(report_data, dict) or not {"scores", "physics", "training"} <= set(
        report_data
    ):
        raise RunError(
            f"the run is finished, but {path} is missing or damaged; its model can still be used: "
            f"physsm evaluate {folder} TABLE scores it"
        )
    return report_data


def load_baselines(folder: Path) -> dict[str, AbstractFitted]:
    """The fitted baselines of a run by name."""
    return {
        name: load(folder / "baselines" / name)
        for name in (*BASELINES, *PHYSICS_BASELINES)
        if (folder / "baselines" / name).is_dir()
    }


def run_sizes(folder: Path) -> Sizes:
    """The window sizes of the scores of a run."""
    try:
        return Sizes(**read_json(folder / _NOTE)["sizes"])
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder / _NOTE} is damaged, or the run is not finished") from error


def is_table_of(folder: Path, panel: Panel) -> bool:
    """Whether a run was fitted to this table."""
    request = _stored_request(folder)
    return request is not None and request.get("fingerprint") == fingerprint(panel)


def data_of(folder: Path) -> str | None:
    """The data set and protocol that a run was fitted to; None for a table."""
    request = _stored_request(folder)
    return None if request is None else request.get("data")


def _stored_request(folder: Path) -> dict[str, Any] | None:
    note = read_json(folder / _NOTE)
    request = note.get("request") if isinstance(note, dict) else None
    return request if isinstance(request, dict) else None
