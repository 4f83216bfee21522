"""Compiled programs: functions of a network, called with NumPy arrays (see `physsm._programs`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from physsm._programs import Program
from physsm._values import Panel
from physsm.data.window import Windows, gather
from physsm.models._network.observations import FIRST_GAP, Observations, observations


class Call(NamedTuple):
    """A function of a network, with its arguments and settings."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    settings: dict[str, Any]


class CompiledNetwork:
    """A network whose functions are compiled: `compiled(f, *arrays, **settings)` is
    `f(network, *arrays, **settings)`.

    `f` is a function of a module; settings are part of the program. The network has an `identity`
    (all but its parameters), a `dtype` and `scales`. `quick`: see `Program`.
    """

    def __init__(self, network: Any, *, quick: bool = False):
        self.network, self._quick = network, quick
        arrays, self._static = eqx.partition(network, eqx.is_array)
        self._leaves, self._structure = jax.tree.flatten(arrays)
        self._programs: dict[Any, Program] = {}

    def __call__(self, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """The result of the function."""
        return self._of(function, settings)(self._leaves, *arguments)

    def prepare(self, *calls: Call) -> None:
        """Compile the programs of several calls side by side, where that has not been done."""
        needed = [
            (program, call.arguments)
            for call in calls
            if not (program := self._of(call.function, call.settings)).is_prepared(
                self._leaves, *call.arguments
            )
        ]
        if len(needed) < 2:
            return
        is_double = jax.config.jax_enable_x64  # type: ignore[attr-defined]

        def compile_one(program: Program, arguments: tuple[Any, ...]) -> None:
            with jax.enable_x64(is_double):  # which each thread has for itself
                program.prepare(self._leaves, *arguments)

        with ThreadPoolExecutor(len(needed)) as pool:
            list(pool.map(lambda one: compile_one(*one), needed))

    def array(self, array: Any) -> Any:
        """An array in the network's precision. Programs take NumPy's arrays faster than JAX's."""
        return np.asarray(array, self.network.dtype)

    def observations(self, panel: Panel, windows: Windows, context: int) -> Observations:
        """What the network reads of the contexts of windows of a panel in the table's units."""
        scaled = self.network.scales.table.scale(panel)
        batch = gather(scaled, windows, context, 0, FIRST_GAP)
        return Observations(*map(self.array, observations(batch)))

    def _of(self, function: Callable[..., Any], settings: dict[str, Any]) -> Program:
        key = (function, *settings.items())
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._program(function, settings)
        return program

    def _program(self, function: Callable[..., Any], settings: dict[str, Any]) -> Program:
        of_network = partial(function, **settings)

        def of_leaves(leaves: list[Array], *arguments: Any) -> Any:
            arrays = jax.tree.unflatten(self._structure, leaves)
            return of_network(eqx.combine(arrays, self._static), *arguments)

        name = f"{function.__module__}.{function.__qualname__}"
        identity = f"{name} {sorted(settings.items())} {self.network.identity}"
        return Program(of_leaves, identity, quick=self._quick)


def rounded_up(steps: int) -> int:
    """The next of 16, 32, 64, 96, 128, 192, 256; above that, multiples of at most a sixteenth.

    Few shapes are compiled if series are padded to these lengths.
    """
    for length in (16, 32, 64, 96, 128, 192, 256):
        if steps <= length:
            return length
    return _in_sixteenths(steps)


def rounded_number(series: int) -> int:
    """The next of 1, 4, 16, 32, 48, and so on; above 256, multiples of at most a sixteenth.

    Few shapes are compiled if batches are filled to these numbers of series.
    """
    for number in (1, 4):
        if series <= number:
            return number
    return _in_sixteenths(series)


def _in_sixteenths(number: int) -> int:
    unit = 16
    while unit * 16 < number:
        unit *= 2
    return -(-number // unit) * unit


def filled(array: np.ndarray, number: int, axis: int) -> np.ndarray:
    """An array whose last entry along an axis is repeated up to a number of entries."""
    at = np.minimum(np.arange(number), array.shape[axis] - 1)
    return np.take(array, at, axis=axis)
