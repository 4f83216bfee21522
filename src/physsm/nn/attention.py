"""Attention in continuous time (Chen et al., 2023): keys and values move between their rows.

The key and the value of a row are states of differential equations, which start at the row's time
and are followed from there, forwards and backwards, through nodes: the times of all rows that are
attended to, and times after the last of them that grow apart. From node to node goes Runge and
Kutta's method with a given number of steps; between nodes is the cubic with the slopes of the
equation. So the equations are solved once for each row, not for each pair of a row and a time asked
for, which are far too many. After the last node nothing moves. A query is a straight line between
the queries of rows, and stays after the last. The weight of a row at time t
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

from physsm.nn.interpolation import CubicHermite, interpolate_linear
from physsm.nn.layers import linear, on_last_axis, parameter
from physsm.nn.recompute import lean_scan

_NEVER = -1e9  # the score of what is no row
# Nodes after the last row, in the unit of times: further apart each, to 230 units.
_AHEAD = np.cumsum(0.5 * 1.6 ** np.arange(12))


class Tokens(NamedTuple):
    """Rows that are attended to: when they are, what they hold, and which are no padding."""

    times: Float[Array, " rows"]
    x: Float[Array, "rows width"]
    valid: Bool[Array, " rows"]


class _Order:
    """In which order each row goes through all nodes: from its own to the last, then from its own
    back to the first. So each pair is come to once, and all rows need the same number of steps.

    `origin` and `target` are the nodes of each step and row, `turns` where a row starts anew, and
    `step` the step that ends at a node, but at a row's own (`is_own`).
    """

    def __init__(self, rows: int, nodes: int):
        row, step = np.arange(rows), np.arange(nodes - 1)[:, None]
        ahead = nodes - 1 - row
        is_ahead = step < ahead
        self.origin = np.where(is_ahead, row + step, row - (step - ahead))
        self.target = self.origin + np.where(is_ahead, 1, -1)
        self.turns = step == ahead
        node = np.arange(nodes)[:, None]
        self.is_own = node == row
        self.step = np.where(node > row, node - row - 1, ahead + row - node - 1)
        self.step[self.is_own] = 0


class Memory(NamedTuple):
    """What was read of rows: their queries, and of those that are attended to the flows of keys and
    values, with the score and the value that each has at its own time.
    """

    row_times: Float[Array, " rows"]
    queries: Float[Array, "rows width"]
    keys: CubicHermite
    values: CubicHermite
    own_score: Float[Array, "keys heads"]
    own_value: Float[Array, "keys width"]
    valid: Bool[Array, " keys"]


class ContinuousAttention(eqx.Module):
    """Several heads of attention to rows, asked at any time.

    `flow_*` are the equations of keys and values, k' = tanh(W k + c t) times a gain that starts
    at zero: before training nothing moves, and this is plain attention, but that the query of a
    score is the mean of that at the time and that at the row.
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

    def read(self, rows: Tokens, keys: Tokens) -> Memory:
        """What can be asked at any time: queries are made of `rows`, keys and values of `keys`."""
        queries = linear(self.W_query, rows.x)
        own = interpolate_linear(keys.times, rows.times, queries)
        K, V = linear(self.W_key, keys.x), linear(self.W_value, keys.x)
        return Memory(
            rows.times,
            queries,
            self.flow(0, keys.times, K),
            self.flow(1, keys.times, V),
            self._heads(own * K).sum(-1),
            V,
            keys.valid,
        )

    def __call__(
        self, times: Float[Array, " times"], memory: Memory
    ) -> Float[Array, "times width"]:
        """What is attended to at times."""
        asked = interpolate_linear(times, memory.row_times, memory.queries)
        here = self._heads(asked[:, None, :] * memory.keys.at(times)).sum(-1)
        size = asked.shape[-1] // self.heads
        score = (here + memory.own_score[None]) / (2 * np.sqrt(size))
        score = jnp.where(memory.valid[None, :, None], score, _NEVER)
        weight = jax.nn.softmax(jnp.asarray(score), axis=1)
        value = self._heads(memory.values.at(times) + memory.own_value[None]) / 2
        return linear(self.W_out, (weight[..., None] * value).sum(1).reshape(len(times), -1))

    def flow(
        self, which: int, row_times: Float[Array, " rows"], start: Float[Array, "rows width"]
    ) -> CubicHermite:
        """The keys (0) or the values (1) of all rows, followed through all nodes."""
        later = row_times[-1] + jnp.asarray(_AHEAD, row_times.dtype)
        nodes = jnp.concatenate([row_times, later])
        order = _Order(len(start), len(nodes))
        times = nodes[order.origin]
        gaps = nodes[order.target] - times

        def interval(x: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            t, gap, turns = now
            x = jnp.where(turns[:, None], start, x)
            h = gap / self.steps
            for step in range(self.steps):
                x = self._step(which, t + step * h, h[:, None], x)
            return x, x

        reached: Array = lean_scan(interval, start, (times, gaps, jnp.asarray(order.turns)))[1]
        is_own = jnp.asarray(order.is_own)[..., None]
        x = jnp.where(is_own, start[None], reached[order.step, np.arange(len(start))])
        return CubicHermite(nodes, x, self._rate(which, nodes[:, None], x))

    def _step(self, which: int, t: Array, h: Array, x: Array) -> Array:
        """One step of Runge and Kutta."""
        half = t + h[:, 0] / 2
        k1 = self._rate(which, t, x)
        k2 = self._rate(which, half, x + h / 2 * k1)
        k3 = self._rate(which, half, x + h / 2 * k2)
        k4 = self._rate(which, t + h[:, 0], x + h * k3)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def _rate(self, which: int, t: Array, x: Array) -> Array:
        turned = linear(self.flow_W[which], x)
        time = on_last_axis(self.flow_time[which], x) * jnp.broadcast_to(t, x.shape[:-1])[..., None]
        return on_last_axis(self.flow_gain[which], x) * jnp.tanh(turned + time)

    def _heads(self, x: Float[Array, "*rest width"]) -> Float[Array, "*rest heads size"]:
        return x.reshape(*x.shape[:-1], self.heads, -1)
