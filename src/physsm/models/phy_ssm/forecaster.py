"""Phy-SSM as a forecaster: settings that can be fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.data.window import Sizes
from physsm.models._base import read_config
from physsm.models._latent.forecaster import NetworkForecaster
from physsm.models._latent.plan import data_plan, physics_plan
from physsm.models.phy_ssm.config import Config, Preset, preset_settings
from physsm.models.phy_ssm.fit_direct import fit_direct
from physsm.models.phy_ssm.fitted import FittedLatent
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import objective, reconstruction
from physsm.models.phy_ssm.path_inputs import PathInputs
from physsm.physics.system import System


class LatentForecaster(NetworkForecaster[FittedLatent]):
    """What Phy-SSM and the plain S5 model share: the same network, with or without physics."""

    Config = Config
    objective = staticmethod(objective)
    error = staticmethod(reconstruction)
    config: Config

    def network(self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int) -> Network:
        """The network, with a direct path as it is best without any training."""
        plan = data_plan(panel, self.config.hide > 0, self.config.physical_units)
        if self.system is not None:
            plan = physics_plan(plan, self.system, panel, self.config.ground_states)
        if not self.config.direct:
            return Network(self.system, plan, self.config, seed)
        scaled, scaled_held_out = plan.scale(panel), plan.scale(held_out)
        start = fit_direct(PathInputs.of(self.system, plan), scaled, scaled_held_out, sizes)
        if start is None:
            return Network(self.system, plan, self.config, seed)
        plan = replace(plan, offsets=start.offsets, short=start.short_offsets)
        return Network(self.system, plan, self.config, seed).with_direct_path(start)

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Settings of a network that trains in seconds, for the contract test of all models."""
        stack, perceptron = {"width": 8, "states": 8, "depth": 1}, {"width": 8, "layers": 1}
        return {
            "context": 12,
            "horizon": 6,
            "stride": 4,
            "encoder": stack,
            "unit": stack,
            "encoder_perceptron": perceptron,
            "decoder_perceptron": perceptron,
            "unknown_hidden": 8,
            "samples": 8,
            "correct": False,
            "substeps": 1,
            "training": {"steps": 10, "batch_size": 8, "validations": 2},
        }


@final
class FittedPhySSM(FittedLatent):
    """A fitted Phy-SSM."""

    name: ClassVar[str] = "phy_ssm"


@final
class PhySSM(LatentForecaster):
    """Phy-SSM: partly known equations, whose unknowns an S5 network learns from data.

    `PhySSM(system)` has the settings that serve best; `PhySSM(system, preset="paper")` those of the
    publication. Any setting of `Config` can be given by name.
    """

    name: ClassVar[str] = "phy_ssm"
    physics: ClassVar[bool] = True
    Fitted = FittedPhySSM

    def __init__(self, system: System, preset: Preset = "default", **settings: Any):
        if not isinstance(system, System):
            raise ConfigError(
                f"{system!r} is no System: read one with System.load (a name or a file) or "
                "System.parse (a text)"
            )
        if preset not in ("default", "paper"):
            raise ConfigError(f"there is no preset {preset!r}: there are default and paper")
        super().__init__(system, read_config(Config, preset_settings(preset, settings), self.name))

    @classmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> PhySSM:
        """From a system and settings, of which `preset` may be one."""
        if system is None:
            raise ConfigError("phy_ssm needs physics: a system's name or a .phys file")
        return cls(system, **dict(settings))
