"""Functions of a network on a block of windows, each to be a program (see `Kept`)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from physsm._programs import serialisable
from physsm.models._latent.rows import Observations
from physsm.models._latent.spread import spread_of
from physsm.models._trajectory.network import Trajectory
from physsm.models._trajectory.values import Course, elapsed

_AT_ONCE = 2**21  # draws at times of windows that are followed at once: bounds the memory


class Asked(NamedTuple):
    """Windows and what is asked of them: their rows, gaps before and controls at the rows after
    them, and times since their first rows with the controls then.
    """

    rows: Observations
    gaps: Float[Array, "future batch"]
    controls: Float[Array, "future batch controls"]
    times: Float[Array, "times batch"]
    controls_then: Float[Array, "times batch controls"]


class Answer(NamedTuple):
    """Scaled channels and states, whether the solver came so far, and the unknowns."""

    channels: Float[Array, "times batch channels"]
    z: Float[Array, "times batch d"]
    is_reached: Bool[Array, "times batch"]
    unknowns: Float[Array, "batch unknowns"]


serialisable(Answer)


def answer(network: Trajectory, asked: Asked) -> Answer:
    """By means."""
    starts = network.starts(network.infer(asked.rows), None)
    path = network.paths(starts, asked.times, _course(asked))
    channels = network.decode(path.z, asked.controls_then)
    return Answer(channels, path.z, path.is_reached, jax.vmap(network.unknowns)(starts))


def spread_of_answers(
    network: Trajectory, asked: Asked, samples: int
) -> tuple[Float[Array, "times batch channels"], Float[Array, "batch unknowns"]]:
    """How far channels and unknowns come apart over draws of what was inferred."""
    inferred, course = network.infer(asked.rows), _course(asked)

    def one_draw(key: Array) -> tuple[Array, Array]:
        # The same noise for all windows: none may depend on which others it is run with.
        starts = jax.vmap(lambda one: network.draw(one, key))(inferred)
        path = network.paths(starts, asked.times, course)
        channels = network.decode(path.z, asked.controls_then)
        return channels, jax.vmap(network.unknowns)(starts)

    keys = jr.split(jr.key(0), samples).reshape(-1, _together(samples, asked.times.size))
    if len(keys) == 1:  # a loop would run on one core
        channels, unknowns = jax.vmap(one_draw)(keys[0])
    else:
        parts = jax.lax.map(jax.vmap(one_draw), keys)
        channels, unknowns = (part.reshape(samples, *part.shape[2:]) for part in parts)
    return spread_of(channels), spread_of(unknowns)


def _together(samples: int, times: int) -> int:
    """Draws to be followed at once: a divisor of all."""
    fitting = (n for n in range(1, samples + 1) if samples % n == 0 and n * times <= _AT_ONCE)
    return max(fitting, default=1)


def _course(asked: Asked) -> Course:
    times = elapsed(jnp.concatenate([asked.rows.gaps, asked.gaps]))
    return Course(times, jnp.concatenate([asked.rows.controls, asked.controls]))
