"""The interface of a unit: a transition of the latent state.

A unit has three parts. `features` reads the states and controls so far and carries the states of
its S5 stack. `theta` makes the vector of unknowns from its outputs. `advance` takes the extended
state over one gap with that theta. All take one sample; states are scaled and gaps are in the
network's unit of time.
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm.models.phy_ssm.values import Drive, Features, UnitState
from physsm.nn.discretise import Discrete

FAR = 100.0  # scaled: the largest distance of a state from its mean in a rollout


class AbstractUnit(eqx.Module):
    """A transition of the latent state: what inference and rollout ask of it."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of inferred states, without lifted ones."""

    @property
    @abc.abstractmethod
    def extended_size(self) -> int:
        """The number of states, lifted ones included."""

    @property
    @abc.abstractmethod
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""

    @property
    @abc.abstractmethod
    def per_series(self) -> tuple[int, ...]:
        """The unknowns with one value for each series."""

    @property
    @abc.abstractmethod
    def text(self) -> str | None:
        """The physics, for the identity of compiled programs."""

    @property
    @abc.abstractmethod
    def holds_previous(self) -> Bool[np.ndarray, " controls"]:
        """Which controls keep their value between two time steps; others change linearly."""

    @abc.abstractmethod
    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The bounds of the states, scaled; infinite where there are none."""

    @abc.abstractmethod
    def extend(self, z: Float[Array, " n"]) -> Float[Array, " d"]:
        """The extended state of a state."""

    @abc.abstractmethod
    def centred(self, z_ext: Float[Array, "*steps d"]) -> Float[Array, "*steps d"]:
        """Extended states without the means of the measured ones."""

    @abc.abstractmethod
    def features(
        self,
        z_ext: Float[Array, "steps *batch d"],
        u: Float[Array, "steps *batch controls"],
        gaps: Float[Array, " steps *batch"],
    ) -> Features:
        """Outputs of the unit's network at all time steps from the first on."""

    @abc.abstractmethod
    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete | None:
        """The discretised S5 stack for `feature_step`: for many gaps at once, before a loop."""

    @abc.abstractmethod
    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first time step."""

    @abc.abstractmethod
    def feature_step(
        self,
        z_ext: Float[Array, " d"],
        u: Float[Array, " controls"],
        discrete: Discrete | None,
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, " features"], Float[Array, "depth states"]]:
        """`features` for one time step."""

    @abc.abstractmethod
    def theta(
        self, features: Float[Array, " features"], series_terms: Float[Array, " per_series"]
    ) -> Float[Array, " unknowns"]:
        """The unknowns in physical units, within their bounds."""

    @abc.abstractmethod
    def advance(
        self, z_ext: Float[Array, " d"], theta: Float[Array, " unknowns"], drive: Drive
    ) -> Float[Array, " d"]:
        """The extended state after a gap."""

    @abc.abstractmethod
    def observe(
        self, z_ext: Float[Array, " d"], u: Float[Array, " controls"]
    ) -> Float[Array, " channels"]:
        """Scaled channels that the physics gives; 0 for the others."""

    def start_state(self, z_ext: Array, u: Array) -> UnitState:
        """The unit before the first time step."""
        discrete = self.discrete(jnp.zeros((), self.dtype))
        features, _ = self.feature_step(z_ext, u, discrete, self.start())
        return UnitState(features, self.start())

    def theta_with_std(
        self, features: Array, series_terms: Array, covariance: Array
    ) -> tuple[Array, Array]:
        """The unknowns, and their standard deviations from the covariance of the series terms, to
        first order.
        """
        theta = self.theta(features, series_terms)
        slope = jax.jacfwd(self.theta, argnums=1)(features, series_terms)
        variance = (slope @ covariance * slope).sum(-1)
        return theta, jnp.sqrt(jnp.maximum(variance, 0))

    def clip(self, z_ext: Float[Array, " d"]) -> Float[Array, " d"]:
        """The extended state within its bounds and at most `FAR` scales from its mean.

        A model that is still wrong may diverge in a rollout; unclipped, its gradients would be
        infinite, and it could not learn from its start.
        """
        lower, upper = self.limits()
        centre = (z_ext - self.centred(z_ext))[: self.size]
        z = jnp.clip(
            z_ext[: self.size], jnp.maximum(centre - FAR, lower), jnp.minimum(centre + FAR, upper)
        )
        is_inside = jnp.all(z == z_ext[: self.size])
        return jnp.where(is_inside, z_ext, self.extend(z))
