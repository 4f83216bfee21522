"""One unit of work of a table, from its data to its result.

It reads like the path of the data: split, fit, forecast, score.
"""

from __future__ import annotations

import inspect
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from physsm._errors import ConfigError, DataError
from physsm._registry import find
from physsm.benchmark.evaluate import score
from physsm.benchmark.experiment import Unit
from physsm.benchmark.story import plain
from physsm.benchmark.trial import split_trial
from physsm.datasets._dataset import Dataset, Split
from physsm.models._base import AbstractFitted
from physsm.physics.system import System
from physsm.training.checkpoint import read_json
from physsm.training.loop import Progress

_LIBRARIES = ("physsm", "jax", "jaxlib", "equinox", "diffrax", "optax", "numpy", "scoringrules")

Report = Callable[[Progress], None]


def run_unit(
    unit: Unit,
    folder: Path,
    *,
    data_dir: Path | None = None,
    report: Report = lambda _: None,
) -> dict[str, Any]:
    """The result of a unit as plain values. A training is kept in `folder` while it runs, and goes
    on from there if it was stopped.
    """
    before = _seconds_before(folder)
    began = time.perf_counter()
    split = make_split(unit, data_dir)
    loaded = time.perf_counter()
    model = _fit(unit, split, folder, report)
    fitted = time.perf_counter()
    trial = split_trial(split, unit.column.test_windows)
    metrics = score(model, trial)
    metrics.pop("model")
    ended = time.perf_counter()
    training = model.training
    return plain(
        {
            "table": unit.table,
            "dataset": unit.column.dataset,
            "protocol": unit.column.protocol,
            "model": unit.row.model,
            "label": unit.row.name,
            "seed": unit.seed,
            "budget": unit.budget,
            "ablation": unit.row.ablation,
            "metrics": metrics,
            "test_windows": len(trial.history),
            "unit_of_errors": split.unit_words,
            "notes": list(split.notes),
            "config": {"data": unit.column.settings, "model": unit.settings},
            "physics": None if model.system is None else model.system.text,
            "found": _found(model),
            "versions": versions(),
            "commit": commit(),
            "seconds": {
                "data": loaded - began,
                "fit": before + fitted - loaded,
                "compile": training.progress.compile_seconds if training else 0.0,
                "score": ended - fitted,
                "all": before + ended - began,
            },
            "peak_memory": peak_memory(),
            "machine": f"{platform.machine()}, {platform.system()}",
        }
    )


def _seconds_before(folder: Path) -> float:
    """How long a training has taken until it was stopped."""
    path = folder / "position.json"
    return float(read_json(path)["position"]["seconds"]) if path.exists() else 0.0


def make_split(unit: Unit, data_dir: Path | None) -> Split:
    """The split of a unit's column. A seed belongs to the data too, where its protocol has one."""
    dataset: Dataset = find("datasets", unit.column.dataset, "DATASET")
    protocol = dataset.protocols.get(unit.column.protocol)
    known = () if protocol is None else inspect.signature(protocol).parameters
    settings = {key: _as_tuple(value) for key, value in unit.column.settings.items()}
    if "seed" in known:
        settings.setdefault("seed", unit.seed)
    if "data_dir" in known and data_dir is not None:
        settings["data_dir"] = data_dir
    return dataset.split(unit.column.protocol, **settings)


def _as_tuple(value: Any) -> Any:
    """TOML has lists where Python's settings are tuples."""
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value


def depends_on_seed(unit: Unit) -> bool:
    """Whether another seed would change the result: of data that is drawn, or of a training."""
    dataset: Dataset = find("datasets", unit.column.dataset, "DATASET")
    protocol = dataset.protocols.get(unit.column.protocol)
    is_drawn = protocol is None or "seed" in inspect.signature(protocol).parameters
    is_drawn = is_drawn and "seed" not in unit.column.settings
    return is_drawn or find("models", unit.row.model, "MODEL").trains


def _fit(unit: Unit, split: Split, folder: Path, report: Report) -> AbstractFitted:
    forecaster_type = find("models", unit.row.model, "MODEL")
    dataset: Dataset = find("datasets", unit.column.dataset, "DATASET")
    system = System.load(unit.row.physics or dataset.system) if forecaster_type.physics else None
    forecaster = forecaster_type.create(system, unit.settings)
    how: dict[str, Any] = {"seed": unit.seed}
    if forecaster.trains:
        resume = (folder / "position.json").exists()
        how |= {"folder": folder, "resume": resume, "report": report}
    try:
        return forecaster.fit(split.train.panel, split.validation.panel, **how)
    except DataError as error:
        raise ConfigError(
            f"{unit.row.name} cannot be fitted to {unit.column.name}: {error}"
        ) from error


def _found(model: AbstractFitted) -> dict[str, Any]:
    """What a model chose or learned, where it is short enough to be read."""
    described = model.describe()
    return {key: value for key, value in described.items() if len(str(value)) < 200}


def versions() -> dict[str, str]:
    """Of Python and of the libraries that a result depends on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


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
    """The most bytes that this process has held; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
