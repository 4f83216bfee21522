"""State of a training run, and its checkpoint on disk.

A checkpoint is two files: the arrays in safetensors, and `position.json`, which names them and
holds all other values that an exact continuation needs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import PyTree

from physsm._errors import RunError
from physsm.training.checkpoint import (
    named_arrays,
    read_arrays,
    read_json,
    restore_arrays,
    write_arrays,
    write_json,
)

PLATEAU_FACTOR = 0.2
_FORMAT = 2  # of the arrays' names; those of format 1 had none
_POSITION_FILE = "position.json"

CurveRow = dict[str, float | int | None]


@dataclass
class Position:
    """Counters and validation record of a run: all of its state that is not an array.

    `since_best` and `since_lower` count validations: since the best one, and since the best one or
    the last change of `factor`, by which a plateau lowers the learning rate.
    """

    epoch: int = 0
    step: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    best: float | None = None
    best_step: int = 0
    since_best: int = 0
    since_lower: int = 0
    factor: float = 1.0
    seconds: float = 0.0
    curve: list[CurveRow] = field(default_factory=list)


@dataclass
class TrainingState:
    """Parameters, optimiser state, the best parameters so far, and the position."""

    params: PyTree
    optimiser: PyTree
    best: PyTree
    position: Position = field(default_factory=Position)

    def record_validation(
        self, validation: float, losses: list[float], patience: int | None
    ) -> None:
        """Add a validation loss to the curve, and select the parameters if it is the best.

        `losses` are the training losses of the epoch before it. After `patience` validations
        without improvement the learning rate falls; None means that it never does.
        """
        position = self.position
        position.curve.append(_curve_row(position, validation, losses))
        if np.isfinite(validation) and (position.best is None or validation < position.best):
            position.best, position.best_step = validation, position.step
            position.since_best = position.since_lower = 0
            self.best = self.params
            return
        position.since_best += 1
        position.since_lower += 1
        if patience is not None and position.since_lower >= patience:
            position.factor *= PLATEAU_FACTOR
            position.since_lower = 0

    def arrays(self) -> dict[str, PyTree]:
        """The arrays of a checkpoint."""
        return {"params": self.params, "optimiser": self.optimiser, "best": self.best}


def _curve_row(position: Position, validation: float, losses: list[float]) -> CurveRow:
    finite = [loss for loss in losses if np.isfinite(loss)]
    return {
        "step": position.step,
        "epoch": position.epoch,
        "loss": float(np.mean(finite)) if finite else None,
        "validation": validation if np.isfinite(validation) else None,
        "skipped": position.skipped,
    }


def has_checkpoint(folder: Path) -> bool:
    """Whether a folder holds a checkpoint."""
    return (folder / _POSITION_FILE).exists()


def write_checkpoint(folder: Path, state: TrainingState) -> None:
    """Write a state. The arrays come first, under a new name; then `position.json` points at them,
    so that an interruption leaves the earlier checkpoint whole.
    """
    name = f"state-{state.position.step}.safetensors"
    write_arrays(folder / name, named_arrays(state.arrays()))
    content = {"format": _FORMAT, "arrays": name, "position": asdict(state.position)}
    write_json(folder / _POSITION_FILE, content)
    for old in folder.glob("state-*.safetensors"):
        if old.name != name:
            old.unlink(missing_ok=True)


def read_checkpoint(folder: Path, like: TrainingState) -> TrainingState:
    """Read a state whose arrays have the structure, shapes and types of those of `like`."""
    path = folder / _POSITION_FILE
    content = read_json(path)
    try:
        if content["format"] != _FORMAT:
            raise KeyError("format")
        name, position = str(content["arrays"]), Position(**content["position"])
    except (TypeError, KeyError) as error:
        raise RunError(
            f"{path} is no checkpoint of this version of physsm: start the training again without "
            "resuming, or use the version that wrote it"
        ) from error
    source = folder / Path(name).name
    return TrainingState(
        **restore_arrays(like.arrays(), read_arrays(source), source), position=position
    )
