"""Forecasts of a fitted network: its compiled functions of whole batches, around panels.

Shapes are rounded up so that few of them occur: time steps with a gap of zero before a context or
after a future change nothing, and the last series of a batch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from physsm._values import Panel
from physsm.data.window import whole_series
from physsm.models._network.compiled import (
    Call,
    CompiledNetwork,
    filled,
    rounded_number,
    rounded_up,
)
from physsm.models._network.observations import Observations
from physsm.models._network.reductions import spread_of
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Boundary, Inferred, Rollout


def over_series(
    compiled: CompiledNetwork, function: Callable[..., Any], panel: Panel, *more: np.ndarray
) -> Any:
    """A function of a network, of the observations of whole series, and of further arrays, whose
    second axis is that of the series. Results may have more series than the panel: the last one is
    repeated.
    """
    call = call_over_series(compiled, function, panel, *more)
    return compiled(call.function, *call.arguments)


def call_over_series(
    compiled: CompiledNetwork, function: Callable[..., Any], panel: Panel, *more: np.ndarray
) -> Call:
    """The call of `over_series`, which may be compiled before it is needed."""
    number, windows = rounded_number(len(panel)), whole_series(panel, 0)
    chosen = windows[np.minimum(np.arange(number), len(panel) - 1)]
    rows = compiled.observations(panel, chosen, batch_length(panel))
    return Call(function, (rows, *(filled(array, number, 1) for array in more)), {})


def batch_length(panel: Panel) -> int:
    """The time steps of a batch that holds whole series."""
    return rounded_up(int(panel.lengths.max()))


# Functions of a network, to be compiled.


def infer(network: Network, rows: Observations) -> Inferred:
    """Inference on many series by means, time-major."""
    return network.observe(rows, None)[0]


def unknowns_with_std(network: Network, rows: Observations) -> tuple[Array, Array]:
    """The unknowns at each time step, and their standard deviations."""
    encoded, _ = network.encoder(rows)
    inferred = network.inference.infer(network.unit, rows, encoded, None)
    return inferred.theta, network.inference.unknown_std(network.unit, rows, encoded, inferred)


def boundary_after(network: Network, rows: Observations) -> Boundary:
    """The boundary after many contexts: what only other results need is not computed."""
    return network.observe(rows, None)[1]


def one_step(network: Network, rows: Observations) -> tuple[Array, Array]:
    """Scaled channels of each time step, predicted from those before it; and the inferred states.

    Both come from one program: the fit of a grey box needs both.
    """
    inferred = network.observe(rows, None)[0]
    return network.one_step(rows, inferred), inferred.z_ext[..., : network.unit.size]


def roll_out(
    network: Network, boundary: Boundary, controls: Array, gaps: Array
) -> tuple[Rollout, Array]:
    """The futures of many series by means: states and unknowns, and scaled channels."""
    future = jax.vmap(network.rollout, in_axes=(0, 1, 1), out_axes=1)(boundary, controls, gaps)
    channels = jax.vmap(network.future_channels, in_axes=(0, 1, 1, 1), out_axes=1)
    return future, channels(boundary, future.z_ext, controls, gaps)


def spread_of_rollout(
    network: Network, boundary: Boundary, controls: Array, gaps: Array, samples: int
) -> Float[Array, "steps series channels"]:
    """Spread of scaled channels over draws of the latent state at the boundary and of each step's
    process noise.
    """
    keys = jr.split(jr.key(0), samples)

    def one_series(boundary: Boundary, controls: Array, gaps: Array) -> Array:
        def one_draw(key: Array) -> Array:
            key_start, key_steps = jr.split(key)
            future = network.rollout(network.draw(boundary, key_start), controls, gaps, key_steps)
            return network.future_channels(boundary, future.z_ext, controls, gaps)

        return spread_of(jax.vmap(one_draw)(keys))

    return jax.vmap(one_series, in_axes=(0, 1, 1), out_axes=1)(boundary, controls, gaps)
