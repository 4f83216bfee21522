"""What networks read of a series: its rows, scaled by the plan. Controls are in their units."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Observations(NamedTuple):
    """What the encoder reads: each channel's last shown value, whether it was shown in this row,
    the controls, and the gap before the row. A gap of zero marks padding before a series.
    """

    last: Float[Array, "*steps channels"]
    seen: Float[Array, "*steps channels"]
    controls: Float[Array, "*steps controls"]
    gaps: Float[Array, "*steps"]


def in_precision(tree: Any, dtype: jnp.dtype) -> Any:
    """NumPy arrays, such as those of a batch, as arrays of the network's precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)
