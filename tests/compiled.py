"""Functions of arrays as one program: JAX would compile each of their operations on its own."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled, with results in NumPy, whose parts can be taken without compiling."""
    program = eqx.filter_jit(function)

    def run(*arguments: Any) -> Any:
        return jax.device_get(program(*arguments))

    return run
