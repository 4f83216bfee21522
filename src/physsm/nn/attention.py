"""Attention in continuous time (Chen et al., 2023): keys and values move between their rows.

The key and the value of a row are states of differential equations, which start at the row's time
and are followed forwards and backwards; a query is a straight line between the queries of rows, and
stays after the last. The weight of a row at time t is the mean of query times key over the time
between the row and t, its value the mean of the value over that time; both by the trapezoidal rule
of the two ends. At a row's own time both are those of plain attention.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm.nn.initial import parameter
from physsm.nn.linear import linear
from physsm.nn.ode import SolverSettings, solve_ode

_NEVER = -1e9  # the score of what is no row


class Tokens(NamedTuple):
    """Rows that are attended to: when they are, what they hold, and which are no padding."""

    times: Float[Array, " rows"]
    x: Float[Array, "rows width"]
    valid: Bool[Array, " rows"]


class ContinuousAttention(eqx.Module):
    """Several heads of attention to rows, asked at any time.

    `flow_*` are the equations of keys and values, k' = tanh(W k + c t + b) times a gain that starts
    at zero: before training nothing moves, and this is plain attention.
    """

    W_query: Float[Array, "width width"]
    W_key: Float[Array, "width width"]
    W_value: Float[Array, "width width"]
    W_out: Float[Array, "width width"]
    flow_W: Float[Array, "two width width"]
    flow_time: Float[Array, "two width"]
    flow_gain: Float[Array, "two width"]
    heads: int = eqx.field(static=True)
    solver: SolverSettings = eqx.field(static=True)

    def __init__(self, width: int, heads: int, solver: SolverSettings, rng: np.random.Generator):
        def matrix(*more: int) -> Array:
            return parameter(rng.uniform(-1, 1, (*more, width, width)) / np.sqrt(width))

        self.W_query, self.W_key, self.W_value, self.W_out = (matrix() for _ in range(4))
        self.flow_W = matrix(2)
        self.flow_time = parameter(np.zeros((2, width)))
        self.flow_gain = parameter(np.zeros((2, width)))
        self.heads, self.solver = heads, solver

    def __call__(
        self, times: Float[Array, " times"], rows: Tokens, keys: Tokens, node: float
    ) -> Float[Array, "times width"]:
        """What is attended to at times: queries are made of `rows`, keys and values of `keys`."""
        queries = linear(self.W_query, rows.x)
        asked = along_rows(times, rows.times, queries)
        own = along_rows(keys.times, rows.times, queries)
        K, V = linear(self.W_key, keys.x), linear(self.W_value, keys.x)
        moved = self.moved(times, keys.times, K, V, node)
        at_row = self._heads(own * K).sum(-1)
        here = self._heads(asked[:, None, :] * moved[..., 0, :]).sum(-1)
        size = K.shape[-1] // self.heads
        score = (here + at_row[None]) / (2 * np.sqrt(size))
        score = jnp.where(keys.valid[None, :, None], score, _NEVER)
        weight = jax.nn.softmax(jnp.asarray(score), axis=1)
        value = self._heads(moved[..., 1, :] + V[None]) / 2
        return linear(self.W_out, (weight[..., None] * value).sum(1).reshape(len(times), -1))

    def moved(
        self,
        times: Float[Array, " times"],
        row_times: Float[Array, " rows"],
        K: Float[Array, "rows width"],
        V: Float[Array, "rows width"],
        node: float,
    ) -> Float[Array, "times rows 2 width"]:
        """The key and the value of each row at each time."""

        def of_row(row_time: Array, start: Array) -> Array:
            def towards(sign: float) -> Array:
                def rate(elapsed: Array, state: Array) -> Array:
                    return sign * self._rate(row_time + sign * elapsed, state)

                ahead = jnp.maximum(sign * (times - row_time), 0)
                return solve_ode(rate, start, ahead, self.solver, node).states

            later = (times >= row_time)[:, None]
            return jnp.where(later, towards(1.0), towards(-1.0))

        starts = jnp.concatenate([K, V], axis=-1)
        found = jax.vmap(of_row, out_axes=1)(row_times, starts)
        return found.reshape(len(times), len(row_times), 2, K.shape[-1])

    def _rate(self, t: Array, state: Array) -> Array:
        both = state.reshape(2, -1)
        turned = jnp.einsum("kij,kj->ki", self.flow_W, both)
        return (self.flow_gain * jnp.tanh(turned + self.flow_time * t)).reshape(-1)

    def _heads(self, x: Float[Array, "*rest width"]) -> Float[Array, "*rest heads size"]:
        return x.reshape(*x.shape[:-1], self.heads, -1)


def along_rows(
    times: Float[Array, " times"], row_times: Float[Array, " rows"], x: Float[Array, "rows width"]
) -> Float[Array, "times width"]:
    """Along straight lines between rows; before the first and after the last as there."""
    after = jnp.clip(jnp.searchsorted(row_times, times, side="right"), 1, len(row_times) - 1)
    start, end = row_times[after - 1], row_times[after]
    width = jnp.where(end > start, end - start, 1)
    share = jnp.clip((times - start) / width, 0, 1)[:, None]
    return x[after - 1] + share * (x[after] - x[after - 1])
