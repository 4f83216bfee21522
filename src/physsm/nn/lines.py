"""Straight lines between rows."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def along_lines(
    times: Float[Array, "*times"], row_times: Float[Array, " rows"], x: Float[Array, "rows width"]
) -> Float[Array, "*times width"]:
    """Values at times, along straight lines between those of rows; before the first and after the
    last as there. Of rows at one time, the last counts from then on.
    """
    after = jnp.clip(jnp.searchsorted(row_times, times, side="right"), 1, len(row_times) - 1)
    start, end = row_times[after - 1], row_times[after]
    has_width = end > start
    width = jnp.where(has_width, end - start, 1)
    share = jnp.where(has_width, jnp.clip((times - start) / width, 0, 1), 1)[..., None]
    return x[after - 1] + share * (x[after] - x[after - 1])
