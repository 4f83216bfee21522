"""Recurrent layers over sequences, time first; a step whose `valid` is 0 keeps the state.

The contribution of the inputs is one matrix product for all steps; only the part that depends on
the previous state runs in the loop over time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.nn.layers import linear, on_last_axis, parameter
from physsm.nn.parameter_groups import UNDECAYED
from physsm.nn.recompute import lean_scan

Cell = Literal["rnn", "gru", "lstm"]
_GATES: dict[Cell, int] = {"rnn": 1, "gru": 3, "lstm": 4}


class RecurrentLayer(eqx.Module):
    """Recurrent layer: plain (tanh), gated recurrent unit, or long short-term memory.

    The state of a long short-term memory is its output and its memory cell, concatenated; that of
    the others is their output.
    """

    W: Float[Array, "gates inputs"]
    U: Float[Array, "gates width"]
    b: Float[Array, " gates"] = eqx.field(metadata=UNDECAYED)
    b_state: Float[Array, " width"]
    cell: Cell = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(self, inputs: int, width: int, cell: Cell, rng: np.random.Generator):
        gates, limit = _GATES[cell] * width, 1 / np.sqrt(width)
        self.W = parameter(limit * rng.uniform(-1, 1, (gates, inputs)))
        self.U = parameter(limit * rng.uniform(-1, 1, (gates, width)))
        self.b = parameter(limit * rng.uniform(-1, 1, gates))
        # Bias of the candidate of a gated unit, which the reset gate multiplies.
        biases = width if cell == "gru" else 0
        self.b_state = parameter(limit * rng.uniform(-1, 1, biases))
        self.cell, self.width = cell, width

    def start(self, *batch: int) -> Float[Array, "*batch state"]:
        """The state before the first step."""
        return jnp.zeros((*batch, self.width * (2 if self.cell == "lstm" else 1)), self.W.dtype)

    def given(self, x: Float[Array, "*rest inputs"]) -> Float[Array, "*rest gates"]:
        """Contribution of the inputs to the gates."""
        return linear(self.W, x) + on_last_axis(self.b, x)

    def step(
        self, given: Float[Array, "*batch gates"], state: Float[Array, "*batch state"]
    ) -> Float[Array, "*batch state"]:
        """The state after one step."""
        recurrent = linear(self.U, state[..., : self.width])
        if self.cell == "rnn":
            return jnp.tanh(given + recurrent)
        if self.cell == "gru":
            return self._gru(given, recurrent, state)
        i, f, g, o = jnp.split(given + recurrent, 4, axis=-1)
        memory = jax.nn.sigmoid(f) * state[..., self.width :] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jnp.concatenate([jax.nn.sigmoid(o) * jnp.tanh(memory), memory], axis=-1)

    def _gru(self, given: Array, recurrent: Array, state: Array) -> Array:
        (r, u, n), (r_h, u_h, n_h) = (jnp.split(part, 3, axis=-1) for part in (given, recurrent))
        candidate = jnp.tanh(n + jax.nn.sigmoid(r + r_h) * (n_h + on_last_axis(self.b_state, n)))
        keep = jax.nn.sigmoid(u + u_h)
        return candidate + keep * (state - candidate)

    def __call__(
        self, x: Float[Array, "steps *batch inputs"], valid: Float[Array, " steps *batch"]
    ) -> Float[Array, "steps *batch width"]:
        """Outputs at all steps, read from the first to the last."""
        return self.run(self.given(x), valid, jnp.zeros_like(valid), lambda state, _: state)

    def run(
        self,
        given: Float[Array, "steps *batch gates"],
        valid: Float[Array, " steps *batch"],
        gaps: Float[Array, " steps *batch"],
        over_gap: Callable[[Array, Array], Array],
    ) -> Float[Array, "steps *batch width"]:
        """Outputs at all steps from the inputs' contributions to the gates.

        `over_gap(state, gaps[i])` is the state after the gap before step i.
        """

        def step(state: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            given, valid, gap = now
            state = over_gap(state, gap)
            state = jnp.where(valid[..., None] > 0, self.step(given, state), state)
            return state, state[..., : self.width]

        return lean_scan(step, self.start(*valid.shape[1:]), (given, valid, gaps))[1]


class RecurrentStack(eqx.Module):
    """Stack of recurrent layers."""

    layers: tuple[RecurrentLayer, ...]

    def __init__(self, inputs: int, width: int, depth: int, cell: Cell, rng: np.random.Generator):
        sizes = [inputs] + [width] * (depth - 1)
        self.layers = tuple(RecurrentLayer(size, width, cell, rng) for size in sizes)

    def __call__(
        self, x: Float[Array, "steps *batch inputs"], valid: Float[Array, " steps *batch"]
    ) -> Float[Array, "steps *batch width"]:
        """Outputs of the last layer at all steps."""
        for layer in self.layers:
            x = layer(x, valid)
        return x


class BothDirections(eqx.Module):
    """Stack of bidirectional layers; each reads both directions of the layer before it."""

    layers: tuple[tuple[RecurrentLayer, RecurrentLayer], ...]

    def __init__(self, inputs: int, width: int, depth: int, cell: Cell, rng: np.random.Generator):
        sizes = [inputs] + [2 * width] * (depth - 1)
        self.layers = tuple(
            (RecurrentLayer(size, width, cell, rng), RecurrentLayer(size, width, cell, rng))
            for size in sizes
        )

    def __call__(
        self, x: Float[Array, "steps *batch inputs"], valid: Float[Array, " steps *batch"]
    ) -> Float[Array, "*batch twice"]:
        """Final outputs of the last layer: forwards at the last step, backwards at the first."""
        forth = back = x
        for ahead, behind in self.layers:
            forth, back = ahead(x, valid), backwards(behind, x, valid)
            x = jnp.concatenate([forth, back], axis=-1)
        return jnp.concatenate([forth[-1], back[0]], axis=-1)


def backwards(
    stack: Callable[[Array, Array], Array],
    x: Float[Array, "steps *batch inputs"],
    valid: Float[Array, " steps *batch"],
) -> Float[Array, "steps *batch width"]:
    """Outputs of a stack that reads backwards: output i depends on steps i and later."""
    return stack(x[::-1], valid[::-1])[::-1]
