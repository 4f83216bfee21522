"""Result files: one for each job, written whole, never repeated."""

from __future__ import annotations

import contextlib
import hashlib
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from physsm._errors import RunError
from physsm._json import to_json
from physsm._whole_files import try_lock
from physsm.benchmark.experiment import BUDGETS, Experiment, Job
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
    def locked(self) -> Iterator[None]:
        """Make the folder, and lock it against other programs that run jobs of it."""
        make_folder(self.folder)
        try:
            with (self.folder / ".lock").open("a") as lock:
                if not try_lock(lock):
                    raise RunError(f"another program is running jobs of {self.folder}: wait for it")
                yield
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error.strerror}") from error

    def path(self, job: Job) -> Path:
        """The path of the result file of a job."""
        return self.folder / f"{job.name}.json"

    def unfinished(self, job: Job) -> Path:
        """The folder of the checkpoints of a job that is not finished."""
        return self.folder / ".unfinished" / f"{job.name}-{digest(job)}"

    def has(self, job: Job) -> bool:
        """Whether there is a result of this job; one of other settings does not count."""
        path = self.path(job)
        return path.exists() and self._read(path).get("request") == digest(job)

    def write(self, job: Job, result: dict[str, Any]) -> None:
        """Write a result, and remove the checkpoints of its training."""
        make_folder(self.folder)
        write_json(self.path(job), {**result, "request": digest(job)})
        shutil.rmtree(self.unfinished(job), ignore_errors=True)

    def results(self, table: str, experiment: Experiment) -> tuple[list[dict[str, Any]], list[str]]:
        """The results of a table, and the names of files that belong to none of its jobs: they have
        other settings, or their rows were removed.
        """
        found, others = [], []
        for path in sorted(self.folder.glob("*.json")):
            content = self._read(path)
            job = _job_of(content, table, experiment)
            if job is not None and digest(job) == content["request"]:
                found.append(content)
            else:
                others.append(path.name)
        return found, others

    def _read(self, path: Path) -> dict[str, Any]:
        content = read_json(path)
        if not _is_result(content):
            raise RunError(f"{path} is not a result of a benchmark, or was changed: remove it")
        return content


def _job_of(content: dict[str, Any], table: str, experiment: Experiment) -> Job | None:
    """The job of a table that a result belongs to by its names; None if there is none."""
    where = f"{content['dataset']}:{content['protocol']}"
    column = next((column for column in experiment.data if column.name == where), None)
    row = next((row for row in experiment.row if row.name == content["label"]), None)
    if column is None or row is None or content["budget"] not in BUDGETS:
        return None
    return Job(table=table, column=column, row=row, seed=content["seed"], budget=content["budget"])


def _is_result(content: Any) -> bool:
    """Whether the content has all that a summary reads, with the right types."""
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
    """Whether this is a finite number, or None for a missing one."""
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def digest(job: Job) -> str:
    """A short hash of all that a job depends on; settings for other columns do not count."""
    row = job.row.model_dump(include={"model", "label", "physics", "ablation"})
    asked = {**job.model_dump(exclude={"row"}), "row": row, "settings": job.settings}
    text = to_json(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
