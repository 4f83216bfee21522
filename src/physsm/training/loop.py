"""The training loop: parameters, a loss and batches in; the best parameters out.

It knows nothing of models or data. Everything random follows from the seed and the number of the
step or epoch, so that a run that continues from a checkpoint takes the same steps as one that was
never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, PyTree
from pydantic import BaseModel, ConfigDict, Field

from physsm._errors import RunError
from physsm._programs import Program
from physsm.training.checkpoint import (
    make_folder,
    named_arrays,
    read_arrays,
    read_json,
    restore_arrays,
    write_arrays,
    write_json,
)
from physsm.training.memory import give_back_memory
from physsm.training.optimiser import OptimiserSettings, guarded_update, make_optimiser

PLATEAU_FACTOR = 0.2


class TrainingSettings(BaseModel):
    """How long training runs: for `epochs`, or, if that is not given, for about `steps` updates.

    The validation loss is taken `validations` times, evenly spread; `early_stop` is the number of
    them without improvement after which training ends.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(default=500, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    validations: int = Field(default=20, ge=1)
    early_stop: int | None = Field(default=None, ge=1)
    optimiser: OptimiserSettings = OptimiserSettings()

    def batches_per_epoch(self, batches: int) -> int:
        """Of so many: all where epochs were asked for. Else, on a large table, an epoch is as long
        as the time between two validations, so that it does not outlast all steps.
        """
        return batches if self.epochs else min(batches, max(1, self.steps // self.validations))

    def number_of_epochs(self, batches: int) -> int:
        """Epochs of so many batches."""
        return self.epochs or max(1, round(self.steps / batches))


@runtime_checkable
class Loss(Protocol):
    """The loss of a batch. `progress` runs from 0 to 1 over the training."""

    def __call__(self, params: PyTree, batch: Any, key: Array, progress: Array) -> Array:
        """One number."""
        ...


@dataclass(frozen=True)
class Task:
    """What is trained. `batches(epoch, generator)` yields arrays of one shape each time;
    `validate` gives the loss on the whole validation part, lower is better. `identity` tells the
    loss from all others, see `Program`. `start_counts`: the parameters are good from the start, so
    that they are kept if training finds none that are better.
    """

    params: PyTree
    loss: Loss
    batches: Callable[[int, np.random.Generator], Iterator[Any]]
    batches_per_epoch: int
    validate: Callable[[PyTree], float]
    identity: str | None = None
    start_counts: bool = False


@dataclass
class Progress:
    """Where training stands, for a progress bar and for the run's record."""

    step: int = 0
    steps: int = 0
    epoch: int = 0
    loss: float = float("nan")
    validation: float | None = None
    best_validation: float | None = None
    best_step: int = 0
    skipped: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0


@dataclass
class Result:
    """The best parameters and how they were reached. `curve` has one row per validation."""

    params: PyTree
    curve: list[dict[str, float | int | None]]
    progress: Progress


@dataclass
class _Position:
    """All that a checkpoint must hold beside arrays to continue exactly."""

    epoch: int = 0
    step: int = 0
    skipped: int = 0
    best: float | None = None
    best_step: int = 0
    since_best: int = 0
    since_lower: int = 0
    factor: float = 1.0
    seconds: float = 0.0
    curve: list[dict[str, float | int | None]] = field(default_factory=list)


def train(
    task: Task,
    settings: TrainingSettings,
    *,
    seed: int,
    folder: Path | None = None,
    resume: bool = False,
    report: Callable[[Progress], None] = lambda _: None,
) -> Result:
    """Train and return the parameters with the best validation loss.

    With a `folder`, a checkpoint is written there after every validation, and `resume` continues
    from it: the result has the same bits as that of a run without a break.
    """
    epochs = settings.number_of_epochs(task.batches_per_epoch)
    validate_every = max(1, epochs // settings.validations)
    steps = epochs * task.batches_per_epoch
    optimiser = make_optimiser(settings.optimiser, steps)
    params, static = eqx.partition(task.params, eqx.is_inexact_array)
    state = {"params": params, "optimiser": jax.jit(optimiser.init)(params), "best": params}
    position = _Position()
    if folder is not None:
        make_folder(folder)
        if resume and (folder / "position.json").exists():
            state, position = _read(folder, state)
    structure = jax.tree.structure((state["params"], state["optimiser"]))
    identity = f"{task.identity} {steps} {settings.optimiser!r}" if task.identity else None
    update = Program(_make_update(task.loss, optimiser, static, structure, steps), identity)
    progress = Progress(
        steps=steps,
        step=position.step,
        epoch=position.epoch,
        skipped=position.skipped,
        best_validation=position.best,
        best_step=position.best_step,
    )
    started = time.perf_counter() - position.seconds
    report(progress)
    if task.start_counts and not position.step:
        _note_validation(position, state, task.validate(task.params), [], settings)
        progress.best_validation = position.best
    while position.epoch < epochs and not _is_over(position, settings):
        generator = np.random.default_rng([seed, position.epoch])
        losses = []
        for batch in task.batches(position.epoch, generator):
            arguments = (
                jax.tree.leaves((state["params"], state["optimiser"])),
                batch,
                np.asarray(seed, np.uint32),
                np.asarray(position.step, np.int32),
                np.asarray(position.factor, np.float32),
            )
            if not progress.compile_seconds:
                began = time.perf_counter()
                update.prepare(*arguments)
                give_back_memory()
                progress.compile_seconds = time.perf_counter() - began
            leaves, loss, taken = update(*arguments)
            state["params"], state["optimiser"] = jax.tree.unflatten(structure, leaves)
            progress.loss = float(loss)
            losses.append(progress.loss)
            position.step += 1
            position.skipped += not bool(taken)
            progress.step, progress.skipped = position.step, position.skipped
            progress.seconds = time.perf_counter() - started
            report(progress)
        position.epoch += 1
        progress.epoch = position.epoch
        if position.epoch % validate_every == 0 or position.epoch == epochs:
            validation = task.validate(eqx.combine(state["params"], static))
            _note_validation(position, state, validation, losses, settings)
            position.seconds = time.perf_counter() - started
            progress.validation = validation
            progress.best_validation = position.best
            progress.best_step = position.best_step
            report(progress)
            if folder is not None:
                _write(folder, state, position)
    if position.skipped == position.step and not task.start_counts:
        raise RunError(
            "no training step could be taken, because the loss was never a finite number: the "
            "equations may run away from where the data are, or their solver needs more steps; "
            "look at the physics text and the scale of the data, or lower the learning rate"
        )
    if position.best is None:
        raise RunError(
            "training never reached a finite validation loss: lower the learning rate, or look at "
            "the physics text and the scale of the data"
        )
    return Result(eqx.combine(state["best"], static), position.curve, progress)


def _make_update(
    loss: Loss,
    optimiser: optax.GradientTransformation,
    static: PyTree,
    structure: Any,
    steps: int,
) -> Callable[..., tuple[list[Array], Array, Array]]:
    """One step: the leaves of parameters and optimiser in, and out again, with the loss and whether
    the step was taken.
    """

    def update(leaves: list[Array], batch: Any, seed: Array, step: Array, factor: Array):
        params, opt_state = jax.tree.unflatten(structure, leaves)
        key = jr.fold_in(jr.key(seed), step)
        progress = step.astype(jnp.float32) / steps

        def of_params(params: PyTree) -> Array:
            return loss(eqx.combine(params, static), batch, key, progress)

        value, gradient = jax.value_and_grad(of_params)(params)
        params, opt_state, taken = guarded_update(
            optimiser, params, opt_state, value, gradient, factor.astype(value.dtype)
        )
        return jax.tree.leaves((params, opt_state)), value, taken

    return update


def _note_validation(
    position: _Position,
    state: dict[str, PyTree],
    validation: float,
    losses: list[float],
    settings: TrainingSettings,
) -> None:
    finite = [loss for loss in losses if np.isfinite(loss)]
    position.curve.append(
        {
            "step": position.step,
            "epoch": position.epoch,
            "loss": float(np.mean(finite)) if finite else None,
            "validation": validation if np.isfinite(validation) else None,
            "skipped": position.skipped,
        }
    )
    if np.isfinite(validation) and (position.best is None or validation < position.best):
        position.best, position.best_step = validation, position.step
        position.since_best = position.since_lower = 0
        state["best"] = state["params"]
        return
    position.since_best += 1
    position.since_lower += 1
    is_plateau = settings.optimiser.schedule == "plateau"
    if is_plateau and position.since_lower >= settings.optimiser.patience:
        position.factor *= PLATEAU_FACTOR
        position.since_lower = 0


def _is_over(position: _Position, settings: TrainingSettings) -> bool:
    return settings.early_stop is not None and position.since_best >= settings.early_stop


def _write(folder: Path, state: dict[str, PyTree], position: _Position) -> None:
    """The arrays first, under a name of their own; then the small file that points at them."""
    name = f"state-{position.step}.safetensors"
    write_arrays(folder / name, named_arrays(state))
    write_json(folder / "position.json", {"arrays": name, "position": asdict(position)})
    for old in folder.glob("state-*.safetensors"):
        if old.name != name:
            old.unlink(missing_ok=True)


def _read(folder: Path, state: dict[str, PyTree]) -> tuple[dict[str, PyTree], _Position]:
    content = read_json(folder / "position.json")
    try:
        arrays, position = str(content["arrays"]), _Position(**content["position"])
    except (TypeError, KeyError) as error:
        raise RunError(f"{folder / 'position.json'} is no checkpoint of this version") from error
    source = folder / Path(arrays).name
    return restore_arrays(state, read_arrays(source), source), position
