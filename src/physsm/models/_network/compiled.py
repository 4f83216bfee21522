"""Compiled programs: functions of a network, called with NumPy arrays (see `physsm._programs`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from physsm._programs import Program
from physsm._values import Panel
from physsm.data.window import Windows, gather
from physsm.models._network.observations import FIRST_GAP, Observations, observations


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
        key = (function, *settings.items())
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._program(function, settings)
        return program(self._leaves, *arguments)

    def array(self, array: Any) -> Any:
        """An array in the network's precision. Programs take NumPy's arrays faster than JAX's."""
        return np.asarray(array, self.network.dtype)

    def observations(self, panel: Panel, windows: Windows, context: int) -> Observations:
        """What the network reads of the contexts of windows of a panel in the table's units."""
        scaled = self.network.scales.table.scale(panel)
        batch = gather(scaled, windows, context, 0, FIRST_GAP)
        return Observations(*map(self.array, observations(batch)))

    def _program(self, function: Callable[..., Any], settings: dict[str, Any]) -> Program:
        of_network = partial(function, **settings)

        def of_leaves(leaves: list[Array], *arguments: Any) -> Any:
            arrays = jax.tree.unflatten(self._structure, leaves)
            return of_network(eqx.combine(arrays, self._static), *arguments)

        name = f"{function.__module__}.{function.__qualname__}"
        identity = f"{name} {sorted(settings.items())} {self.network.identity}"
        return Program(of_leaves, identity, quick=self._quick)


def rounded_up(steps: int) -> int:
    """The next of 16, 32, 48, and so on; above 256, multiples of at most a sixteenth.

    Few shapes are compiled if series are padded to these lengths.
    """
    unit = 16
    while unit * 16 < steps:
        unit *= 2
    return -(-steps // unit) * unit
