"""Models that predict along a path, as forecasters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.data.window import Sizes
from physsm.models._base import read_config
from physsm.models._latent.forecaster import NetworkForecaster
from physsm.models._latent.plan import data_plan, physics_plan
from physsm.models._trajectory.config import PhysicsConfig
from physsm.models._trajectory.fitted import FittedTrajectory
from physsm.models._trajectory.network import Trajectory
from physsm.models._trajectory.objective import objective, reconstruction
from physsm.physics.system import System


class TrajectoryForecaster(NetworkForecaster[FittedTrajectory]):
    """A forecaster around a `Trajectory` network. Settings are given by name."""

    objective = staticmethod(objective)
    error = staticmethod(reconstruction)
    physics: ClassVar[bool] = False

    def __init__(self, **settings: Any):
        super().__init__(None, read_config(self.Config, settings, self.name))

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> TrajectoryForecaster:
        """From settings. Of the physics only the names of the controls are used."""
        model = cls(**settings)
        model.control_names = () if system is None else system.controls
        return model

    def network(self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int) -> Trajectory:
        """The network for a panel, before its training."""
        plan = data_plan(panel, self.config.hide > 0, physical_units=True)
        if self.system is not None:
            config = cast(PhysicsConfig, self.config)
            plan = physics_plan(plan, self.system, panel, config.ground_states)
        plan = replace(plan, span=float(sizes.context + sizes.horizon))
        return self.Fitted.build(self.system, plan, self.config, seed)  # type: ignore[attr-defined]

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Settings of a network that trains in seconds, for the contract test of all models."""
        perceptron = {"width": 8, "layers": 1}
        return {
            "context": 12,
            "horizon": 6,
            "stride": 4,
            "encoder": {"width": 8, "depth": 1},
            "encoder_perceptron": perceptron,
            "decoder_perceptron": perceptron,
            "control_perceptron": perceptron,
            "latent": 4,
            "samples": 8,
            "training": {"steps": 10, "batch_size": 8, "validations": 2},
        }


class PhysicsForecaster(TrajectoryForecaster):
    """The same for networks around known physics: `Model(system, **settings)`."""

    physics: ClassVar[bool] = True

    def __init__(self, system: System, **settings: Any):
        if not isinstance(system, System):
            raise ConfigError(
                f"{system!r} is no System: read one with System.load (a name or a file) or "
                "System.parse (a text)"
            )
        super().__init__(**settings)
        self.system = system
        self.control_names = system.controls

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> PhysicsForecaster:
        """From a system and settings."""
        if system is None:
            raise ConfigError(
                f"{cls.name} needs physics (--physics): a system's name or a .phys file"
            )
        return cls(system, **settings)
