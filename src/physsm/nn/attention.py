"""Attention in continuous time (Chen et al., 2023): keys and values move between their rows.

The key and the value of a row are states of differential equations, which start at the row's time
and are followed to the time asked for, forwards or backwards, by Runge and Kutta's method with a
given number of steps (pairs of rows and times are far too many for an adaptive one). A query is a
straight line between the queries of rows, and stays after the last. The weight of a row at time t
is the mean of query times key over the time between the row and t, its value the mean of the value
over that time; both by the trapezoidal rule of the two ends. At a row's own time both are those of
plain attention.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm.nn.broadcast import on_last_axis
from physsm.nn.initial import parameter
from physsm.nn.linear import linear

_NEVER = -1e9  # the score of what is no row


class Tokens(NamedTuple):
    """Rows that are attended to: when they are, what they hold, and which are no padding."""

    times: Float[Array, " rows"]
    x: Float[Array, "rows width"]
    valid: Bool[Array, " rows"]


class ContinuousAttention(eqx.Module):
    """Several heads of attention to rows, asked at any time.

    `flow_*` are the equations of keys and values, k' = tanh(W k + c t) times a gain that starts
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
    steps: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, steps: int, rng: np.random.Generator):
        def matrix(*more: int) -> Array:
            return parameter(rng.uniform(-1, 1, (*more, width, width)) / np.sqrt(width))

        self.W_query, self.W_key, self.W_value, self.W_out = (matrix() for _ in range(4))
        self.flow_W = matrix(2)
        self.flow_time = parameter(np.zeros((2, width)))
        self.flow_gain = parameter(np.zeros((2, width)))
        self.heads, self.steps = heads, steps

    def __call__(
        self, times: Float[Array, " times"], rows: Tokens, keys: Tokens
    ) -> Float[Array, "times width"]:
        """What is attended to at times: queries are made of `rows`, keys and values of `keys`."""
        queries = linear(self.W_query, rows.x)
        asked = along_rows(times, rows.times, queries)
        own = along_rows(keys.times, rows.times, queries)
        K, V = linear(self.W_key, keys.x), linear(self.W_value, keys.x)
        key, value = self.moved(times, keys.times, K, V)
        at_row = self._heads(own * K).sum(-1)
        here = self._heads(asked[:, None, :] * key).sum(-1)
        size = K.shape[-1] // self.heads
        score = (here + at_row[None]) / (2 * np.sqrt(size))
        score = jnp.where(keys.valid[None, :, None], score, _NEVER)
        weight = jax.nn.softmax(jnp.asarray(score), axis=1)
        value = self._heads(value + V[None]) / 2
        return linear(self.W_out, (weight[..., None] * value).sum(1).reshape(len(times), -1))

    def moved(
        self,
        times: Float[Array, " times"],
        row_times: Float[Array, " rows"],
        K: Float[Array, "rows width"],
        V: Float[Array, "rows width"],
    ) -> tuple[Float[Array, "times rows width"], Float[Array, "times rows width"]]:
        """The key and the value of each row at each time."""
        gap = times[:, None] - row_times[None, :]

        def flow(which: int, start: Array) -> Array:
            x = jnp.broadcast_to(start[None], (*gap.shape, start.shape[-1]))
            t, h = jnp.broadcast_to(row_times[None, :], gap.shape), gap / self.steps
            for _ in range(self.steps):
                k1 = self._rate(which, t, x)
                k2 = self._rate(which, t + h / 2, x + h[..., None] / 2 * k1)
                k3 = self._rate(which, t + h / 2, x + h[..., None] / 2 * k2)
                k4 = self._rate(which, t + h, x + h[..., None] * k3)
                x = x + h[..., None] / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                t = t + h
            return x

        return flow(0, K), flow(1, V)

    def _rate(self, which: int, t: Array, x: Array) -> Array:
        turned = linear(self.flow_W[which], x)
        time = on_last_axis(self.flow_time[which], x) * t[..., None]
        return on_last_axis(self.flow_gain[which], x) * jnp.tanh(turned + time)

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
