"""Results in files: one for each unit, written whole, never repeated."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from physsm._errors import RunError
from physsm._whole_files import try_lock
from physsm.benchmark.experiment import BUDGETS, Experiment, Unit
from physsm.metrics._metric import every_score
from physsm.training.checkpoint import make_folder, read_json, write_json

KEYS = (  # of every result
    "table",
    "dataset",
    "protocol",
    "model",
    "label",
    "seed",
    "budget",
    "ablation",
    "metrics",
    "config",
    "versions",
    "commit",
    "seconds",
    "peak_memory",
    "test_windows",
    "unit_of_errors",
    "notes",
    "request",
)


class Store:
    """The results of one table in a folder, `results/TABLE` by default."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other programs from running units of it at the same time."""
        make_folder(self.folder)
        try:
            with (self.folder / ".lock").open("a") as lock:
                if not try_lock(lock):
                    raise RunError(
                        f"another program is running units of {self.folder}: wait for it"
                    )
                yield
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error.strerror}") from error

    def path(self, unit: Unit) -> Path:
        """Where the result of a unit is or will be."""
        return self.folder / f"{unit.name}.json"

    def unfinished(self, unit: Unit) -> Path:
        """Where a training of a unit is kept while it runs."""
        return self.folder / ".unfinished" / f"{unit.name}-{digest(unit)}"

    def has(self, unit: Unit) -> bool:
        """Whether the result of just this unit is there; one of other settings does not count."""
        path = self.path(unit)
        return path.exists() and self._read(path).get("request") == digest(unit)

    def keep(self, unit: Unit, result: dict[str, Any]) -> None:
        """Write a result; what its training had kept is no longer needed."""
        make_folder(self.folder)
        write_json(self.path(unit), {**result, "request": digest(unit)})
        shutil.rmtree(self.unfinished(unit), ignore_errors=True)

    def results(self, table: str, experiment: Experiment) -> tuple[list[dict[str, Any]], list[str]]:
        """The results of a table by name, and the files of units that it does not ask for (any
        more): of other settings, or of rows that were taken out.
        """
        found, others = [], []
        for path in sorted(self.folder.glob("*.json")):
            content = self._read(path)
            unit = _unit_of(content, table, experiment)
            if unit is not None and digest(unit) == content["request"]:
                found.append(content)
            else:
                others.append(path.name)
        return found, others

    def _read(self, path: Path) -> dict[str, Any]:
        content = read_json(path)
        if not _is_result(content):
            raise RunError(f"{path} is no result of a benchmark, or was changed: remove it")
        return content


def _unit_of(content: dict[str, Any], table: str, experiment: Experiment) -> Unit | None:
    """The unit of a table that a result seems to belong to."""
    where = f"{content['dataset']}:{content['protocol']}"
    column = next((column for column in experiment.data if column.name == where), None)
    row = next((row for row in experiment.row if row.name == content["label"]), None)
    if column is None or row is None or content["budget"] not in BUDGETS:
        return None
    return Unit(table=table, column=column, row=row, seed=content["seed"], budget=content["budget"])


def _is_result(content: Any) -> bool:
    """Whether this has all that a summary reads, in the right form."""
    if not isinstance(content, dict) or not set(KEYS) <= set(content):
        return False
    metrics, seconds, notes = content["metrics"], content["seconds"], content["notes"]
    texts = ("dataset", "protocol", "label", "budget", "unit_of_errors", "request")
    return (
        all(isinstance(content[key], str) for key in texts)
        and all(isinstance(content[key], int) for key in ("seed", "test_windows"))
        and isinstance(notes, list)
        and all(isinstance(note, str) for note in notes)
        and isinstance(seconds, dict)
        and _is_number(seconds.get("fit"))
        and isinstance(metrics, dict)
        and all(_is_number(metrics.get(score.key)) for score in every_score())
    )


def _is_number(value: Any) -> bool:
    """A finite number, or None where there is none."""
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def digest(unit: Unit) -> str:
    """A short name of all that a unit asks for; settings for other columns do not count."""
    row = unit.row.model_dump(include={"model", "label", "physics", "ablation"})
    asked = {**unit.model_dump(exclude={"row"}), "row": row, "settings": unit.settings}
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
