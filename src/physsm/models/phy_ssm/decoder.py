"""The decoder of a series: channels one step ahead and along a rollout, from states."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physsm.models._network.decoder import Decoder
from physsm.models._network.observations import Observations


class AbstractDecoder(eqx.Module):
    """Scaled channels of a series. States come centred: without the means of the measured ones.

    A decoder may carry the last time steps of a series, its `lags`.
    """

    @property
    @abc.abstractmethod
    def starts_well(self) -> bool:
        """Whether forecasts are good before any training."""

    @property
    @abc.abstractmethod
    def past_channels(self) -> Int[np.ndarray, " some"]:
        """Channels that are predicted from their own past, not from states alone."""

    @abc.abstractmethod
    def start(self, dtype: jnp.dtype) -> Float[Array, "lags width"]:
        """The lags before the first time step."""

    @abc.abstractmethod
    def last_lags(self, rows: Observations) -> Float[Array, "*batch lags width"]:
        """The lags after a context."""

    @abc.abstractmethod
    def update(
        self, lags: Float[Array, "lags width"], row: Observations
    ) -> Float[Array, "lags width"]:
        """The lags after one more time step."""

    @abc.abstractmethod
    def decode(self, centred: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """Channels of states alone."""

    @abc.abstractmethod
    def one_step(
        self, rows: Observations, centred: Float[Array, "before *batch d"]
    ) -> Float[Array, "before *batch channels"]:
        """Channels at each time step but the first, from predicted states and the steps before."""

    @abc.abstractmethod
    def rollout(
        self,
        lags: Float[Array, "lags width"],
        centred: Float[Array, "steps d"],
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
    ) -> Float[Array, "steps channels"]:
        """Channels along the future of one series."""


class StateDecoder(AbstractDecoder):
    """The paper's decoder: channels of the state at the same time."""

    network: Decoder

    @property
    def starts_well(self) -> bool:
        """Before training it knows nothing."""
        return False

    @property
    def past_channels(self) -> Int[np.ndarray, " some"]:
        """None."""
        return np.zeros(0, np.int64)

    def start(self, dtype: jnp.dtype) -> Float[Array, "lags width"]:
        """No lags."""
        return jnp.zeros((0, 0), dtype)

    def last_lags(self, rows: Observations) -> Float[Array, "*batch lags width"]:
        """No lags."""
        return jnp.zeros((*rows.gaps.shape[1:], 0, 0), rows.gaps.dtype)

    def update(
        self, lags: Float[Array, "lags width"], row: Observations
    ) -> Float[Array, "lags width"]:
        """No lags."""
        return lags

    def decode(self, centred: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """Channels of states."""
        return self.network(centred)

    def one_step(self, rows: Observations, centred: Array) -> Array:
        """Channels of predicted states."""
        return self.network(centred)

    def rollout(self, lags: Array, centred: Array, controls: Array, gaps: Array) -> Array:
        """Channels of predicted states."""
        return self.network(centred)
