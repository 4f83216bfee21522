"""Observations: what networks read of a series, scaled. Controls are in their units."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm._values import Panel
from physsm.data.window import Batch

FIRST_GAP = 1.0  # stands for the gap before the first time step of a window, which has none


class Observations(NamedTuple):
    """What an encoder reads at each time step: each channel's last shown value, whether it was
    shown at this step, the controls, and the gap before it. A gap of zero marks padding before a
    series.
    """

    last: Float[Array, "*steps channels"]
    seen: Float[Array, "*steps channels"]
    controls: Float[Array, "*steps controls"]
    gaps: Float[Array, "*steps"]


def observations(batch: Batch) -> Observations:
    """What an encoder may read of a batch."""
    return Observations(
        last=batch.last,  # type: ignore[arg-type]
        seen=batch.seen,  # type: ignore[arg-type]
        controls=batch.controls,  # type: ignore[arg-type]
        gaps=batch.gaps,  # type: ignore[arg-type]
    )


def in_precision(tree: Any, dtype: jnp.dtype) -> Any:
    """NumPy arrays, such as those of a batch, as arrays of the network's precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def is_step(rows: Observations) -> Float[Array, " steps *batch"]:
    """1 for time steps, 0 for padding."""
    return (rows.gaps > 0).astype(rows.gaps.dtype)


def series_first(steps: Any, panel: Panel, first: int = 0) -> Float[np.ndarray, "series steps ..."]:
    """Time-major values of series that end together → series first, aligned at their starts, NaN
    after the last. `first` is the time step of each series that is the first of `steps`.
    """
    steps = np.asarray(steps)
    rows = np.arange(panel.times.shape[1])[None, :] - first
    place = rows + len(steps) - (panel.lengths[:, None] - first)
    values = steps[np.clip(place, 0, len(steps) - 1), np.arange(len(panel))[:, None]]
    inside = (rows >= 0) & (rows < panel.lengths[:, None] - first)
    return np.where(inside.reshape(*inside.shape, *(1,) * (values.ndim - 2)), values, np.nan)
