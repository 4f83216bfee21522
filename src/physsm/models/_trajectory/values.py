"""What passes between the parts of a model that predicts along a path."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physsm._programs import serialisable
from physsm.data.window import Batch
from physsm.models._latent.rows import Observations, in_precision

FIRST_GAP = 1.0  # stands for the gap before the first row of a window


class Course(NamedTuple):
    """The rows of a window, seen and to come, in order: times since its first row (0 before it) and
    controls.
    """

    times: Float[Array, "*rows"]
    controls: Float[Array, "*rows controls"]


class Path(NamedTuple):
    """Where a path is at wanted times; `is_reached` is False where a solver has not come that far.
    `log_density` is how likely it is to be there, for models that follow that too.
    """

    z: Float[Array, "*times d"]
    is_reached: Bool[Array, "*times"]
    log_density: Float[Array, "*times"] | None = None


class Window(NamedTuple):
    """A batch of windows: what a model may see, the course of all rows, and what was measured, with
    a weight of 1 where it was.
    """

    rows: Observations
    course: Course
    values: Float[Array, "rows batch channels"]
    weight: Float[Array, "rows batch channels"]


serialisable(Course, Path)


def elapsed(gaps: Float[Array, " rows *batch"]) -> Float[Array, " rows *batch"]:
    """Times since the first row of a window, of gaps that begin with `FIRST_GAP`, after zeros."""
    return jnp.maximum(jnp.cumsum(gaps, axis=0) - FIRST_GAP, 0)


def as_window(batch: Batch, context: int, dtype: Any) -> Window:
    """A batch as a network sees it."""
    rows = in_precision(batch, dtype)
    seen = Observations(
        rows.last[:context], rows.seen[:context], rows.controls[:context], rows.gaps[:context]
    )
    course = Course(elapsed(rows.gaps), rows.controls)
    return Window(seen, course, rows.values, rows.observed * rows.valid[..., None])
