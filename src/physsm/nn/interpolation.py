"""Interpolation in time: linear between rows, and cubic between nodes with known slopes."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


def interpolate_linear(
    times: Float[Array, "*times"], row_times: Float[Array, " rows"], x: Float[Array, "rows width"]
) -> Float[Array, "*times width"]:
    """Values of rows, interpolated linearly at `times`; constant before the first row and after the
    last. Of several rows at one time, the last counts from that time on.
    """
    after = jnp.clip(jnp.searchsorted(row_times, times, side="right"), 1, len(row_times) - 1)
    start, end = row_times[after - 1], row_times[after]
    has_width = end > start
    width = jnp.where(has_width, end - start, 1)
    share = jnp.where(has_width, jnp.clip((times - start) / width, 0, 1), 1)[..., None]
    return x[after - 1] + share * (x[after] - x[after - 1])


class CubicHermite(NamedTuple):
    """Cubic Hermite spline: values and slopes at nodes."""

    nodes: Float[Array, " nodes"]
    x: Float[Array, "nodes rows width"]
    slope: Float[Array, "nodes rows width"]

    def at(self, times: Float[Array, " times"]) -> Float[Array, "times rows width"]:
        """Values at `times`; constant before the first and after the last node."""
        after = jnp.searchsorted(self.nodes, times, side="right")
        after = jnp.clip(after, 1, len(self.nodes) - 1)
        start, end = self.nodes[after - 1], self.nodes[after]
        width = jnp.where(end > start, end - start, 1)
        s = jnp.clip((times - start) / width, 0, 1)
        ends = jnp.stack([(1 + 2 * s) * (1 - s) ** 2, s**2 * (3 - 2 * s)])
        slopes = jnp.stack([s * (1 - s) ** 2, s**2 * (s - 1)]) * width[None]

        def mixed(weights: Array, of: Array) -> Array:
            first, second = (weight[:, None, None] for weight in weights)
            return first * of[after - 1] + second * of[after]

        return mixed(ends, self.x) + mixed(slopes, self.slope)
