"""Forecasters of encode-decode networks: settings that can be fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.data.window import Sizes
from physsm.models._encode_decode.config import PhysicsConfig
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.objective import objective, reconstruction
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._network.scales import StateScales, table_scales
from physsm.models._network.state_scales import state_scales
from physsm.models._network.training import NetworkForecaster
from physsm.models._settings import read_config
from physsm.physics.system import System


def _trained_scales(states: StateScales) -> StateScales:
    """Scales for a network that is trained from its start: sizes of unknowns per unit of time, for
    which the settings were chosen. An observation that is a function of states is decoded.
    """
    sizes = states.unknown_size * states.signal_time
    return replace(states, unknown_size=sizes, signal_time=1.0, expression=())


class TrajectoryForecaster(NetworkForecaster[FittedTrajectory]):
    """Settings of a model around an `AbstractEncodeDecode` network. Settings are given by name."""

    objective = staticmethod(objective)
    error = staticmethod(reconstruction)
    physics: ClassVar[bool] = False

    def __init__(self, *, control_names: tuple[str, ...] | None = None, **settings: Any):
        super().__init__(None, read_config(self.Config, settings, self.name), control_names)

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> TrajectoryForecaster:
        """From settings. Of the physics only the names of the controls are used."""
        return cls(control_names=() if system is None else system.controls, **settings)

    def network(
        self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int
    ) -> AbstractEncodeDecode:
        """The network for a panel, before its training."""
        table = table_scales(panel, self.config.hide > 0, physical_units=True)
        grounds = isinstance(self.config, PhysicsConfig) and self.config.ground_states
        scales = TrajectoryScales(
            table=table,
            states=_trained_scales(state_scales(self.system, table, panel, grounds)),
            span=float(sizes.context + sizes.horizon),
        )
        return cast(type[FittedTrajectory], self.Fitted).build(
            self.system, scales, self.config, seed
        )

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
        config = read_config(self.Config, settings, self.name)
        NetworkForecaster.__init__(self, system, config)

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> PhysicsForecaster:
        """From a system and settings."""
        if system is None:
            raise ConfigError(
                f"{cls.name} needs physics (--physics): a system's name or a .phys file"
            )
        return cls(system, **settings)
