"""Small networks and their scales for the tests."""

from typing import Any

import numpy as np

from physsm._values import Panel, Series
from physsm.models._files import Interface
from physsm.models._intervals import uncalibrated
from physsm.models._network.scales import table_scales
from physsm.models._network.state_scales import state_scales
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.forecaster import FittedPhySSM, PhySSM
from physsm.models.phy_ssm.network import Network
from physsm.physics.system import System

OSCILLATOR = "control force\nx' = v\nv' = -4*x - 0.3*v + 2*force\nobserve x, v"


def small_config(**changes: Any) -> Config:
    """Settings of a small network whose varying unknowns vary before any training."""
    return Config(**{**PhySSM.test_settings(), "unknown_gain": 0.1, **changes})


def random_panel(channels, controls=(), lengths=(30, 25, 40), seed=0, missing=0.2) -> Panel:
    rng = np.random.default_rng(seed)
    series = []
    for i, n in enumerate(lengths):
        values = rng.standard_normal((n, len(channels))).cumsum(0) * 0.3 + 1
        values[rng.random(values.shape) < missing] = np.nan
        times = np.cumsum(rng.uniform(0.05, 0.4, n))
        series.append(Series(str(i), times, values, rng.standard_normal((n, len(controls)))))
    return Panel.from_series(series, channels, controls)


def make_network(
    text: str | None, panel: Panel, seed: int = 0, *, shows_missing: bool = True, **changes: Any
) -> Network:
    """A network before its training; without a text, one without physics."""
    config = small_config(**changes)
    system = None if text is None else System.parse(text)
    table = table_scales(panel, shows_missing, config.physical_units)
    states = state_scales(system, table, panel, config.ground_states)
    return build_network(system, PhySSMScales(table=table, states=states), config, seed)


def untrained(text: str, panel: Panel, **changes: Any) -> FittedPhySSM:
    """A model as after a training of no steps."""
    model = PhySSM(System.parse(text), **{**small_panel_settings(steps=1), **changes})
    sizes = model.window_settings.sizes(panel)
    channels = len(panel.channels)
    return FittedPhySSM(
        system=model.system,
        network=model.network(panel, panel, sizes, 0),
        interface=Interface.of(panel),
        calibration=uncalibrated(channels),
        noise=(0.1,) * channels,
        sizes=sizes,
        constants_std=(0.1,) * len(System.parse(text).unknowns),
    )


def small_panel_settings(steps: int) -> dict[str, Any]:
    """Settings of a small network for panels of a few dozen time steps."""
    settings = PhySSM.test_settings()
    exact = {"correct": True, "substeps": 2}
    return {**settings, **exact, "training": {**settings["training"], "steps": steps}}
