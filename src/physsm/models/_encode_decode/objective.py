"""Training objective: reconstruction error + beta * KL divergence + penalty of the method.

The reconstruction error is the mean square over all measurements of a channel, summed over
channels, as for Phy-SSM. It covers the context and the target. Where a solver does not reach the
end of a window, the loss is not finite: the training loop skips and counts such steps.
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

_FIRST_SHARE = 0.1  # of a window: the weighted part at the beginning of the curriculum


class ObjectiveTerms(NamedTuple):
    """Unweighted terms of the objective for a batch of windows, and the trajectories."""

    reconstruction: Float[Array, ""]
    kl: Float[Array, ""]
    penalty: Float[Array, ""]
    trajectory: Trajectory


def objective_terms(
    network: AbstractEncodeDecode,
    batch: Batch,
    context: int,
    key: PRNGKeyArray | None,
    share: Array | float = 1.0,
) -> ObjectiveTerms:
    """All terms for a batch; means instead of draws if there is no key.

    `share` is the weighted part of each window, from its start.
    """
    window = _as_far_as(as_window(batch, context, network.dtype), share)
    inferred = network.infer(window.rows)
    starts = network.starts(inferred, key)
    trajectory = network.trajectories(starts, window.timeline.times, window.timeline)
    predicted = network.decode(trajectory.z, window.timeline.controls)
    return ObjectiveTerms(
        reconstruction=mean_square(predicted - window.values, window.weight),
        kl=network.divergence(window, inferred, trajectory),
        penalty=network.penalty(window, inferred, starts, trajectory, key),
        trajectory=trajectory,
    )


def objective(
    network: AbstractEncodeDecode, batch: Batch, context: int, key: PRNGKeyArray, progress: Array
) -> Float[Array, ""]:
    """The weighted sum of the terms; NaN if a solver did not reach the end."""
    share = _FIRST_SHARE + (1 - _FIRST_SHARE) * ramp(progress, network.config.curriculum)
    terms = objective_terms(network, batch, context, key, share)
    beta = network.beta(progress).astype(terms.kl.dtype)
    total = terms.reconstruction + beta * terms.kl + terms.penalty
    return jnp.asarray(jnp.where(terms.trajectory.is_reached.all(), total, jnp.nan))


def reconstruction(network: AbstractEncodeDecode, batch: Batch, context: int) -> Float[Array, ""]:
    """The validation error, by which the best parameters are chosen: that of the target alone,
    because a forecast is of the target.
    """
    window = as_window(batch, context, network.dtype)
    starts = network.starts(network.infer(window.rows), None)
    trajectory = network.trajectories(starts, window.timeline.times, window.timeline)
    error = network.decode(trajectory.z, window.timeline.controls) - window.values
    return mean_square(error[context:], window.weight[context:])


def _as_far_as(window: Window, share: Array | float) -> Window:
    """The window with weights of zero after a share of its time steps; padding does not count."""
    dtype = window.weight.dtype
    before = (1 - is_step(window.rows)).sum(0)
    steps = jnp.arange(len(window.weight), dtype=dtype)[:, None] - before[None]
    counted = steps <= jnp.asarray(share, dtype) * (len(window.weight) - before)[None]
    return window._replace(weight=window.weight * counted[..., None].astype(dtype))
