"""Parameter counts of models for the columns of a data set, without its series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np

from physsm._arguments import merged
from physsm._registry import find
from physsm._values import Panel, Series
from physsm.benchmark.configurations import configuration, read_configuration
from physsm.benchmark.experiment import Row
from physsm.data.window import Sizes
from physsm.models._network.training import NetworkForecaster
from physsm.nn.parameter_groups import is_parameter
from physsm.physics.system import System


def row_parameters(row: Row) -> int | None:
    """The parameter count of a row's model; None without a named configuration."""
    if row.configuration is None:
        return None
    named = read_configuration(row.configuration)
    system = System.load(row.physics or named.physics)
    settings = merged(configuration(row.configuration, row.model), row.settings)
    return number_of_parameters(row.model, settings, system, named.channels)


def number_of_parameters(
    model: str, settings: Mapping[str, Any], system: System, channels: int
) -> int | None:
    """The parameter count of a network for so many channels and the controls of a system; None for
    models that are no networks.
    """
    kind = find("models", model, "MODEL")
    if not issubclass(kind, NetworkForecaster):
        return None
    forecaster = cast(NetworkForecaster[Any], kind.create(system, settings))
    names = [f"channel_{i}" for i in range(channels)]
    rng, rows = np.random.default_rng(0), 8
    series = [
        Series(
            str(i),
            np.arange(rows) + 1.0,
            rng.standard_normal((rows, channels)),
            rng.standard_normal((rows, len(system.controls))),
        )
        for i in range(2)
    ]
    panel = Panel.from_series(series, names, system.controls)
    network = forecaster.network(panel, panel, Sizes(4, 2, 1), 0)
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, is_parameter)))
