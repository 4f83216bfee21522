"""S5 without physics: the network of Phy-SSM with a free transition, as in the paper's ablation.

The encoder infers a latent at each time step. An S5 stack over latents and controls predicts the
next latent, and a perceptron decodes it. Forecasts feed predictions back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

from physsm.models._settings import read_config
from physsm.models.phy_ssm.config import Config, Preset, preset_settings
from physsm.models.phy_ssm.fitted import FittedStateSpace
from physsm.models.phy_ssm.forecaster import StateSpaceForecaster
from physsm.physics.system import System

LATENT = 16


@final
class FittedS5(FittedStateSpace):
    """A fitted S5 model."""

    name: ClassVar[str] = "s5"


@final
class S5Forecaster(StateSpaceForecaster):
    """A latent S5 model with the settings of Phy-SSM; those of the physics have no effect."""

    physics: ClassVar[bool] = False
    Fitted = FittedS5

    def __init__(
        self,
        preset: Preset = "default",
        *,
        control_names: tuple[str, ...] | None = None,
        **settings: Any,
    ):
        own = {"latent": LATENT, "lambda": 0.0, "linear_bypass": False}
        chosen = preset_settings(preset, {**own, **settings})
        super().__init__(None, read_config(Config, chosen, self.name), control_names)

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> S5Forecaster:
        """From settings. Of the physics only the names of the controls are used."""
        return cls(control_names=() if system is None else system.controls, **dict(settings))


MODEL = S5Forecaster
