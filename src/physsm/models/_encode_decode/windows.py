"""Trajectories of windows at given times, by a compiled network in blocks of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm._programs import serialisable
from physsm._values import Panel
from physsm.data.window import Windows
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.values import Timeline, elapsed
from physsm.models._network.compiled import CompiledNetwork, rounded_up
from physsm.models._network.reductions import spread_of

_BLOCK, _LARGE_BLOCK = 32, 256  # windows of a block; the large one from _MANY windows on
_MANY = 512
_DRAWS_AT_ONCE = 2**21  # most draws * windows * times of one computation: bounds the memory


class Question(NamedTuple):
    """Windows and the times to predict in each, time first.

    `gaps` and `controls` are those of the time steps after each window. `times` are scaled times
    since its first step, and `controls_then` the controls at these times.
    """

    rows: Any  # Observations of the windows
    gaps: Float[Any, "future windows"]
    controls: Float[Any, "future windows controls"]
    times: Float[Any, "times windows"]
    controls_then: Float[Any, "times windows controls"]


class Trajectories(NamedTuple):
    """Scaled channels and states at the times of each window, whether the solver reached them, and
    the unknowns.
    """

    channels: Float[Any, "times windows channels"]
    z: Float[Any, "times windows d"]
    is_reached: Bool[Any, "times windows"]
    unknowns: Float[Any, "windows unknowns"]


serialisable(Trajectories)


# Functions of a network, to be compiled.


def trajectories(network: AbstractEncodeDecode, asked: Question) -> Trajectories:
    """Mean trajectories."""
    starts = network.starts(network.infer(asked.rows), None)
    trajectory = network.trajectories(starts, asked.times, _timeline(asked))
    channels = network.decode(trajectory.z, asked.controls_then)
    return Trajectories(
        channels=channels,
        z=trajectory.z,
        is_reached=trajectory.is_reached,
        unknowns=jax.vmap(network.unknowns)(starts),
    )


def spread_of_trajectories(
    network: AbstractEncodeDecode, asked: Question, samples: int
) -> tuple[Float[Array, "times windows channels"], Float[Array, "windows unknowns"]]:
    """Spread of channels and unknowns over draws of the inferred latents."""
    inferred, timeline = network.infer(asked.rows), _timeline(asked)

    def one_draw(key: Array) -> tuple[Array, Array]:
        # The same noise for all windows: a forecast must not depend on the other windows.
        starts = jax.vmap(lambda one: network.draw(one, key))(inferred)
        trajectory = network.trajectories(starts, asked.times, timeline)
        channels = network.decode(trajectory.z, asked.controls_then)
        return channels, jax.vmap(network.unknowns)(starts)

    keys = jr.split(jr.key(0), samples).reshape(-1, _together(samples, asked.times.size))
    if len(keys) == 1:  # a loop would run on one core
        channels, unknowns = jax.vmap(one_draw)(keys[0])
    else:
        parts = jax.lax.map(jax.vmap(one_draw), keys)
        channels, unknowns = (part.reshape(samples, *part.shape[2:]) for part in parts)
    return spread_of(channels), spread_of(unknowns)


def _together(samples: int, times: int) -> int:
    """Draws to compute at once: a divisor of their number."""
    fitting = (n for n in range(1, samples + 1) if samples % n == 0 and n * times <= _DRAWS_AT_ONCE)
    return max(fitting, default=1)


def _timeline(asked: Question) -> Timeline:
    times = elapsed(jnp.concatenate([asked.rows.gaps, asked.gaps]))
    return Timeline(times, jnp.concatenate([asked.rows.controls, asked.controls]))


class WindowedNetwork:
    """A compiled network for windows with contexts of at most `context` time steps."""

    def __init__(self, compiled: CompiledNetwork, context: int):
        self.compiled, self.context = compiled, rounded_up(context)

    def trajectories(self, panel: Panel, windows: Windows, asked: Question) -> Trajectories:
        """Mean trajectories. The `rows` of the question are read from the panel."""
        blocks = self._blocks(panel, windows, asked, _LARGE_BLOCK)
        parts = [self.compiled(trajectories, block) for block in blocks]
        return Trajectories._make(_joined(parts, (1, 1, 1, 0), windows.number, len(asked.times)))

    def spread(
        self, panel: Panel, windows: Windows, asked: Question
    ) -> tuple[np.ndarray, np.ndarray]:
        """Spread of channels and unknowns of each window over draws."""
        samples = self.compiled.network.samples
        if not samples:
            channels = np.zeros((*asked.times.shape, len(panel.channels)))
            return channels, np.zeros((windows.number, 0))
        parts = [
            self.compiled(spread_of_trajectories, block, samples=samples)
            for block in self._blocks(panel, windows, asked, _BLOCK)
        ]
        channels, unknowns = _joined(parts, (1, 0), windows.number, len(asked.times))
        return channels, unknowns

    def _blocks(
        self, panel: Panel, windows: Windows, asked: Question, largest: int
    ) -> Iterator[Question]:
        """All windows in blocks; the last block repeats the last window."""
        size = _BLOCK if windows.number <= _MANY else largest
        gaps, controls = _padded(asked.gaps, asked.controls, zeros=True)
        times, controls_then = _padded(asked.times, asked.controls_then, zeros=False)
        array = self.compiled.array
        for first in range(0, windows.number, size):
            chosen = np.minimum(np.arange(first, first + size), windows.number - 1)
            yield Question(
                rows=self.compiled.observations(panel, windows[chosen], self.context),
                gaps=array(gaps[:, chosen]),
                controls=array(controls[:, chosen]),
                times=array(times[:, chosen]),
                controls_then=array(controls_then[:, chosen]),
            )


def question(
    gaps: np.ndarray, controls: np.ndarray, times: np.ndarray, controls_then: np.ndarray
) -> Question:
    """A question without the observations of its windows, which are read from a panel."""
    return Question(
        rows=None, gaps=gaps, controls=controls, times=times, controls_then=controls_then
    )


def question_inside(
    panel: Panel, windows: Windows, times: np.ndarray, controls_then: np.ndarray
) -> Question:
    """A question for times inside windows: after a window, its last step is repeated."""
    last = panel.controls[windows.series, windows.stop - 1]
    return question(np.zeros((1, windows.number)), last[None], times, controls_then)


def _joined(
    parts: list[Any], axes: tuple[int, ...], windows: int, times: int
) -> tuple[np.ndarray, ...]:
    """Fields of results, concatenated along their axes of windows, without the padding."""
    joined = []
    for field, axis in enumerate(axes):
        whole = np.concatenate([np.asarray(part[field]) for part in parts], axis)
        joined.append(whole[:times, :windows] if axis else whole[:windows])
    return tuple(joined)


def _padded(times: np.ndarray, controls: np.ndarray, zeros: bool) -> tuple[np.ndarray, np.ndarray]:
    """Arrays with a rounded number of steps: the last step is repeated, or its value is zero."""
    missing = rounded_up(len(times)) - len(times)
    last = np.zeros_like(times[-1:]) if zeros else times[-1:]
    return (
        np.concatenate([times, np.repeat(last, missing, axis=0)]),
        np.concatenate([controls, np.repeat(controls[-1:], missing, axis=0)]),
    )
