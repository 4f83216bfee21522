"""Phy-SSM as a forecaster: settings that can be fitted to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, final

import equinox as eqx

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.data.window import Sizes
from physsm.models._network.scales import table_scales
from physsm.models._network.state_scales import state_scales
from physsm.models._network.training import NetworkForecaster, Start
from physsm.models._settings import read_config
from physsm.models.phy_ssm.all_rows import (
    box_with_all_rows,
    fitted_to_all_rows,
    is_trained_again,
    trained_on_all_rows,
)
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import (
    BypassInputs,
    BypassShape,
    PhySSMScales,
    function_scales,
)
from physsm.models.phy_ssm.config import Config, Preset, preset_settings
from physsm.models.phy_ssm.fit_linear_bypass import fit_linear_bypass, with_weights
from physsm.models.phy_ssm.fitted import FittedStateSpace
from physsm.models.phy_ssm.grey_box.candidates import Judge
from physsm.models.phy_ssm.grey_box.fit import constants_std, fit_grey_box, with_arrays_of
from physsm.models.phy_ssm.linear_bypass import LinearBypass
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.not_finite import explain_not_finite
from physsm.models.phy_ssm.objective import horizon_error, objective
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.models.phy_ssm.unknown_network import ConstantUnknowns
from physsm.physics.system import System
from physsm.training.loop import TrainingSettings


class StateSpaceForecaster(NetworkForecaster[FittedStateSpace]):
    """Settings of Phy-SSM and of the plain S5 model: the same network, with or without physics."""

    objective = staticmethod(objective)
    error = staticmethod(horizon_error)
    explain = staticmethod(explain_not_finite)
    config: Config

    def network(self, panel: Panel, held_out: Panel, sizes: Sizes, seed: int) -> Network:
        """The network before its training, with a linear bypass that is fitted by itself."""
        config, system = self.config, self.system
        table = table_scales(panel, config.hide > 0, config.physical_units)
        states = state_scales(system, table, panel, config.ground_states)
        scales = PhySSMScales(table=table, states=states)
        if not config.linear_bypass:
            return build_network(system, scales, config, seed)
        scales = replace(scales, bypass=function_scales(system, table, panel))
        inputs = BypassInputs.of(system, scales)
        parts = table.scale(panel), table.scale(held_out)
        bypass = fit_linear_bypass(inputs, states, *parts, sizes)
        if bypass is None:
            return build_network(system, replace(scales, bypass=BypassShape()), config, seed)
        network = build_network(system, replace(scales, bypass=bypass.shape), config, seed)
        assert isinstance(network.decoder, LinearBypass)
        fitted = with_weights(network.decoder, bypass)
        return eqx.tree_at(lambda network: network.decoder, network, fitted)

    def start(self, network: Network, parts: Parts, seed: int) -> Start:
        """The grey box of the same physics, where the physics gives every channel."""
        config, system = self.config, self.system
        if system is None or not (config.grey_box and network.is_grounded):
            again = partial(trained_on_all_rows, network, None)
            return Start(network=network, refit=again if is_trained_again(config, parts) else None)
        box = fit_grey_box(system, network.scales, config, parts, seed)
        of_box = box.network.config
        choices = {
            "control_hold": of_box.control_hold,
            "substeps": of_box.substeps,
            "likelihood": box.likelihood,
        }
        chosen = config.model_copy(update=choices)
        full = with_arrays_of(build_network(system, box.network.scales, chosen, seed), box.network)
        assert isinstance(full.unit, PhysicsUnit)
        with_box = partial(box_with_all_rows, box, parts, seed)
        if not isinstance(full.unit.network, ConstantUnknowns):
            again = partial(trained_on_all_rows, full, with_box)
            return Start(
                network=full,
                stages=box.stages,
                training=_gentle(config.training),
                accepts=lambda trained: Judge(full, parts).prefers(trained, full),
                refit=again if is_trained_again(config, parts) else None,
            )
        return Start(
            network=full,
            stages=box.stages,
            is_complete=True,
            fields={"constants_std": constants_std(full, box.fit)},
            refit=partial(fitted_to_all_rows, with_box) if config.refit else None,
        )

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


def _gentle(training: TrainingSettings) -> TrainingSettings:
    """Settings that do not move constants away from a grey box with the first steps."""
    optimiser = training.optimiser
    if "constants_speed" in optimiser.model_fields_set:
        return training
    slow = optimiser.model_copy(update={"constants_speed": 1.0})
    return training.model_copy(update={"optimiser": slow})


@final
class FittedPhySSM(FittedStateSpace):
    """A fitted Phy-SSM."""

    name: ClassVar[str] = "phy_ssm"


@final
class PhySSM(StateSpaceForecaster):
    """Phy-SSM: partly known equations, whose unknowns an S5 network learns from data.

    `PhySSM(system)` has the settings that serve best; `PhySSM(system, preset="paper")` those of the
    publication. Any setting of `Config` can be given by name.
    """

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
