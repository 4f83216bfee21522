"""The sequential encoder: a perceptron at each time step, then an S5 stack over all steps."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._network.observations import Observations
from physsm.models._network.scales import Scales, StateScales
from physsm.models.phy_ssm.config import Config, make_stack
from physsm.models.phy_ssm.values import Encoded
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.layers import on_last_axis
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack

_CERTAIN, _VAGUE = -2.0, 1.0  # raw standard deviations before training: 0.13 and 1.3
_SMALL = 0.01  # gain of a head that only corrects measurements


@dataclass(frozen=True)
class Readout:
    """How outputs of the head become a latent: `correction` times the output, added to the measured
    states (if `adds_measured`), with raw standard deviations around `std_start`.
    """

    correction: tuple[float, ...]
    std_start: tuple[float, ...]
    adds_measured: bool
    gain: float = 1.0

    @property
    def size(self) -> int:
        """The size of the latent."""
        return len(self.correction)


def free_latent(size: int) -> Readout:
    """A latent that the encoder infers freely, as in the paper."""
    return Readout((1.0,) * size, (_CERTAIN,) * size, adds_measured=False)


def corrected_states(states: StateScales) -> Readout:
    """The states: measured ones start as last seen, others in the middle of their scale."""
    size = len(states.state_scale)
    return Readout((1.0,) * size, (_CERTAIN,) * size, adds_measured=True)


def measurements_of_states(states: StateScales) -> Readout:
    """Measurements of the states for a filter, at first vague for states that no channel measures.

    The filter weighs measured states itself. If the encoder moved them too, the move and a wrong
    constant could compensate each other, and the constant would stay where training began.
    """
    is_measured = states.channel_of_state >= 0
    return Readout(
        correction=tuple(0.0 if measured else 1.0 for measured in is_measured),
        std_start=tuple(_CERTAIN if measured else _VAGUE for measured in is_measured),
        adds_measured=True,
        gain=_SMALL,
    )


class AbstractEncoder(eqx.Module):
    """An encoder infers the latent at each time step from the observations up to it."""

    scales: Scales

    @property
    @abc.abstractmethod
    def latent(self) -> int:
        """The size of the latent."""

    @abc.abstractmethod
    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """The recurrent state before the first time step."""

    @abc.abstractmethod
    def __call__(self, rows: Observations) -> tuple[Encoded, Float[Array, "*batch depth states"]]:
        """Latents at all time steps from the first on, and the recurrent state after them."""

    @abc.abstractmethod
    def step(
        self, row: Observations, states: Float[Array, "depth states"]
    ) -> tuple[Encoded, Float[Array, "depth states"]]:
        """The same for one time step."""

    def measured_states(self, last: Float[Array, "*steps channels"]) -> Float[Array, "*steps n"]:
        """Measured states as last seen; the others in the middle of their scale."""
        states = self.scales.states
        place = states.channel_of_state
        shown = last[..., place.clip(0)] * on_last_axis(place >= 0, last)
        return shown + on_last_axis(states.state_offset, last)


class MeasuredStates(AbstractEncoder):
    """The encoder where the physics gives every channel: it has no network. The filter estimates
    the errors of the measurements, and infers states that no channel measures.
    """

    @property
    def latent(self) -> int:
        """The number of states."""
        return len(self.scales.states.state_scale)

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """No recurrent state."""
        return jnp.zeros((0, 0), dtype)

    def __call__(self, rows: Observations) -> tuple[Encoded, Float[Array, "*batch depth states"]]:
        """The states as last seen."""
        nothing = jnp.zeros((*rows.gaps.shape[1:], 0, 0), rows.gaps.dtype)
        return self._encoded(rows), nothing

    def step(
        self, row: Observations, states: Float[Array, "depth states"]
    ) -> tuple[Encoded, Float[Array, "depth states"]]:
        """The same for one time step."""
        return self._encoded(row), states

    def _encoded(self, rows: Observations) -> Encoded:
        mean = self.measured_states(rows.last)
        return Encoded(Gaussian(mean, jnp.ones_like(mean)), mean[..., :0])


class SequentialEncoder(AbstractEncoder):
    """Perceptron, S5 stack, and heads of the latent and of the per-series unknowns."""

    perceptron: MLP
    stack: S5Stack
    posterior_head: Dense
    series_head: Dense | None
    readout: Readout = eqx.field(static=True)
    reads_controls: bool = eqx.field(static=True)

    def __init__(
        self, scales: Scales, config: Config, readout: Readout, per_series: int, rng: Generator
    ):
        self.scales, self.readout, self.reads_controls = scales, readout, config.physical_units
        table, first = scales.table, config.encoder_perceptron
        controls = len(table.controls) if self.reads_controls else 0
        inputs = len(table.channels) * (2 if table.shows_missing else 1) + controls
        width = config.encoder.width or 32
        self.perceptron = MLP(inputs, first.width, first.layers, width, rng)
        self.stack = make_stack(config.encoder, width, config, rng)
        self.posterior_head = Dense(width, 2 * readout.size, rng, readout.gain)
        self.series_head = Dense(width, per_series, rng, gain=0.1) if per_series else None

    @property
    def latent(self) -> int:
        """The size of the latent."""
        return self.readout.size

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first time step."""
        return self.stack.start()

    def __call__(self, rows: Observations) -> tuple[Encoded, Float[Array, "*batch depth states"]]:
        """Latents at all time steps from the first on, and the states of the stack after them."""
        start = self.stack.start(*rows.gaps.shape[1:])
        hidden, states = self.stack(self.perceptron(self._inputs(rows)), rows.gaps, start)
        return self._encoded(hidden, rows), jnp.moveaxis(states, 0, -2)

    def step(
        self, row: Observations, states: Float[Array, "depth states"]
    ) -> tuple[Encoded, Float[Array, "depth states"]]:
        """The same for one time step."""
        discrete = self.stack.discrete(row.gaps)
        hidden, states = self.stack.step(self.perceptron(self._inputs(row)), discrete, states)
        return self._encoded(hidden, row), states

    def _inputs(self, rows: Observations) -> Array:
        parts = [rows.last]
        parts += [rows.seen] if self.scales.table.shows_missing else []
        parts += [self.scales.table.scale_controls(rows.controls)] if self.reads_controls else []
        return jnp.concatenate(parts, axis=-1)

    def _encoded(self, hidden: Array, rows: Observations) -> Encoded:
        mean, raw = jnp.split(self.posterior_head(hidden), 2, axis=-1)
        if self.readout.adds_measured:
            corrections = mean * on_last_axis(np.array(self.readout.correction), mean)
            mean = corrections + self.measured_states(rows.last)
        raw = raw + on_last_axis(self.readout.std_start, raw)
        nothing = jnp.zeros((*hidden.shape[:-1], 0), hidden.dtype)
        terms = nothing if self.series_head is None else self.series_head(hidden)
        return Encoded(gaussian(mean, raw), terms)
