"""Results in files: one for each unit, written whole, never repeated."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from physsm._errors import RunError
from physsm.benchmark.experiment import Unit
from physsm.training.checkpoint import make_folder, read_json, write_json

KEYS = (
    "table",
    "dataset",
    "protocol",
    "model",
    "seed",
    "budget",
    "ablation",
    "metrics",
    "config",
    "versions",
    "commit",
    "seconds",
    "peak_memory",
)


class Store:
    """The results of one table in a folder, `results/TABLE` by default."""

    def __init__(self, folder: Path):
        self.folder = folder

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

    def results(self) -> list[dict[str, Any]]:
        """All results, by name."""
        return [self._read(path) for path in sorted(self.folder.glob("*.json"))]

    def _read(self, path: Path) -> dict[str, Any]:
        content = read_json(path)
        if not isinstance(content, dict) or not set(KEYS) <= set(content):
            raise RunError(f"{path} is no result of a benchmark: remove it")
        return content


def digest(unit: Unit) -> str:
    """A short name of all that a unit asks for."""
    text = json.dumps(unit.model_dump(), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
