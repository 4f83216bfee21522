"""Diagonal Gaussians, with one parametrisation of the standard deviation for all models."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

SMALLEST_STD = 1e-4


class Gaussian(NamedTuple):
    """Mean and standard deviation of independent components."""

    mean: Float[Array, "*shape"]
    std: Float[Array, "*shape"]


def gaussian(mean: Float[Array, "*shape"], raw: Float[Array, "*shape"]) -> Gaussian:
    """A Gaussian from unbounded arrays: its standard deviation is softplus(raw) plus a floor."""
    return Gaussian(mean, jax.nn.softplus(raw) + SMALLEST_STD)


def sample(distribution: Gaussian, key: PRNGKeyArray) -> Float[Array, "*shape"]:
    """A sample, differentiable in mean and standard deviation."""
    noise = jr.normal(key, distribution.mean.shape, distribution.mean.dtype)
    return distribution.mean + distribution.std * noise


def kl(q: Gaussian, p: Gaussian) -> Float[Array, "*shape"]:
    """KL(q‖p) of each component, in nats."""
    ratio = q.std / p.std
    return 0.5 * (ratio**2 + ((q.mean - p.mean) / p.std) ** 2 - 1) - jnp.log(ratio)
