"""The sequential encoder: a perceptron for each row, then an S5 stack over all rows so far."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.stacks import make_stack
from physsm.models.phy_ssm.values import Inferred
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.layers import on_last_axis
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack

_CERTAIN, _VAGUE = -2.0, 1.0  # raw values of the std before training: 0.13 and 1.3
_SMALL = 0.01  # gain of a head that only corrects what was measured


class RowNetwork(eqx.Module):
    """A perceptron for each row, an S5 stack over the rows, and the head of the latent."""

    perceptron: MLP
    stack: S5Stack
    posterior_head: Dense

    def __init__(self, inputs: int, outputs: int, gain: float, config: Config, rng: Generator):
        width, first = config.encoder.width or 32, config.encoder_perceptron
        self.perceptron = MLP(inputs, first.width, first.layers, width, rng)
        self.stack = make_stack(config.encoder, width, config, rng)
        self.posterior_head = Dense(width, outputs, rng, gain)


class Encoder(eqx.Module):
    """Infers the latent of each row from the rows up to it.

    Where the latent is the state itself (`is_state`), the outputs correct what was measured: a
    measured state starts as last seen, another one in the middle of its scale. `is_filtered`: the
    outputs are measurements for a filter, which at first gets little from what is not measured. If
    it measures all states there is nothing left to infer, and no network.
    """

    network: RowNetwork | None
    series_head: Dense | None
    latent: int = eqx.field(static=True)
    plan: Plan = eqx.field(static=True)
    physical_units: bool = eqx.field(static=True)
    is_state: bool = eqx.field(static=True)
    is_filtered: bool = eqx.field(static=True)

    def __init__(
        self,
        plan: Plan,
        config: Config,
        latent: int,
        per_series: int,
        *,
        is_state: bool,
        is_filtered: bool,
        rng: Generator,
    ):
        self.plan, self.physical_units = plan, config.physical_units
        self.is_state, self.is_filtered = is_state, is_filtered
        self.latent = latent
        controls = len(plan.controls) if config.physical_units else 0
        inputs = len(plan.channels) * (2 if plan.shows_missing else 1) + controls
        width = config.encoder.width or 32
        is_idle = is_filtered and bool((plan.channel_of_state >= 0).all())
        gain = _SMALL if is_filtered else 1.0
        self.network = None if is_idle else RowNetwork(inputs, 2 * latent, gain, config, rng)
        has_head = per_series > 0 and not is_filtered
        self.series_head = Dense(width, per_series, rng, gain=0.1) if has_head else None

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """The states of the stack before the first row."""
        return jnp.zeros((0, 0), dtype) if self.network is None else self.network.stack.start()

    def __call__(self, rows: Observations) -> tuple[Inferred, Float[Array, "*batch depth states"]]:
        """The latents of all rows from the first on, and the states of the stack after them."""
        if self.network is None:
            nothing = jnp.zeros((*rows.gaps.shape[1:], 0, 0), rows.gaps.dtype)
            return self._as_measured(rows), nothing
        network = self.network
        start = network.stack.start(*rows.gaps.shape[1:])
        hidden, states = network.stack(network.perceptron(self._inputs(rows)), rows.gaps, start)
        return self._infer(hidden, rows), jnp.moveaxis(states, 0, -2)

    def step(
        self, row: Observations, states: Float[Array, "depth states"]
    ) -> tuple[Inferred, Float[Array, "depth states"]]:
        """The same for one row."""
        if self.network is None:
            return self._as_measured(row), states
        stack, discrete = self.network.stack, self.network.stack.discrete(row.gaps)
        hidden, states = stack.step(self.network.perceptron(self._inputs(row)), discrete, states)
        return self._infer(hidden, row), states

    def _as_measured(self, rows: Observations) -> Inferred:
        """The states as last seen; how far off that may be is for the filter to say."""
        mean = self._measured_states(rows.last)
        return Inferred(Gaussian(mean, jnp.ones_like(mean)), mean[..., :0])

    def _inputs(self, rows: Observations) -> Array:
        parts = [rows.last]
        parts += [rows.seen] if self.plan.shows_missing else []
        if self.physical_units:
            parts.append(self.plan.scale_controls(rows.controls))
        return jnp.concatenate(parts, axis=-1)

    def _infer(self, hidden: Array, rows: Observations) -> Inferred:
        assert self.network is not None
        mean, raw = jnp.split(self.network.posterior_head(hidden), 2, axis=-1)
        if self.is_state:
            mean = mean * self._corrects(mean) + self._measured_states(rows.last)
            raw = raw + self._start_of_std(raw)
        else:
            raw = raw + _CERTAIN
        empty = jnp.zeros((*hidden.shape[:-1], 0), hidden.dtype)
        terms = empty if self.series_head is None else self.series_head(hidden)
        return Inferred(gaussian(mean, raw), terms)

    def _corrects(self, mean: Array) -> Array:
        """Which states the outputs may move: under a filter only those that are not measured.

        A filter weighs measurements itself. Were they moved besides, the move and a wrong constant
        could make up for each other, and the constant would end where training began from.
        """
        measured = self.plan.channel_of_state >= 0
        return on_last_axis(~measured if self.is_filtered else np.ones(len(measured)), mean)

    def _start_of_std(self, raw: Array) -> Array:
        vague = _VAGUE if self.is_filtered else _CERTAIN
        start = [_CERTAIN if place >= 0 else vague for place in self.plan.channel_of_state]
        return on_last_axis(start, raw)

    def _measured_states(self, last: Array) -> Array:
        """Measured states as last seen; the others in the middle of their scale."""
        place = self.plan.channel_of_state
        shown = last[..., place.clip(0)] * on_last_axis(place >= 0, last)
        return shown + on_last_axis(self.plan.state_offset, last)
