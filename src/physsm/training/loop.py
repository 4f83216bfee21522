"""The training loop: from parameters, a loss and batches to the parameters that validate best.

It knows no model and no table. All random numbers follow from the seed and the number of the step
or epoch, so that a run continued from a checkpoint takes the same steps as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

from physsm._errors import TrainingError
from physsm._programs import Program, release_memory
from physsm.nn.parameter_groups import is_parameter
from physsm.training.checkpoint import make_folder
from physsm.training.optimiser import (
    OptimiserSettings,
    guarded_update,
    make_optimiser,
    start_state,
)
from physsm.training.state import (
    CurveRow,
    TrainingState,
    has_checkpoint,
    read_checkpoint,
    write_checkpoint,
)

_HOPELESS = 10  # steps in a row without a finite loss
_FEW_STEPS = 300  # of a short training, whose program is optimised less: it compiles faster


class TrainingSettings(BaseModel):
    """Length of a training, its batch size, its validations and its optimiser.

    It runs for `epochs`, or, if that is None, for about `steps` updates. The validation loss is
    computed `validations` times, evenly spaced; training ends after `early_stop` of them without
    improvement.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(default=500, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    validations: int = Field(default=20, ge=1)
    early_stop: int | None = Field(default=None, ge=1)
    optimiser: OptimiserSettings = OptimiserSettings()

    def batches_per_epoch(self, batches: int) -> int:
        """Batches in an epoch, of all that the windows make: all of them if `epochs` is set.

        Otherwise an epoch of a large table has as many steps as there are between two validations,
        so that a single epoch does not exceed `steps`.
        """
        return batches if self.epochs else min(batches, max(1, self.steps // self.validations))

    def number_of_epochs(self, batches: int) -> int:
        """Number of epochs with this many batches each."""
        return self.epochs or max(1, round(self.steps / batches))


@runtime_checkable
class Loss(Protocol):
    """The loss of a batch. `progress` runs from 0 to 1 over the training."""

    def __call__(self, params: PyTree, batch: Any, key: Array, progress: Array) -> Array:
        """The loss, a scalar."""
        ...


@dataclass(frozen=True)
class Task:
    """A training problem: parameters at the start, loss, batches and validation loss.

    `batches(epoch, generator)` yields trees of arrays that all have the same shapes. `validate`
    computes the loss of the whole validation part; lower is better. `identity` names the loss among
    all compiled programs, see `Program`. With `start_counts` the parameters at the start are
    validated too, and are returned if training finds none that are better. `explain(params, batch)`
    may say in a sentence where a loss that is not finite comes from.
    """

    params: PyTree
    loss: Loss
    batches: Callable[[int, np.random.Generator], Iterator[Any]]
    batches_per_epoch: int
    validate: Callable[[PyTree], float]
    identity: str | None = None
    start_counts: bool = False
    explain: Callable[[PyTree, Any], str | None] = lambda params, batch: None


@dataclass
class Progress:
    """Progress of a training, for progress bars and for the record of a run."""

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
    is_over: bool = False
    is_again: bool = False


@dataclass
class Result:
    """The best parameters, the learning curve with one row per validation, and the progress."""

    params: PyTree
    curve: list[CurveRow]
    progress: Progress


class Training:
    """A training run: a state, and the compiled update that a step applies to it.

    `steps` is the length of the schedule of the learning rate, by default that of the training.
    """

    def __init__(
        self,
        task: Task,
        settings: TrainingSettings,
        *,
        seed: int,
        folder: Path | None,
        report: Callable[[Progress], None],
        steps: int | None = None,
    ):
        self.task, self.settings, self.seed, self.folder = task, settings, seed, folder
        self.epochs = settings.number_of_epochs(task.batches_per_epoch)
        steps = steps or self.epochs * task.batches_per_epoch
        optimiser = make_optimiser(settings.optimiser, steps)
        params, self._rest = eqx.partition(task.params, is_parameter)
        data, static = eqx.partition(self._rest, eqx.is_array)
        self._data, data_structure = jax.tree.flatten(data)
        self.state = TrainingState(
            params=params, optimiser=start_state(optimiser, params), best=params
        )
        self._structure = jax.tree.structure((self.state.params, self.state.optimiser))

        def with_data(params: PyTree, data: list[Array]) -> PyTree:
            return eqx.combine(params, data_structure.unflatten(data), static)

        identity = f"{task.identity} {steps} {settings.optimiser!r}" if task.identity else None
        update = _make_update(task.loss, optimiser, with_data, self._structure, steps)
        self._update = Program(update, identity, quick=steps <= _FEW_STEPS)
        self.progress = Progress(steps=steps)
        self._show = report
        self._started = 0.0

    def run(self) -> Result:
        """Train from the present state to the end."""
        self._started = time.perf_counter() - self.state.position.seconds
        self._report()
        if self.task.start_counts and not self.state.position.step:
            self._record_validation([])
        while not self.is_over:
            losses = self.epoch()
            if self.is_validation_due:
                self.validate(losses)
        return self.result()

    def run_until(self, step: int) -> PyTree:
        """Train to the end of the epoch that holds a step, and return the parameters there."""
        self._started = time.perf_counter()
        while self.state.position.step < step:
            self.epoch()
        self.progress.is_over = True
        self._report()
        return eqx.combine(self.state.params, self._rest)

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or validations without improvement end the training."""
        position, early_stop = self.state.position, self.settings.early_stop
        is_stopped = early_stop is not None and position.since_best >= early_stop
        return is_stopped or position.epoch >= self.epochs

    @property
    def is_validation_due(self) -> bool:
        """Whether the last epoch is followed by a validation."""
        epoch = self.state.position.epoch
        every = max(1, self.epochs // self.settings.validations)
        return epoch % every == 0 or epoch == self.epochs

    def epoch(self) -> list[float]:
        """One pass over the batches; returns their losses."""
        position = self.state.position
        generator = np.random.default_rng([self.seed, position.epoch])
        losses = [self.step(batch) for batch in self.task.batches(position.epoch, generator)]
        position.epoch += 1
        return losses

    def step(self, batch: Any) -> float:
        """One update of the parameters; returns the loss of the batch."""
        state, position = self.state, self.state.position
        arguments = (
            jax.tree.leaves((state.params, state.optimiser)),
            self._data,
            batch,
            np.asarray(self.seed, np.uint32),
            np.asarray(position.step, np.int32),
            np.asarray(position.factor, np.float32),
        )
        if not self.progress.compile_seconds:
            self._compile(arguments)
        leaves, loss, is_taken = self._update(*arguments)
        state.params, state.optimiser = jax.tree.unflatten(self._structure, leaves)
        position.step += 1
        position.skipped += not bool(is_taken)
        position.skipped_in_a_row = 0 if is_taken else position.skipped_in_a_row + 1
        self.progress.loss = float(loss)
        self.progress.seconds = time.perf_counter() - self._started
        self._report()
        if position.skipped_in_a_row >= _HOPELESS:
            raise self._hopeless(batch)
        return self.progress.loss

    def _hopeless(self, batch: Any) -> TrainingError:
        """The error of a training without a finite loss for many steps."""
        position = self.state.position
        reason = self.task.explain(eqx.combine(self.state.params, self._rest), batch)
        return TrainingError(
            f"the training ended at step {position.step} of {self.progress.steps}: from step "
            f"{position.step - _HOPELESS + 1} on, {_HOPELESS} steps in a row had a loss or a "
            f"gradient that is not a finite number{f'. {reason}' if reason else ''}\n"
            "  set bounds on the unknowns, a shorter horizon or a smaller learning rate "
            "(training.optimiser.learning_rate), or check the scale of the data"
        )

    def validate(self, losses: list[float]) -> None:
        """Record the validation loss after an epoch with these losses, and write a checkpoint."""
        self.progress.validation = self._record_validation(losses)
        self.state.position.seconds = time.perf_counter() - self._started
        self._report()
        if self.folder is not None:
            write_checkpoint(self.folder, self.state)

    def result(self) -> Result:
        """The best parameters; an error if no step or no validation had a finite loss."""
        position = self.state.position
        self.progress.is_over = True
        self._report()
        if position.skipped == position.step and not self.task.start_counts:
            raise TrainingError(
                "no training step could be taken, because the loss was never a finite number: the "
                "solution of the equations may diverge, or their solver may need more steps; check "
                "the physics text and the scale of the data, or lower the learning rate"
            )
        if position.best is None:
            raise TrainingError(
                "training never reached a finite validation loss: lower the learning rate, or "
                "check the physics text and the scale of the data"
            )
        return Result(eqx.combine(self.state.best, self._rest), position.curve, self.progress)

    def _record_validation(self, losses: list[float]) -> float:
        validation = self.task.validate(eqx.combine(self.state.params, self._rest))
        optimiser = self.settings.optimiser
        patience = optimiser.patience if optimiser.schedule == "plateau" else None
        self.state.record_validation(validation, losses, patience)
        return validation

    def _compile(self, arguments: tuple[Any, ...]) -> None:
        began = time.perf_counter()
        self._update.prepare(*arguments)
        release_memory()
        self.progress.compile_seconds = time.perf_counter() - began

    def _report(self) -> None:
        position, progress = self.state.position, self.progress
        progress.step, progress.epoch = position.step, position.epoch
        progress.skipped = position.skipped
        progress.best_validation, progress.best_step = position.best, position.best_step
        self._show(progress)


def train(
    task: Task,
    settings: TrainingSettings,
    *,
    seed: int,
    folder: Path | None = None,
    resume: bool = False,
    report: Callable[[Progress], None] = lambda _: None,
) -> Result:
    """Train, and return the parameters with the best validation loss.

    With a `folder`, a checkpoint is written there after every validation. `resume` continues from
    it, and the result is that of an uninterrupted run to the last bit.
    """
    training = Training(task, settings, seed=seed, folder=folder, report=report)
    if folder is not None:
        make_folder(folder)
        if resume and has_checkpoint(folder):
            training.state = read_checkpoint(folder, training.state)
    return training.run()


def train_again(
    task: Task,
    settings: TrainingSettings,
    earlier: Progress,
    *,
    seed: int,
    report: Callable[[Progress], None] = lambda _: None,
) -> PyTree:
    """Train on other batches for as many steps as an earlier training needed to reach its best
    parameters, with its schedule. Nothing is validated: the last parameters are returned.
    """
    training = Training(task, settings, seed=seed, folder=None, report=report, steps=earlier.steps)
    training.progress = Progress(steps=earlier.best_step, is_again=True)
    return training.run_until(earlier.best_step)


def _make_update(
    loss: Loss,
    optimiser: optax.GradientTransformation,
    with_data: Callable[[PyTree, list[Array]], PyTree],
    structure: Any,
    steps: int,
) -> Callable[..., tuple[list[Array], Array, Array]]:
    """The function of one step. It takes and returns the leaves of parameters and optimiser state;
    it also returns the loss, and whether the step was taken. `data` are the arrays that training
    does not change; `with_data` completes the parameters with them.
    """

    def update(
        leaves: list[Array], data: list[Array], batch: Any, seed: Array, step: Array, factor: Array
    ):
        params, opt_state = jax.tree.unflatten(structure, leaves)
        key = jr.fold_in(jr.key(seed), step)
        progress = step.astype(jnp.float32) / steps

        def of_params(params: PyTree) -> Array:
            return loss(with_data(params, data), batch, key, progress)

        value, gradient = jax.value_and_grad(of_params)(params)
        params, opt_state, taken = guarded_update(
            optimiser, params, opt_state, value, gradient, factor.astype(value.dtype)
        )
        return jax.tree.leaves((params, opt_state)), value, taken

    return update
