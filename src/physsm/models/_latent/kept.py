"""Functions of a network as programs that are kept (see `physsm._programs`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physsm._programs import Program


class Kept:
    """A network to run functions on: `kept(f, *arrays, **settings)` is `f(network, *arrays,
    **settings)`, compiled. `f` is a function of a module; settings are part of the program. The
    network has an `identity`: all but its parameters.
    """

    def __init__(self, network: Any):
        arrays, self._static = eqx.partition(network, eqx.is_array)
        self._leaves, self._structure = jax.tree.flatten(arrays)
        self._identity = network.identity
        self._programs: dict[Any, Program] = {}

    def __call__(self, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """The result of the function."""
        key = (function, *settings.items())
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._program(function, settings)
        return program(self._leaves, *arguments)

    def _program(self, function: Callable[..., Any], settings: dict[str, Any]) -> Program:
        of_network = partial(function, **settings)

        def of_leaves(leaves: list[Array], *arguments: Any) -> Any:
            arrays = jax.tree.unflatten(self._structure, leaves)
            return of_network(eqx.combine(arrays, self._static), *arguments)

        name = f"{function.__module__}.{function.__qualname__}"
        return Program(of_leaves, f"{name} {sorted(settings.items())} {self._identity}")
