"""Training of a network: its forecaster, the windows it is trained on, and the training task."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from jaxtyping import Array

from physsm._arguments import LARGEST_SEED, whole_number
from physsm._errors import DataError
from physsm._values import Panel
from physsm.data.parts import Parts, WindowSettings
from physsm.data.window import (
    Batch,
    Part,
    Sizes,
    Windows,
    gather,
    largest_sizes,
    shuffled_batches,
    windows,
)
from physsm.models._base import AbstractForecaster
from physsm.models._files import Interface
from physsm.models._intervals import uncalibrated
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.config import NetworkConfig
from physsm.models._network.fitted import FittedNetwork, Stage
from physsm.models._network.observations import FIRST_GAP
from physsm.physics.system import System
from physsm.training.loop import Progress, Result, Task, TrainingSettings, train_again
from physsm.training.loop import train as run_training

F = TypeVar("F", bound=FittedNetwork)

_BREAK = 1000  # median gaps: a longer one is a break in the series
_VALIDATION_BATCH = 64
_FAILED = 1.1  # share of the validation error before, from which on a second training has failed


# From a network before its training to one trained on all rows; None if that serves worse.
TrainAgain = Callable[[Any], Any | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Start:
    """The start of a training: a network, the stages that led to it, whether nothing is left to
    train, and other training settings than those of the model, if it needs some.

    `accepts` says whether a trained network, better in validation, is better by more than chance.
    `fields` are further fields of the fitted form. `refit` is a last fit of the completed model to
    all rows, training and validation; it is given these rows and a way to train on them.
    """

    network: Any
    stages: tuple[Stage, ...] = ()
    is_complete: bool = False
    training: TrainingSettings | None = None
    accepts: Callable[[Any], bool] = lambda _: True
    fields: Mapping[str, Any] = field(default_factory=dict)
    refit: Callable[[Any, Panel, TrainAgain], Any] | None = None


def network_stage(result: Result, has_start: bool) -> tuple[Stage, ...]:
    """The stage of a training whose start was validated too; none without such a start."""
    best = result.progress.best_validation
    if not has_start or best is None:
        return ()
    return (Stage(name="network", error=float(np.sqrt(best)), kept=result.progress.best_step > 0),)


def without_training(result: Result, start: Any) -> Result:
    """The result of a training that is dropped: its start."""
    return replace(result, params=start, progress=replace(result.progress, best_step=0))


def _all_rows(train: Panel | Part, validation: Any, parts: Parts) -> Panel:
    """All series that a fit was given: of a table that was split, with the rows of the gap."""
    if isinstance(train, Panel) and validation is None:
        return train
    first, second = parts.train.panel, parts.validation.panel
    return Panel.from_series([*first, *second], first.channels, first.control_names, first.layout)


def _with_all_rows(parts: Parts, panel: Panel) -> Parts:
    """Parts with training windows in all rows, validation included."""
    sizes = parts.sizes
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.stride)
    return parts._replace(train=Part(panel, chosen))


class NetworkForecaster(AbstractForecaster, Generic[F]):
    """Settings of a network that is trained.

    A subclass builds its network for a panel, and gives the objective and the error by which the
    best parameters are chosen. Its name and settings are those of its fitted form, `Fitted`.
    """

    irregular: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    controls: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    refits: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if "Fitted" in vars(cls):
            fitted = cast(type[FittedNetwork], cls.Fitted)
            cls.name, cls.Config = fitted.name, fitted.Config

    def __init__(
        self,
        system: System | None,
        config: NetworkConfig,
        control_names: tuple[str, ...] | None = None,
    ):
        self.system = system
        self.config = config
        of_system = () if system is None else system.controls
        self.control_names = of_system if control_names is None else control_names

    @property
    def window_settings(self) -> WindowSettings:
        """Sizes of the training windows."""
        config = self.config
        return WindowSettings(
            context=config.context,
            horizon=config.horizon,
            stride=config.stride,
            validation_stride=config.validation_stride,
        )

    @abc.abstractmethod
    def network(self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int) -> Any:
        """A network for a panel, before its training."""

    @staticmethod
    @abc.abstractmethod
    def objective(network: Any, batch: Batch, context: int, key: Array, progress: Array) -> Array:
        """The minimised loss. `progress` runs from 0 to 1 over the training."""

    @staticmethod
    def explain(network: Any, batch: Batch, context: int) -> str | None:
        """A sentence on where a loss that is not finite comes from; None if it is not known."""
        return None

    @staticmethod
    @abc.abstractmethod
    def error(network: Any, batch: Batch, context: int) -> Array:
        """The error on validation windows: lower for better parameters."""

    def fit(
        self,
        train: Any,
        validation: Any = None,
        *,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        report: Callable[[Progress], None] = lambda _: None,
        whole: Panel | None = None,
    ) -> F:
        """Train on a table, a Panel, or a Part with windows.

        Without `validation`, whole series are set aside, or the ends of a few. With a `folder`,
        checkpoints are written there, and `resume` continues from the last one exactly. `report` is
        called after each step, for a progress bar. `whole` is the table that both parts were cut
        from, for the last fit to all rows; by default these are the rows of both parts.
        """
        whole_number(seed, "seed", 0, LARGEST_SEED)
        train = self._panel(train)
        parts = self.parts(train, validation, seed=seed)
        check_windows(parts)
        panel = parts.train.panel
        built = self.network(panel, parts.validation.panel, parts.sizes, seed)
        start = self.start(built, parts, seed)
        network, result, stages = start.network, None, start.stages
        if not start.is_complete:
            result = run_training(
                self._task(network, parts),
                start.training or self.config.training,
                seed=seed,
                folder=None if folder is None else Path(folder),
                resume=resume,
                report=report,
            )
            if result.progress.best_step and not start.accepts(result.params):
                result = without_training(result, network)
            network, stages = result.params, (*stages, *network_stage(result, bool(stages)))
        channels = len(panel.channels)
        fitted = cast(type[F], self.Fitted)(
            system=self.system,
            network=network,
            interface=Interface.of(panel),
            calibration=uncalibrated(channels),
            noise=(1.0,) * channels,
            sizes=parts.sizes,
            training=result,
            stages=stages,
            **start.fields,
        )
        fitted = fitted.completed(parts)
        # A protocol says which windows are trained on.
        if start.refit is None or (result is not None and isinstance(train, Part)):
            return fitted
        panel = _all_rows(train, validation, parts) if whole is None else whole

        again = partial(
            self._train_again, _with_all_rows(parts, panel), start, result, seed, report
        )
        return start.refit(fitted, panel, again)

    def _train_again(
        self,
        parts: Parts,
        start: Start,
        result: Result | None,
        seed: int,
        report: Callable[[Progress], None],
        network: Any,
    ) -> Any | None:
        """A network trained on other parts for as long as it took before; None if it gets worse."""
        if result is None or not result.progress.best_step:
            return network
        task, settings = self._task(network, parts), start.training or self.config.training
        trained = train_again(task, settings, result.progress, seed=seed, report=report)
        # It has seen the validation windows: a larger error there is that of a failed training.
        limit = _FAILED * (result.progress.best_validation or np.inf)
        return trained if task.validate(trained) < limit else None

    def _task(self, network: Any, parts: Parts) -> Task:
        """The task of training a network on the windows of the parts."""
        objective, error = self.objective, type(self).error
        return make_task(network, parts, self.config, objective, error, self.explain)

    def start(self, network: Any, parts: Parts, seed: int) -> Start:
        """Where training starts: by default the network as it is built."""
        return Start(network=network)


def check_windows(parts: Parts) -> None:
    """Fail where a part has no window."""
    for name, part in (("training", parts.train), ("validation", parts.validation)):
        if not part.windows.number:
            raise DataError(
                f"no {name} series is long enough: a window needs a context of at least two time "
                f"steps and a target of {parts.sizes.horizon}, and the longest series has "
                f"{int(part.panel.lengths.max(initial=0))} time steps",
                hint="give longer series, or set a smaller horizon",
            )
        if not _has_targets(part):
            raise DataError(
                f"no {name} window has a measurement in its target: nothing tells a good model "
                "from a bad one",
                hint="give more measurements, or set a larger horizon",
            )


def _has_targets(part: Part) -> bool:
    """Whether a target has a measurement."""
    seen = np.cumsum(part.panel.observed.any(-1), axis=1)
    chosen = part.windows
    before, last = (seen[chosen.series, at - 1] for at in (chosen.boundary, chosen.stop))
    return bool((last > before).any())


def make_task(
    network: Any,
    parts: Parts,
    config: NetworkConfig,
    objective: Callable[[Any, Batch, int, Array, Array], Array],
    error: Callable[..., Array],
    explain: Callable[[Any, Batch, int], str | None] = lambda *_: None,
) -> Task:
    """The task of training a network by an objective of windows. `error`, a function of a module,
    of windows too, chooses the best parameters. `explain` is that of the forecaster.
    """
    sizes, scale = parts.sizes, network.scales.table.scale
    train, validation = scale(parts.train.panel), scale(parts.validation.panel)
    chosen = _without_breaks(train, parts.train.windows)
    size = min(config.training.batch_size, chosen.number)
    per_epoch = config.training.batches_per_epoch(-(-chosen.number // size))
    horizon = largest_sizes(chosen).horizon  # shorter than in validation if series are too short

    def batches(epoch: int, generator: np.random.Generator) -> Iterator[Batch]:
        hide = (config.hide, generator) if config.hide else None
        for part in islice(shuffled_batches(chosen, size, generator), per_epoch):
            yield gather(train, part, sizes.context, horizon, FIRST_GAP, hide)

    blocks = list(_even_blocks(parts.validation.windows, _VALIDATION_BATCH))

    def validate(network: Any) -> float:
        compiled, values = CompiledNetwork(network), []
        for block in blocks:
            batch = gather(validation, block, sizes.context, sizes.horizon, FIRST_GAP)
            values.append(float(compiled(error, batch, context=sizes.context)))
        return float(np.average(values, weights=[block.number for block in blocks]))

    def loss(params: Any, batch: Batch, key: Array, progress: Array) -> Array:
        return objective(params, batch, sizes.context, key, progress)

    return Task(
        params=network,
        loss=loss,
        batches=batches,
        batches_per_epoch=per_epoch,
        validate=validate,
        identity=f"objective {sizes.context} {network.identity}",
        start_counts=network.starts_well,
        explain=lambda params, batch: explain(params, batch, sizes.context),
    )


def _without_breaks(panel: Panel, chosen: Windows) -> Windows:
    """The windows without an enormous gap, if there are any: nothing is known across one, and the
    gradients of a single such window would outweigh all others.
    """
    gaps = np.diff(panel.times, axis=1)
    is_break = (gaps > _BREAK * panel.median_gap) & (
        np.arange(1, panel.times.shape[1]) < panel.lengths[:, None]
    )
    before = np.concatenate([np.zeros((len(panel), 1), int), is_break.cumsum(1)], axis=1)
    broken = before[chosen.series, chosen.stop - 1] > before[chosen.series, chosen.start]
    return chosen if broken.all() else chosen[~broken]


def _even_blocks(chosen: Windows, largest: int) -> Iterator[Windows]:
    count = -(-chosen.number // largest)
    for block in np.array_split(np.arange(chosen.number), count):
        yield chosen[block]
