"""A network on windows of a panel: in NumPy, in blocks of one shape, around compiled programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from physsm._values import Panel
from physsm.data.window import Windows, gather
from physsm.models._latent.kept import Kept
from physsm.models._latent.rows import Observations
from physsm.models._latent.shapes import rounded_up
from physsm.models._trajectory.compute import Asked, answer, spread_of_answers
from physsm.models._trajectory.network import Trajectory
from physsm.models._trajectory.values import FIRST_GAP

_BLOCK, _LARGE_BLOCK = 32, 256  # windows that are run at once: of a few, and of very many
_MANY = 512


class Future(NamedTuple):
    """Rows after each window: gaps before them, scaled, and controls; time first."""

    gaps: Float[np.ndarray, "future windows"]
    controls: Float[np.ndarray, "future windows controls"]


class Wanted(NamedTuple):
    """Scaled times since the first row of each window, and controls then; time first."""

    times: Float[np.ndarray, "times windows"]
    controls: Float[np.ndarray, "times windows controls"]


class Found(NamedTuple):
    """Scaled channels and states at the wanted times of each window, whether a solver came so far,
    and the unknowns.
    """

    channels: Float[np.ndarray, "times windows channels"]
    z: Float[np.ndarray, "times windows d"]
    is_reached: Bool[np.ndarray, "times windows"]
    unknowns: Float[np.ndarray, "windows unknowns"]


def no_future(panel: Panel, windows: Windows) -> Future:
    """For windows of which only times inside are wanted: their last rows again."""
    last = panel.controls[windows.series, windows.stop - 1]
    return Future(np.zeros((1, windows.number)), last[None])


class OnWindows:
    """A network that is asked for times of windows, of at most `context` rows each."""

    def __init__(self, network: Trajectory, context: int):
        self.network, self.context = network, rounded_up(context)
        self._run = Kept(network)

    def ask(
        self, panel: Panel, windows: Windows, future: Future, wanted: Wanted, wants_spread: bool
    ) -> tuple[Found, Float[np.ndarray, "times windows channels"] | None]:
        """By means; and, if it is wanted, how far channels come apart over draws."""
        asked = (panel, windows, future, wanted)
        parts = [self._run(answer, block) for block in self._blocks(*asked)]
        found = Found(*_joined(parts, (1, 1, 1, 0), windows.number, len(wanted.times)))
        return found, self.spread(*asked)[0] if wants_spread else None

    def spread(
        self, panel: Panel, windows: Windows, future: Future, wanted: Wanted
    ) -> tuple[np.ndarray, np.ndarray]:
        """How far channels and unknowns of each window come apart over draws."""
        samples = self.network.samples
        if not samples:
            channels, unknowns = len(panel.channels), 0
            return np.zeros((*wanted.times.shape, channels)), np.zeros((windows.number, unknowns))
        parts = [
            self._run(spread_of_answers, block, samples=samples)
            for block in self._blocks(panel, windows, future, wanted, most=_BLOCK)
        ]
        channels, unknowns = _joined(parts, (1, 0), windows.number, len(wanted.times))
        return channels, unknowns

    def _blocks(
        self,
        panel: Panel,
        windows: Windows,
        future: Future,
        wanted: Wanted,
        most: int = _LARGE_BLOCK,
    ) -> Iterator[Asked]:
        """All windows; the last block is filled up with the last window."""
        size = _BLOCK if windows.number <= _MANY else most
        scaled = self.network.plan.scale(panel)
        gaps, controls = _padded(*future, zeros=True)
        times, controls_then = _padded(*wanted, zeros=False)
        for first in range(0, windows.number, size):
            chosen = np.minimum(np.arange(first, first + size), windows.number - 1)
            batch = gather(scaled, windows[chosen], self.context, 0, FIRST_GAP)
            rows = (batch.last, batch.seen, batch.controls, batch.gaps)
            asked = (gaps, controls, times, controls_then)
            yield Asked(
                Observations(*map(self._array, rows)),
                *(self._array(array[:, chosen]) for array in asked),
            )

    def _array(self, array: np.ndarray) -> Any:
        """For a program, which takes NumPy's arrays faster than JAX would make its own of them."""
        return np.asarray(array, self.network.dtype)


def _joined(
    parts: list[Any], axes: tuple[int, ...], windows: int, times: int
) -> tuple[np.ndarray, ...]:
    """Fields of answers, along their axes of windows, without what only fills up a shape."""
    found = []
    for field, axis in enumerate(axes):
        whole = np.concatenate([np.asarray(part[field]) for part in parts], axis)
        found.append(whole[:times, :windows] if axis else whole[:windows])
    return tuple(found)


def _padded(first: np.ndarray, controls: np.ndarray, zeros: bool) -> tuple[np.ndarray, np.ndarray]:
    """After the last row, zeros or the same again; controls stay."""
    missing = rounded_up(len(first)) - len(first)
    last = np.zeros_like(first[-1:]) if zeros else first[-1:]
    return (
        np.concatenate([first, np.repeat(last, missing, axis=0)]),
        np.concatenate([controls, np.repeat(controls[-1:], missing, axis=0)]),
    )
