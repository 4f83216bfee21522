"""Attention in continuous time (Chen et al., 2023): keys and values change between time steps.

The key and the value of a token are states of differential equations that start at the token's
time. They are integrated from there, forwards and backwards, to nodes: the times of all tokens, and
times after the last token at growing distances. A Runge-Kutta method of fourth order with a fixed
number of steps goes from node to node; between nodes, cubic Hermite interpolation takes the slopes
from the equations. The equations are therefore solved once for each token, not for each pair of a
token and a queried time. After the last node keys and values are constant. Queries are interpolated
linearly between tokens, and are constant after the last.

The score of a token at time t is the mean of query times key over the time between the token and t.
Its value is the mean of the value over that time. Both means use the trapezoidal rule with the two
end points. At a token's own time both are those of plain attention.
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

_MASKED = -1e9  # the score of padding
# Nodes after the last token, in the unit of time, at growing distances up to 230 units.
_AHEAD = np.cumsum(0.5 * 1.6 ** np.arange(12))


class Tokens(NamedTuple):
    """Tokens of a sequence: their times, their vectors, and False in `valid` for padding."""

    times: Float[Array, " rows"]
    x: Float[Array, "rows width"]
    valid: Bool[Array, " rows"]


class _Order:
    """Order in which the state of each row (token) visits all nodes: from the row's own node to the
    last, then from its own back to the first. Each pair of row and node is visited once, and all
    rows need the same number of steps.

    `origin` and `target` are the nodes at both ends of each step of each row; `turns` marks the
    steps at which a row starts again from its own node. `step` is the step that reaches each node;
    none reaches a row's own node (`is_own`).
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
    """Queries of all rows, and keys and values of the rows that are attended to, as functions of
    time; `own_score` and `own_value` are those at each key's own time.
    """

    row_times: Float[Array, " rows"]
    queries: Float[Array, "rows width"]
    keys: CubicHermite
    values: CubicHermite
    own_score: Float[Array, "keys heads"]
    own_value: Float[Array, "keys width"]
    valid: Bool[Array, " keys"]


class ContinuousAttention(eqx.Module):
    """Multi-head attention to rows (tokens), evaluated at any time.

    `flow_*` are the equations of keys and values, k' = tanh(W k + c t) times a gain that starts at
    zero. Before training, keys and values are therefore constant, and this is plain attention,
    except that the query of a score is the mean of those at the queried time and at the row.
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
        """Encode a sequence: queries from `rows`, keys and values from `keys`."""
        queries = linear(self.W_query, rows.x)
        own = interpolate_linear(keys.times, rows.times, queries)
        K, V = linear(self.W_key, keys.x), linear(self.W_value, keys.x)
        return Memory(
            row_times=rows.times,
            queries=queries,
            keys=self.flow(0, keys.times, K),
            values=self.flow(1, keys.times, V),
            own_score=self._heads(own * K).sum(-1),
            own_value=V,
            valid=keys.valid,
        )

    def __call__(
        self, times: Float[Array, " times"], memory: Memory
    ) -> Float[Array, "times width"]:
        """Output of the attention at `times`."""
        query = interpolate_linear(times, memory.row_times, memory.queries)
        here = self._heads(query[:, None, :] * memory.keys.at(times)).sum(-1)
        size = query.shape[-1] // self.heads
        score = (here + memory.own_score[None]) / (2 * np.sqrt(size))
        score = jnp.where(memory.valid[None, :, None], score, _MASKED)
        weight = jax.nn.softmax(jnp.asarray(score), axis=1)
        value = self._heads(memory.values.at(times) + memory.own_value[None]) / 2
        return linear(self.W_out, (weight[..., None] * value).sum(1).reshape(len(times), -1))

    def flow(
        self, which: int, row_times: Float[Array, " rows"], start: Float[Array, "rows width"]
    ) -> CubicHermite:
        """The keys (0) or the values (1) of all rows as functions of time."""
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
        """One Runge-Kutta step of fourth order."""
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
