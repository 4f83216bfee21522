"""Records that pass between the parts of an encode-decode network."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physsm._programs import serialisable
from physsm.data.window import Batch
from physsm.models._network.observations import FIRST_GAP, Observations, in_precision, observations


class Timeline(NamedTuple):
    """All time steps of a window, context and target: times since the first one (0 in padding
    before it) and controls.
    """

    times: Float[Array, "*steps"]
    controls: Float[Array, "*steps controls"]


class Trajectory(NamedTuple):
    """States at given times; `is_reached` is False where the solver stopped before.

    `log_density` is the log density of the states, for models that integrate it.
    """

    z: Float[Array, "*times d"]
    is_reached: Bool[Array, "*times"]
    log_density: Float[Array, "*times"] | None = None


class Window(NamedTuple):
    """A batch of windows: the observations of their contexts, their timelines, and the measured
    values, with a weight of 1 where there is a measurement.
    """

    rows: Observations
    timeline: Timeline
    values: Float[Array, "steps batch channels"]
    weight: Float[Array, "steps batch channels"]


serialisable(Timeline, Trajectory)


def elapsed(gaps: Float[Array, " steps *batch"]) -> Float[Array, " steps *batch"]:
    """Times since the first time step, from gaps that begin with `FIRST_GAP` after zeros."""
    return jnp.maximum(jnp.cumsum(gaps, axis=0) - FIRST_GAP, 0)


def as_window(batch: Batch, context: int, dtype: Any) -> Window:
    """A batch as inputs and targets of a network."""
    arrays = in_precision(batch, dtype)
    return Window(
        rows=jax.tree.map(lambda leaf: leaf[:context], observations(arrays)),
        timeline=Timeline(elapsed(arrays.gaps), arrays.controls),
        values=arrays.values,
        weight=arrays.observed * arrays.valid[..., None],
    )
