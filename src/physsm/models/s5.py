"""S5 without physics: the network of Phy-SSM with a free transition, as in the paper's ablation.

The encoder infers a latent at each row, an S5 stack over latents and controls predicts the next
one, and a perceptron decodes it; forecasts feed predictions back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

from physsm.models._base import read_config
from physsm.models.phy_ssm.config import Config, preset_settings
from physsm.models.phy_ssm.fitted import FittedLatent
from physsm.models.phy_ssm.forecaster import LatentForecaster
from physsm.physics.system import System

LATENT = 16


@final
class FittedS5(FittedLatent):
    """A fitted S5 model."""

    name: ClassVar[str] = "s5"


@final
class S5Forecaster(LatentForecaster):
    """A latent S5 model with the settings of Phy-SSM, those about physics without effect."""

    name: ClassVar[str] = "s5"
    physics: ClassVar[bool] = False
    Fitted = FittedS5

    def __init__(self, preset: str = "default", **settings: Any):
        own = {"latent": LATENT, "lambda": 0.0, "direct": False}
        chosen = preset_settings(preset, {**own, **settings})  # type: ignore[arg-type]
        super().__init__(None, read_config(Config, chosen, self.name))

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> S5Forecaster:
        """From settings. Of the physics only the names of the controls are used."""
        model = cls(**dict(settings))
        model.control_names = () if system is None else system.controls
        return model


MODEL = S5Forecaster
