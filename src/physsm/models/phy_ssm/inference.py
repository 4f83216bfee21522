"""Inference: latent states from the encoder's outputs and the unit's predictions.

`EncoderInference` is the paper's: the encoder's posterior is the state. `KalmanInference` (in
`kalman_inference.py`) is ours: a Kalman filter around the unit infers states and per-series
unknowns step by step.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.random import Generator

from physsm.models._network.observations import Observations
from physsm.models._network.reductions import spread_of
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.values import (
    Boundary,
    Drive,
    Encoded,
    EncodedState,
    Inferred,
    LatentState,
    UnitState,
)
from physsm.nn.gaussian import Gaussian, gaussian, sample
from physsm.nn.mlp import Dense

_DRAWS_OF_UNKNOWNS = 32


class AbstractInference(eqx.Module):
    """How latent states are inferred. `unit` is the network's transition; states are scaled."""

    noise_size: int = eqx.field(static=True)  # numbers that `disturb` takes for each step

    @abc.abstractmethod
    def start(self, unit: AbstractUnit) -> LatentState:
        """The latent state before the first time step."""

    @abc.abstractmethod
    def infer(
        self,
        unit: AbstractUnit,
        rows: Observations,
        encoded: Encoded,
        key: PRNGKeyArray | None,
    ) -> Inferred:
        """States at all time steps, and predictions one step ahead; means if there is no key."""

    @abc.abstractmethod
    def update(
        self, unit: AbstractUnit, before: Boundary, row: Observations, encoded: Encoded
    ) -> Boundary:
        """The boundary after one more time step, as `infer` would give it for all steps so far."""

    @abc.abstractmethod
    def draw(self, unit: AbstractUnit, latent: LatentState, key: PRNGKeyArray) -> LatentState:
        """The latent state with a draw from its distribution instead of the mean."""

    @abc.abstractmethod
    def disturb(self, unit: AbstractUnit, z_ext: Array, noise: Array, gap: Array) -> Array:
        """The extended state plus process noise of a gap; `noise` are standard normal draws."""

    @abc.abstractmethod
    def negative_log_likelihood(
        self,
        inferred: Inferred,
        error: Float[Array, "steps batch channels"],
        weight: Float[Array, "steps batch channels"],
    ) -> Float[Array, ""]:
        """Of channels one step ahead; `error` is prediction minus measurement."""

    @abc.abstractmethod
    def predicted_variance(
        self, inferred: Inferred, others: Float[Array, "steps batch channels"]
    ) -> Float[Array, "steps batch channels"]:
        """Variances of measurements one step ahead; `others` where inference predicts none."""

    @abc.abstractmethod
    def unknown_std(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, inferred: Inferred
    ) -> Float[Array, "steps *batch unknowns"]:
        """Standard deviations of the unknowns at each time step."""


class EncoderInference(AbstractInference):
    """The paper's inference: the encoder's posterior at each time step.

    `to_state` maps a latent linearly to the states; None: the latent is the state. `prior_head`
    maps a prediction of the unit to the distribution of the latent.
    """

    to_state: Dense | None
    prior_head: Dense

    def __init__(
        self,
        unit: AbstractUnit,
        latent: int,
        *,
        maps_latent: bool,
        for_state: Generator,
        for_prior: Generator,
    ):
        self.noise_size = latent
        self.to_state = Dense(latent, unit.size, for_state) if maps_latent else None
        self.prior_head = Dense(unit.extended_size, 2 * latent, for_prior)

    def start(self, unit: AbstractUnit) -> EncodedState:
        """A latent of zeros."""
        nothing = jnp.zeros(self.noise_size, unit.dtype)
        return EncodedState(
            posterior=gaussian(nothing, nothing),
            z_ext=unit.extend(jnp.zeros(unit.size, unit.dtype)),
            series_terms=jnp.zeros(len(unit.per_series), unit.dtype),
        )

    def infer(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, key: PRNGKeyArray | None
    ) -> Inferred:
        """Every prediction starts from the inferred state of the step before it."""
        axes = rows.gaps.ndim
        z_ext = over_axes(unit.extend, axes)(self._states(encoded.posterior, key))
        features = unit.features(z_ext, rows.controls, rows.gaps)
        theta = over_axes(unit.theta, axes)(features.steps, encoded.series_terms)
        drive = Drive(rows.controls[:-1], rows.controls[1:], rows.gaps[1:])
        predicted = over_axes(unit.advance, axes)(z_ext[:-1], theta[:-1], drive)
        last = jax.tree.map(lambda leaf: leaf[-1], encoded)
        return Inferred(
            posterior=encoded.posterior,
            z_ext=z_ext,
            theta=theta,
            theta_std=jnp.zeros_like(theta),
            predicted=predicted,
            prior=self._prior(unit, predicted),
            channel_variance=jnp.zeros_like(rows.last[1:]),
            latent=EncodedState(last.posterior, z_ext[-1], last.series_terms),
            unit=UnitState(features.last, features.carry),
        )

    def update(
        self, unit: AbstractUnit, before: Boundary, row: Observations, encoded: Encoded
    ) -> Boundary:
        """The posterior of this time step replaces the last one."""
        z_ext = unit.extend(self._states(encoded.posterior, None))
        features, carry = unit.feature_step(
            z_ext, row.controls, unit.discrete(row.gaps), before.unit.carry
        )
        latent = EncodedState(encoded.posterior, z_ext, encoded.series_terms)
        return before._replace(latent=latent, unit=UnitState(features, carry), control=row.controls)

    def draw(self, unit: AbstractUnit, latent: Any, key: PRNGKeyArray) -> EncodedState:
        """From the posterior."""
        return latent._replace(z_ext=unit.extend(self._states(latent.posterior, key)))

    def disturb(self, unit: AbstractUnit, z_ext: Array, noise: Array, gap: Array) -> Array:
        """By the spread of the prior."""
        std = self._prior(unit, z_ext).std
        shift = std * noise * jnp.where(gap > 0, 1, 0).astype(noise.dtype)
        shift = shift if self.to_state is None else self.to_state.W @ shift
        return unit.extend(z_ext[: unit.size] + shift)

    def negative_log_likelihood(self, inferred: Inferred, error: Array, weight: Array) -> Array:
        """Zero: the objective has the KL divergence instead."""
        return jnp.zeros((), error.dtype)

    def predicted_variance(self, inferred: Inferred, others: Array) -> Array:
        """`others`: this inference predicts none of its own."""
        return others

    def unknown_std(
        self, unit: AbstractUnit, rows: Observations, encoded: Encoded, inferred: Inferred
    ) -> Array:
        """Over draws of the latent."""
        keys = jr.split(jr.key(0), _DRAWS_OF_UNKNOWNS)
        return spread_of(jax.vmap(lambda key: self.infer(unit, rows, encoded, key).theta)(keys))

    def _states(self, posterior: Gaussian, key: PRNGKeyArray | None) -> Array:
        latent = posterior.mean if key is None else sample(posterior, key)
        return latent if self.to_state is None else self.to_state(latent)

    def _prior(self, unit: AbstractUnit, predicted: Float[Array, "*steps d"]) -> Gaussian:
        """The distribution of the latent that a prediction implies.

        Where the latent is the state, the prediction is its mean, and only the spread is learned;
        else both are linear in the prediction.
        """
        mean, raw = jnp.split(self.prior_head(unit.centred(predicted)), 2, axis=-1)
        if self.to_state is None:
            mean = predicted[..., : unit.size]
        return gaussian(mean, raw)


def over_axes(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """A function of one time step, mapped over a number of leading axes."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function
