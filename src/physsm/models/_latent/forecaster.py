"""A network as a forecaster: settings that can be trained on a table."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from jaxtyping import Array

from physsm._arguments import LARGEST_SEED, whole_number
from physsm._values import Panel
from physsm.data.split import default_split
from physsm.data.table import to_panel
from physsm.data.window import Batch, Sizes, default_sizes
from physsm.models._base import AbstractForecaster, with_columns
from physsm.models._calibration import uncalibrated
from physsm.models._latent.fitted import FittedNetwork
from physsm.models._latent.settings import NetworkConfig
from physsm.models._latent.task import make_task
from physsm.models._stored import Interface
from physsm.physics.system import System
from physsm.training.loop import Progress
from physsm.training.loop import train as run_training

F = TypeVar("F", bound=FittedNetwork)


class NetworkForecaster(AbstractForecaster, Generic[F]):
    """What all trained networks share: splitting, training, calibrating.

    A subclass builds its network for a panel, and says what is minimised and by which error the
    best parameters are chosen.
    """

    irregular: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    controls: ClassVar[bool] = True
    trains: ClassVar[bool] = True

    def __init__(self, system: System | None, config: NetworkConfig):
        self.system = system
        self.config = config
        self.control_names = () if system is None else system.controls

    @abc.abstractmethod
    def network(self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int) -> Any:
        """A network for a panel, before its training."""

    @staticmethod
    @abc.abstractmethod
    def objective(network: Any, batch: Batch, context: int, key: Array, progress: Array) -> Array:
        """What is minimised. `progress` runs from 0 to 1 over the training."""

    @staticmethod
    @abc.abstractmethod
    def error(network: Any, batch: Batch, context: int) -> Array:
        """What is lower for better parameters, on validation windows."""

    def fit(
        self,
        train: Any,
        validation: Any = None,
        *,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        report: Callable[[Progress], None] = lambda _: None,
    ) -> F:
        """Train on a table or Panel.

        Without `validation`, whole series are set aside, or the ends of a few. With a `folder`,
        checkpoints are kept there, and `resume` continues from the last one exactly. `report` is
        called after each step, for a progress bar.
        """
        whole_number(seed, "seed", 0, LARGEST_SEED)
        panel = self._panel(train)
        sizes = self.sizes(panel)
        if validation is None:
            panel, held_out = default_split(panel, seed, sizes.context + sizes.horizon)
            sizes = self.sizes(panel)
        else:
            held_out = with_columns(self._panel(validation), panel.channels, panel.control_names)
        network = self.network(panel, held_out, sizes, seed)
        task = make_task(
            network, panel, held_out, sizes, self.config, self.objective, type(self).error
        )
        place = None if folder is None else Path(folder)
        result = run_training(
            task, self.config.training, seed=seed, folder=place, resume=resume, report=report
        )
        channels = len(panel.channels)
        fitted = cast(type[F], self.Fitted)(
            self.system,
            result.params,
            Interface.of(panel),
            uncalibrated(channels),
            (1.0,) * channels,
            sizes,
            result,
        )
        return fitted.completed(panel, held_out)

    def _panel(self, data: Any) -> Panel:
        if isinstance(data, Panel):
            return data
        return to_panel(data, controls=list(self.control_names))

    def sizes(self, panel: Panel) -> Sizes:
        """Rows of training windows: settings, or shares of the median series."""
        usual = default_sizes(panel)
        return Sizes(
            self.config.context or usual.context,
            self.config.horizon or usual.horizon,
            self.config.stride or usual.stride,
        )
