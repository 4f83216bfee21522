"""Phy-SSM as a forecaster: settings that can be fitted to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast, final

from physsm._arguments import LARGEST_SEED, whole_number
from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.data.split import default_split
from physsm.data.table import to_panel
from physsm.data.window import (
    Sizes,
    default_sizes,
)
from physsm.models._base import (
    AbstractForecaster,
    read_config,
    with_columns,
)
from physsm.models._calibration import uncalibrated
from physsm.models._stored import Interface
from physsm.models.phy_ssm.config import Config, Preset, preset_settings
from physsm.models.phy_ssm.fit_direct import fit_direct
from physsm.models.phy_ssm.fitted import FittedLatent
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.path_inputs import PathInputs
from physsm.models.phy_ssm.plan import data_plan, physics_plan
from physsm.models.phy_ssm.task import make_task
from physsm.physics.system import System
from physsm.training.loop import Progress
from physsm.training.loop import train as run_training


class LatentForecaster(AbstractForecaster):
    """What Phy-SSM and the plain S5 model share: the same network, with or without physics."""

    irregular: ClassVar[bool] = True
    missing: ClassVar[bool] = True
    controls: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    Config = Config

    def __init__(self, system: System | None, config: Config):
        self.system = system
        self.config = config
        self.control_names = () if system is None else system.controls

    def fit(
        self,
        train: Any,
        validation: Any = None,
        *,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        report: Callable[[Progress], None] = lambda _: None,
    ) -> FittedLatent:
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
        plan = data_plan(panel, self.config.hide > 0, self.config.physical_units)
        if self.system is not None:
            plan = physics_plan(plan, self.system, panel, self.config.ground_states)
        scaled, scaled_held_out = plan.scale(panel), plan.scale(held_out)
        start = None
        if self.config.direct:
            start = fit_direct(PathInputs.of(self.system, plan), scaled, scaled_held_out, sizes)
        if start is not None:
            plan = replace(plan, offsets=start.offsets, short=start.short_offsets)
        network = Network(self.system, plan, self.config, seed)
        if start is not None:
            network = network.with_direct_path(start)
        task = make_task(network, scaled, scaled_held_out, sizes, self.config)
        place = None if folder is None else Path(folder)
        result = run_training(
            task, self.config.training, seed=seed, folder=place, resume=resume, report=report
        )
        kind = cast(type[FittedLatent], self.Fitted)
        fitted = kind(
            self.system,
            result.params,
            Interface.of(panel),
            uncalibrated(len(panel.channels)),
            (1.0,) * len(panel.channels),
            sizes,
            result,
        )
        return fitted.calibrated(held_out).with_certainty(panel)

    def _panel(self, data: Any) -> Panel:
        if isinstance(data, Panel):
            return data
        return to_panel(data, controls=list(self.control_names))

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

    def sizes(self, panel: Panel) -> Sizes:
        """Rows of training windows: settings, or shares of the median series."""
        usual = default_sizes(panel)
        return Sizes(
            self.config.context or usual.context,
            self.config.horizon or usual.horizon,
            self.config.stride or usual.stride,
        )


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
