"""Functions of a network on whole batches, each to be a program (see `Kept`) for every shape.

Shapes are rounded up so that few of them occur: rows with a gap of zero before a context or after a
future change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm.models._latent.rows import Observations
from physsm.models._latent.spread import spread_of
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Beliefs, Boundary, Drive, Observed, Rollout

_DRAWS_OF_UNKNOWNS = 32


def observe(network: Network, rows: Observations) -> Observed:
    """The observed parts of many series, by means, time-major."""
    return network.observe(rows, None)


def boundary_after(network: Network, rows: Observations) -> Boundary:
    """The boundary of `observe` alone: what only its other results need is not computed."""
    return network.observe(rows, None).boundary


def beliefs(network: Network, rows: Observations, own: Bool[Array, "steps series"]) -> Beliefs:
    """What the filter holds of each row of many series; `own` are rows that they really have."""
    return network.beliefs(rows, own)


def decode_states(network: Network, z: Float[Array, "series steps n"]) -> tuple[Array, Array]:
    """Extended states and scaled channels of states."""
    z_ext = jax.vmap(jax.vmap(network.unit.extend))(z)
    return z_ext, network.decode(z_ext)


def next_rows(network: Network, rows: Observations) -> Array:
    """Scaled channels of each row as predicted from those before it."""
    return network.next_rows(rows, network.observe(rows, None))


def decode(network: Network, z_ext: Float[Array, "steps series d"]) -> Array:
    """Scaled channels."""
    return network.decode(z_ext)


def roll_out(
    network: Network, boundary: Boundary, controls: Array, gaps: Array
) -> tuple[Rollout, Array]:
    """The futures of many series by means: states and unknowns, and scaled channels."""
    future = jax.vmap(network.rollout, in_axes=(0, 1, 1), out_axes=1)(boundary, controls, gaps)
    rows = jax.vmap(network.future_rows, in_axes=(0, 1, 1, 1), out_axes=1)
    return future, rows(boundary, future.z_ext, controls, gaps)


def spread_of_rollout(
    network: Network, boundary: Boundary, controls: Array, gaps: Array, samples: int
) -> Float[Array, "steps series channels"]:
    """How far scaled channels come apart over draws of the state at the boundary and of each step's
    prior.
    """
    keys = jr.split(jr.key(0), samples)

    def one_series(boundary: Boundary, controls: Array, gaps: Array) -> Array:
        def one_draw(key: Array) -> Array:
            key_start, key_steps = jr.split(key)
            future = network.rollout(network.draw(boundary, key_start), controls, gaps, key_steps)
            return network.future_rows(boundary, future.z_ext, controls, gaps)

        return spread_of(jax.vmap(one_draw)(keys))

    return jax.vmap(one_series, in_axes=(0, 1, 1), out_axes=1)(boundary, controls, gaps)


def spread_of_unknowns(network: Network, rows: Observations) -> Array:
    """Standard deviation of theta at each row over draws of the states."""
    keys = jr.split(jr.key(0), _DRAWS_OF_UNKNOWNS)
    return spread_of(jax.vmap(lambda key: network.observe(rows, key).theta)(keys))


def advance_rows(network: Network, z_ext: Array, theta: Array, drive: Drive) -> Array:
    """States a gap after (or before, if negative) given ones, all as one flat batch."""
    return jax.vmap(network.unit.advance)(z_ext, theta, drive)


def compiled_update(network: Network) -> Callable[[Boundary, Observations], Boundary]:
    """A stream after one more row. The parameters are part of the program: handing them over each
    time would take longer than the update itself.
    """
    return jax.jit(lambda boundary, row: network.update(boundary, row))


def padded_steps(array: np.ndarray, steps: int) -> np.ndarray:
    """Zeros after the last step, up to `steps`."""
    missing = steps - array.shape[0]
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
