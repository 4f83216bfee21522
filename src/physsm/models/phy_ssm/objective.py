"""The objective: reconstruction + beta KL + lambda times the physics state regulariser, and the
negative log likelihood of measured states where a filter infers them.

Reductions, on which beta and lambda depend: the reconstruction error is the mean square over all
measured cells of a channel, summed over channels; the KL divergence and the regulariser are means
over time steps and dimensions. Predictions are one step ahead in the context, and the rollout after
it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.data.window import Batch
from physsm.models._network.observations import in_precision, observations
from physsm.models._network.reductions import mean_square, ramp
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Inferred
from physsm.nn.gaussian import kl


class Losses(NamedTuple):
    """The terms, unweighted; `likelihood` is zero without a filter."""

    reconstruction: Float[Array, ""]
    kl: Float[Array, ""]
    regulariser: Float[Array, ""]
    likelihood: Float[Array, ""]


def predict(
    network: Network, batch: Batch, context: int, key: PRNGKeyArray | None
) -> tuple[Inferred, Float[Array, "predicted batch channels"]]:
    """Inference on each context, and scaled channels of all time steps but the first."""
    rows = observations(in_precision(batch, network.dtype))
    past, ahead = (
        jax.tree.map(lambda leaf, part=part: leaf[part], rows)
        for part in (slice(None, context), slice(context, None))
    )
    inferred, boundary = network.observe(past, key)
    future = jax.vmap(network.rollout, in_axes=(0, 1, 1), out_axes=1)(
        boundary, ahead.controls, ahead.gaps
    )
    channels = jax.vmap(network.future_channels, in_axes=(0, 1, 1, 1), out_axes=1)(
        boundary, future.z_ext, ahead.controls, ahead.gaps
    )
    return inferred, jnp.concatenate([network.one_step(past, inferred), channels])


def losses(
    network: Network,
    batch: Batch,
    context: int,
    key: PRNGKeyArray | None,
    reach: Float[Array, ""] | float = 1.0,
) -> Losses:
    """All terms for one batch; means instead of draws if there is no key.

    `reach` is the share of the target that counts, from its start.
    """
    inferred, predicted = predict(network, batch, context, key)
    rows = in_precision(batch, network.dtype)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    ahead = jnp.arange(2 - context, len(weight) + 2 - context, dtype=weight.dtype)
    counted = ahead <= jnp.ceil(jnp.asarray(reach, weight.dtype) * ahead[-1])
    weight = weight * counted[:, None, None].astype(weight.dtype)
    error = predicted - rows.values[1:]
    pairs = rows.valid[: context - 1] * rows.valid[1:context]
    later = jax.tree.map(lambda leaf: leaf[1:], inferred.posterior)
    divergence = kl(later, inferred.prior)
    before = context - 1
    return Losses(
        reconstruction=mean_square(error, weight),
        kl=_step_mean(divergence.mean(-1), pairs),
        regulariser=_step_mean(_distance(network, inferred.z_ext[1:], inferred.predicted), pairs),
        likelihood=network.inference.negative_log_likelihood(
            inferred, error[:before], weight[:before]
        ),
    )


def horizon_error(network: Network, batch: Batch, context: int) -> Float[Array, ""]:
    """The error over the target of validation windows, by which the best parameters are chosen."""
    return error_and_likelihood(network, batch, context)[:, 0].mean()


def error_and_likelihood(network: Network, batch: Batch, context: int) -> Float[Array, "batch 2"]:
    """Mean square error over the target, summed over channels, and the negative log likelihood one
    step ahead in the context, of each window.
    """
    inferred, predicted = predict(network, batch, context, None)
    rows = in_precision(batch, network.dtype)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    error, before = predicted - rows.values[1:], context - 1

    def of_window(inferred: Inferred, error: Array, weight: Array) -> Array:
        one = jax.tree.map(lambda leaf: leaf[:, None], (error, weight))
        target = mean_square(one[0][before:], one[1][before:])
        likelihood = network.inference.negative_log_likelihood(
            inferred, one[0][:before], one[1][:before]
        )
        return jnp.stack([target, likelihood])

    variance = inferred.channel_variance[:, :, None]
    each = jax.vmap(
        lambda variance, error, weight: of_window(
            inferred._replace(channel_variance=variance), error, weight
        ),
        in_axes=(1, 1, 1),
    )
    return each(variance, error, weight)


def objective(
    network: Network, batch: Batch, context: int, key: PRNGKeyArray, progress: Array
) -> Float[Array, ""]:
    """The weighted sum; beta grows from zero over the first `anneal` of the training."""
    config = network.config
    terms = losses(network, batch, context, key, ramp(progress, config.curriculum))
    beta = config.beta * ramp(progress, config.anneal).astype(terms.kl.dtype)
    return (
        terms.reconstruction
        + beta * terms.kl
        + config.lambda_ * terms.regulariser
        + config.likelihood * terms.likelihood
    )


def _distance(network: Network, inferred: Array, predicted: Array) -> Array:
    """The distance of inferred and predicted extended states at each time step."""
    difference = inferred - predicted
    if network.config.regulariser == "chebyshev":
        return jnp.abs(difference).max(-1)
    if network.config.regulariser == "cosine":
        product = (inferred * predicted).sum(-1)
        sizes = jnp.sqrt((inferred**2).sum(-1) * (predicted**2).sum(-1) + 1e-12)
        return 1 - product / sizes
    return (difference**2).mean(-1)


def _step_mean(values: Array, weight: Array) -> Array:
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1)
