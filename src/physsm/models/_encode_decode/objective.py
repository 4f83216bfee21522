"""What is minimised: reconstruction + beta KL + what a method adds.

The reconstruction error is the mean square over all measured cells of a channel, summed over
channels, as for Phy-SSM; it covers the context and the target. A step in which a solver did not
reach the end of its window has no finite loss: it is skipped and counted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.data.window import Batch
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.values import Trajectory, Window, as_window
from physsm.models._network.observations import is_step
from physsm.models._network.reductions import mean_square, ramp

_FIRST_SHARE = 0.1  # of a window: what counts at the beginning of a curriculum


class Followed(NamedTuple):
    """A batch of windows followed: unweighted terms, and the path."""

    reconstruction: Float[Array, ""]
    kl: Float[Array, ""]
    penalty: Float[Array, ""]
    trajectory: Trajectory


def follow(
    network: AbstractEncodeDecode,
    batch: Batch,
    context: int,
    key: PRNGKeyArray | None,
    reach: Array | float = 1.0,
) -> Followed:
    """All terms for a batch; means instead of draws if there is no key. `reach` is the share of
    each window that counts, from its start.
    """
    window = _as_far_as(as_window(batch, context, network.dtype), reach)
    inferred = network.infer(window.rows)
    starts = network.starts(inferred, key)
    trajectory = network.trajectories(starts, window.timeline.times, window.timeline)
    predicted = network.decode(trajectory.z, window.timeline.controls)
    return Followed(
        mean_square(predicted - window.values, window.weight),
        network.divergence(window, inferred, trajectory),
        network.penalty(window, inferred, starts, trajectory, key),
        trajectory,
    )


def objective(
    network: AbstractEncodeDecode, batch: Batch, context: int, key: PRNGKeyArray, progress: Array
) -> Float[Array, ""]:
    """The weighted sum."""
    share = _FIRST_SHARE + (1 - _FIRST_SHARE) * ramp(progress, network.config.curriculum)
    found = follow(network, batch, context, key, share)
    beta = network.beta(progress).astype(found.kl.dtype)
    total = found.reconstruction + beta * found.kl + found.penalty
    return jnp.asarray(jnp.where(found.trajectory.is_reached.all(), total, jnp.nan))


def reconstruction(network: AbstractEncodeDecode, batch: Batch, context: int) -> Float[Array, ""]:
    """The error by which the best parameters are chosen: of the target alone, which is what a
    forecast is for.
    """
    window = as_window(batch, context, network.dtype)
    starts = network.starts(network.infer(window.rows), None)
    trajectory = network.trajectories(starts, window.timeline.times, window.timeline)
    error = network.decode(trajectory.z, window.timeline.controls) - window.values
    return mean_square(error[context:], window.weight[context:])


def _as_far_as(window: Window, reach: Array | float) -> Window:
    """The window with weights of zero after a share of its rows, those before it not counted."""
    dtype = window.weight.dtype
    before = (1 - is_step(window.rows)).sum(0)
    rows = jnp.arange(len(window.weight), dtype=dtype)[:, None] - before[None]
    counted = rows <= jnp.asarray(reach, dtype) * (len(window.weight) - before)[None]
    return window._replace(weight=window.weight * counted[..., None].astype(dtype))
