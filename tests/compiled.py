"""Functions of arrays as one program: JAX would compile each of their operations on its own."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from physsm.nn.parameter_groups import is_parameter


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled, with results in NumPy, whose parts can be taken without compiling."""
    program = eqx.filter_jit(function)

    def run(*arguments: Any) -> Any:
        return jax.device_get(program(*arguments))

    return run


def value_and_gradient(function: Callable[[Any], Any], module: Any, has_aux: bool = False) -> Any:
    """The value of a function of a module, and its gradient by the module's parameters."""
    parameters, rest = eqx.partition(module, is_parameter)

    def of_parameters(parameters: Any) -> Any:
        return function(eqx.combine(parameters, rest))

    return jax.jit(jax.value_and_grad(of_parameters, has_aux=has_aux))(parameters)
