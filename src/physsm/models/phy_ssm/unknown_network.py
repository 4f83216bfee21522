"""The unknown network: varying unknowns as a function of states and controls so far."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models.phy_ssm.config import Config, make_stack
from physsm.models.phy_ssm.values import Features
from physsm.nn.discretise import Discrete
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack


class AbstractUnknownNetwork(eqx.Module):
    """A map from centred extended states and scaled controls to raw terms of the varying unknowns,
    with a carried state.
    """

    @abc.abstractmethod
    def __call__(self, z_ext: Array, u: Array, gaps: Float[Array, " steps *batch"]) -> Features:
        """At all time steps from the first on."""

    @abc.abstractmethod
    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """The carried state before the first time step."""

    @abc.abstractmethod
    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete | None:
        """The discretised recurrence for some gaps, if there is a recurrence."""

    @abc.abstractmethod
    def step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """The same for one time step."""


class ConstantUnknowns(AbstractUnknownNetwork):
    """No network: terms of zero, so that unknowns are constants. For a grey box, and for systems
    without varying unknowns.
    """

    varying: int = eqx.field(static=True)

    def __call__(self, z_ext: Array, u: Array, gaps: Float[Array, " steps *batch"]) -> Features:
        """Zeros at all time steps."""
        zeros = jnp.zeros((*gaps.shape, self.varying), z_ext.dtype)
        return Features(zeros, zeros[-1], jnp.zeros((*gaps.shape[1:], 0, 0), z_ext.dtype))

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """No state."""
        return jnp.zeros((0, 0), dtype)

    def discrete(self, gaps: Float[Array, "*shape"]) -> None:
        """No recurrence."""

    def step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """Zeros."""
        return jnp.zeros(self.varying, z_ext.dtype), carry


class JoinedInputs(eqx.Module):
    """States and controls, lifted together to the width of the network."""

    lift: Dense

    def __call__(self, z_ext: Array, u: Array) -> Array:
        """On the last axis."""
        return self.lift(jnp.concatenate([z_ext, u], axis=-1))


class AddedControls(eqx.Module):
    """States plus a perceptron of the controls, as in the paper."""

    perceptron: MLP

    def __call__(self, z_ext: Array, u: Array) -> Array:
        """On the last axis."""
        return z_ext + self.perceptron(u)


class StatesAlone(eqx.Module):
    """States as they are, where there are no controls."""

    def __call__(self, z_ext: Array, u: Array) -> Array:
        """On the last axis."""
        return z_ext


class S5Unknowns(AbstractUnknownNetwork):
    """An S5 stack over all time steps so far, and a head."""

    inputs: JoinedInputs | AddedControls | StatesAlone
    stack: S5Stack
    head: MLP

    def __call__(self, z_ext: Array, u: Array, gaps: Float[Array, " steps *batch"]) -> Features:
        """At all time steps from the first on."""
        start = self.stack.start(*gaps.shape[1:])
        hidden, states = self.stack(self.inputs(z_ext, u), gaps, start)
        return Features(self.head(hidden), self.head(hidden[-1]), jnp.moveaxis(states, 0, -2))

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """The states of the stack before the first time step."""
        return self.stack.start()

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete:
        """The discretised stack."""
        return self.stack.discrete(gaps)

    def step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """The same for one time step."""
        assert discrete is not None
        hidden, carry = self.stack.step(self.inputs(z_ext, u), discrete, carry)
        return self.head(hidden), carry


class PerceptronUnknowns(AbstractUnknownNetwork):
    """A perceptron of the present state and control: the ablation without memory."""

    inputs: JoinedInputs | AddedControls | StatesAlone
    perceptron: MLP
    head: MLP

    def __call__(self, z_ext: Array, u: Array, gaps: Float[Array, " steps *batch"]) -> Features:
        """At all time steps."""
        hidden = self.perceptron(self.inputs(z_ext, u))
        nothing = jnp.zeros((*gaps.shape[1:], 0, 0), z_ext.dtype)
        return Features(self.head(hidden), self.head(hidden[-1]), nothing)

    def start(self, dtype: jnp.dtype) -> Float[Array, "depth states"]:
        """No state."""
        return jnp.zeros((0, 0), dtype)

    def discrete(self, gaps: Float[Array, "*shape"]) -> None:
        """No recurrence."""

    def step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """The same for one time step."""
        return self.head(self.perceptron(self.inputs(z_ext, u))), carry


def make_unknown_network(
    states: int, controls: int, varying: int, config: Config, rng: Generator
) -> AbstractUnknownNetwork:
    """The network that the settings describe, for `varying` unknowns."""
    if not varying or config.unknown_network == "none":
        return ConstantUnknowns(varying)
    width = config.unit.width or states
    inputs = StatesAlone()
    if config.unit.width is not None:
        inputs = JoinedInputs(Dense(states + controls, width, rng))
    elif controls:
        hidden = config.encoder.width or width
        inputs = AddedControls(MLP(controls, hidden, 1, width, rng, activation="softplus"))
    if config.unknown_network == "s5":
        stack = make_stack(config.unit, width, config, rng)
        return S5Unknowns(inputs, stack, _head(width, varying, config, rng))
    perceptron = MLP(width, width, config.unit.depth, width, rng)
    return PerceptronUnknowns(inputs, perceptron, _head(width, varying, config, rng))


def _head(width: int, varying: int, config: Config, rng: Generator) -> MLP:
    hidden, gain = config.unknown_hidden, config.unknown_gain
    return MLP(width, hidden, 1, varying, rng, activation="softplus", last_gain=gain)
