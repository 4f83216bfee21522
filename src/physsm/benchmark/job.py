"""One benchmark job, from its data to its result: split → fit → score, see `pipeline`."""

from __future__ import annotations

import inspect
import platform
import subprocess
import sys
import time
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from physsm._errors import ConfigError, DataError
from physsm._json import plain
from physsm._registry import find
from physsm.benchmark.evaluation_windows import windows_of_test_part
from physsm.benchmark.experiment import Job
from physsm.benchmark.named_data import units_of
from physsm.benchmark.pipeline import (
    Record,
    Report,
    TrainingOptions,
    fit_and_score,
    prepare,
    protocol_data,
)
from physsm.datasets._dataset import Dataset, Split
from physsm.models._base import AbstractFitted
from physsm.physics.system import System
from physsm.training.checkpoint import read_json

_LIBRARIES = ("physsm", "jax", "jaxlib", "equinox", "optax", "numpy", "scoringrules")


def run_job(
    job: Job,
    folder: Path,
    *,
    data_dir: Path | None = None,
    report: Report = lambda _: None,
) -> dict[str, Any]:
    """The result of a job as plain values. `folder` holds the checkpoints of its training; an
    interrupted training continues from them.
    """
    seconds_before = _seconds_before(folder)
    began = time.perf_counter()
    split = make_split(job, data_dir)
    seconds_data = time.perf_counter() - began
    record = _fit_and_score(job, split, folder, report)
    seconds_all = seconds_before + time.perf_counter() - began
    model, training = record.model, record.model.training
    (metrics,) = record.evaluation.scores
    metrics.pop("model")
    return plain(
        {
            "table": job.table,
            "dataset": job.column.dataset,
            "protocol": job.column.protocol,
            "model": job.row.model,
            "label": job.row.name,
            "seed": job.seed,
            "budget": job.budget,
            "ablation": job.row.ablation,
            "metrics": metrics,
            "training_windows": "protocol" if training else None,
            "test_windows": len(record.evaluation.windows.history),
            "unit_of_errors": split.unit_words,
            "notes": list(split.notes),
            "config": {"data": job.column.settings, "model": job.settings},
            "physics": None if model.system is None else model.system.text,
            "found": _short_description(model),
            "versions": versions(),
            "commit": commit(),
            "seconds": {
                "data": seconds_data,
                "fit": seconds_before + record.fit_seconds,
                "compile": training.progress.compile_seconds if training else 0.0,
                "score": record.score_seconds,
                "all": seconds_all,
            },
            "peak_memory": peak_memory(),
            "machine": f"{platform.machine()}, {platform.system()}",
        }
    )


def _fit_and_score(job: Job, split: Split, folder: Path, report: Report) -> Record:
    dataset: Dataset = find("datasets", job.column.dataset, "DATASET")
    needs_physics = find("models", job.row.model, "MODEL").physics
    system = System.load(job.row.physics or dataset.system) if needs_physics else None
    data = protocol_data(
        split, partial(windows_of_test_part, split, job.column.test_windows), is_test=True
    )
    is_started = (folder / "position.json").exists()
    training = TrainingOptions(folder=folder, resume=is_started, report=report)
    try:
        prepared = prepare(job.row.model, system, job.settings, split.train)
        return fit_and_score(
            prepared.forecaster,
            data,
            seed=job.seed,
            training=training,
            with_baselines=False,
            units=units_of(dataset),
        )
    except DataError as error:
        raise ConfigError(
            f"{job.row.name} cannot be fitted to {job.column.name}: {error}"
        ) from error


def _seconds_before(folder: Path) -> float:
    """Duration of a training up to its interruption; 0 for a new one."""
    path = folder / "position.json"
    return float(read_json(path)["position"]["seconds"]) if path.exists() else 0.0


def make_split(job: Job, data_dir: Path | None) -> Split:
    """The split of a job's column. Protocols that draw their data take the job's seed, unless the
    column sets one.
    """
    dataset: Dataset = find("datasets", job.column.dataset, "DATASET")
    parameters = _protocol_parameters(job)
    settings = {key: _as_tuple(value) for key, value in job.column.settings.items()}
    if "seed" in parameters:
        settings.setdefault("seed", job.seed)
    if "data_dir" in parameters and data_dir is not None:
        settings["data_dir"] = data_dir
    return dataset.split(job.column.protocol, **settings)


def _protocol_parameters(job: Job) -> tuple[str, ...]:
    """The names of the settings of a job's protocol; none if there is no such protocol."""
    dataset: Dataset = find("datasets", job.column.dataset, "DATASET")
    protocol = dataset.protocols.get(job.column.protocol)
    return () if protocol is None else tuple(inspect.signature(protocol).parameters)


def _as_tuple(value: Any) -> Any:
    """Lists of TOML as tuples, which protocols take."""
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value


def depends_on_seed(job: Job) -> bool:
    """Whether another seed would change the result: the data are drawn, or the model is trained."""
    is_drawn = "seed" in _protocol_parameters(job) and "seed" not in job.column.settings
    return is_drawn or find("models", job.row.model, "MODEL").trains


def _short_description(model: AbstractFitted) -> dict[str, Any]:
    """Chosen settings and learned values of a model, as far as they are short."""
    return {key: value for key, value in model.describe().items() if len(str(value)) < 200}


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that a result depends on."""
    installed = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def commit() -> str | None:
    """The commit of a checkout of physsm, with a plus if files differ from it; else None."""
    source = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(source), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(source))
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def peak_memory() -> int | None:
    """The peak memory of this process in bytes; None where the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
