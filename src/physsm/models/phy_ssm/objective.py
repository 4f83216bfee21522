"""What is minimised: reconstruction + beta KL + lambda times the physics state regulariser, and,
where a filter infers the states, the surprise at what was measured.

Reductions, on which beta and lambda depend: the reconstruction error is the mean square over all
measured cells of a channel, summed over channels; the KL divergence and the regulariser are means
over rows and dimensions. Predictions are one step ahead in the context and the rollout after it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.data.window import Batch
from physsm.models._latent.objective import mean_square, ramp
from physsm.models._latent.rows import Observations, in_precision
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Observed
from physsm.nn.gaussian import kl


class Losses(NamedTuple):
    """The terms, unweighted; `surprise` is zero without a filter."""

    reconstruction: Float[Array, ""]
    kl: Float[Array, ""]
    regulariser: Float[Array, ""]
    surprise: Float[Array, ""]


def predict(
    network: Network, batch: Batch, context: int, key: PRNGKeyArray | None
) -> tuple[Observed, Float[Array, "predicted batch channels"]]:
    """The observed part of each series and all predicted rows, 1 to the last, decoded."""
    rows = in_precision(batch, network.dtype)
    shown = Observations(rows.last, rows.seen, rows.controls, rows.gaps)
    past = jax.tree.map(lambda leaf: leaf[:context], shown)
    observed = network.observe(past, key)
    future = jax.vmap(network.rollout, in_axes=(0, 1, 1), out_axes=1)(
        observed.boundary, rows.controls[context:], rows.gaps[context:]
    )
    ahead = jax.vmap(network.future_rows, in_axes=(0, 1, 1, 1), out_axes=1)(
        observed.boundary, future.z_ext, rows.controls[context:], rows.gaps[context:]
    )
    return observed, jnp.concatenate([network.next_rows(past, observed), ahead])


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
    observed, predicted = predict(network, batch, context, key)
    rows = in_precision(batch, network.dtype)
    weight = rows.observed[1:] * rows.valid[:-1, :, None]
    ahead = jnp.arange(2 - context, len(weight) + 2 - context, dtype=weight.dtype)
    counted = ahead <= jnp.ceil(jnp.asarray(reach, weight.dtype) * ahead[-1])
    weight = weight * counted[:, None, None].astype(weight.dtype)
    error = predicted - rows.values[1:]
    reconstruction = mean_square(error, weight)
    pairs = rows.valid[: context - 1] * rows.valid[1:context]
    later = jax.tree.map(lambda leaf: leaf[1:], observed.posterior)
    divergence = kl(later, observed.prior)
    surprise = jnp.zeros_like(reconstruction)
    if network.filter is not None:
        before = context - 1
        surprise = network.filter.surprise(observed.prior, error[:before], weight[:before])
    return Losses(
        reconstruction,
        _row_mean(divergence.mean(-1), pairs),
        _row_mean(_distance(network, observed.z_ext[1:], observed.predicted), pairs),
        surprise,
    )


def reconstruction(network: Network, batch: Batch, context: int) -> Float[Array, ""]:
    """The error by which the best parameters are chosen."""
    return losses(network, batch, context, None).reconstruction


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
        + config.surprise * terms.surprise
    )


def _distance(network: Network, inferred: Array, predicted: Array) -> Array:
    """The distance of inferred and predicted extended states, per row."""
    difference = inferred - predicted
    if network.config.regulariser == "chebyshev":
        return jnp.abs(difference).max(-1)
    if network.config.regulariser == "cosine":
        product = (inferred * predicted).sum(-1)
        sizes = jnp.sqrt((inferred**2).sum(-1) * (predicted**2).sum(-1) + 1e-12)
        return 1 - product / sizes
    return (difference**2).mean(-1)


def _row_mean(values: Array, weight: Array) -> Array:
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1)
