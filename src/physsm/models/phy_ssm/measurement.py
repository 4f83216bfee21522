"""Measurements of a time step: channels that the physics gives, linearised, and outputs of the
encoder for states that no channel measures.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._network.observations import Observations
from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.kalman import SMALLEST_VARIANCE, Measurement, Moments
from physsm.nn.gaussian import Gaussian


class Instruments(NamedTuple):
    """Variances of the channels' errors, the scales that say which channel measures what, and
    whether outputs of the encoder measure states without a channel.
    """

    error_variance: Float[Array, " channels"]
    states: StateScales
    uses_encoder: bool


def channels_with_slopes(
    unit: AbstractUnit, state: Float[Array, " q"], row: Observations
) -> tuple[Float[Array, " channels"], Float[Array, "channels q"]]:
    """Scaled channels of a state, and their slopes in states and series terms."""

    def channels(state: Array) -> tuple[Array, Array]:
        values = unit.observe(unit.extend(state[: unit.size]), row.controls)
        return values, values

    slopes, values = jax.jacfwd(channels, has_aux=True)(state)
    return values, slopes


def measurement(
    instruments: Instruments,
    unit: AbstractUnit,
    prior: Moments,
    row: Observations,
    posterior: Gaussian,
) -> Measurement:
    """Measurements of one time step: channels where they were shown; and, by the encoder, states
    that no channel measures.
    """
    values, slopes = channels_with_slopes(unit, prior.mean, row)
    grounded = instruments.states.grounded_channels
    of_channels = Measurement(
        innovation=(row.last - values)[grounded],
        slope=slopes[grounded],
        precision=(row.seen / instruments.error_variance)[grounded],
    )
    if not instruments.uses_encoder:
        return of_channels
    hidden = np.flatnonzero(instruments.states.channel_of_state < 0)
    of_states = Measurement(
        innovation=(posterior.mean - prior.mean[: unit.size])[hidden],
        slope=jnp.eye(len(prior.mean), dtype=prior.mean.dtype)[hidden],
        precision=(1 / (posterior.std**2 + SMALLEST_VARIANCE))[hidden],
    )
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), of_channels, of_states)
