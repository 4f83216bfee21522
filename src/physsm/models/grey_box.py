"""Grey box: the equations of a system with constant unknowns, fitted by least squares.

Constants, initial states and per-series unknowns are those by which pieces of the series are
simulated best (multiple shooting, Levenberg-Marquardt); a Kalman filter with noises chosen by
forecasts infers the state at the end of a history, hidden states included. It is the network of
Phy-SSM without a network, and the stage that its fit starts from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

from physsm._errors import ConfigError, DataError
from physsm.data.parts import Parts
from physsm.models._network.training import Start
from physsm.models._settings import read_config
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.fitted import FittedStateSpace
from physsm.models.phy_ssm.forecaster import StateSpaceForecaster
from physsm.models.phy_ssm.network import Network
from physsm.physics.system import System


@final
class FittedGreyBox(FittedStateSpace):
    """A fitted grey box."""

    name: ClassVar[str] = "grey_box"


@final
class GreyBox(StateSpaceForecaster):
    """The equations of a system with constant and per-series unknowns.

    Unknowns that the text does not declare are constant, too. Settings are those of Phy-SSM.
    """

    physics: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    Fitted = FittedGreyBox

    def __init__(self, system: System, **settings: Any):
        if not isinstance(system, System):
            raise ConfigError(
                f"{system!r} is no System: read one with System.load (a name or a file) or "
                "System.parse (a text)"
            )
        fixed = {
            "unknown_network": "none",
            "linear_bypass": False,
            "grey_box": True,
            "inference": "kalman",
            "latent": None,
            "ground_states": True,
        }
        for name, value in fixed.items():
            if settings.get(name, value) != value:
                raise ConfigError(f"grey_box has {name} = {value!r}, which cannot be changed")
        super().__init__(system, read_config(Config, {**settings, **fixed}, "grey_box"))

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> GreyBox:
        """From a system and settings."""
        if system is None:
            raise ConfigError("grey_box needs physics: a system's name or a .phys file")
        return cls(system, **dict(settings))

    def start(self, network: Network, parts: Parts, seed: int) -> Start:
        """The whole fit; an error where the physics does not give every channel."""
        if not network.is_grounded:
            free = network.scales.states.free_channels
            name = network.scales.table.channels[free[0]]
            raise DataError(
                f"the channel {name} is neither a state nor an observation of the physics",
                hint=f"write observe {name} = ..., leave the channel out, or use phy_ssm, which "
                "learns a decoder",
            )
        return super().start(network, parts, seed)


MODEL = GreyBox
