"""The written equations, evaluated directly: an answer that owes nothing to the code under test.

The text is turned into Python with string replacement and evaluated with jax.numpy. Only the names
of the extended states are taken from the system; they are evaluated as Python, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import lru_cache, reduce

import jax
import jax.numpy as jnp
import numpy as np

from physsm.physics.system import System

_FUNCTIONS = {
    **{name: getattr(jnp, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt")},
    **{name: getattr(jnp, name) for name in ("abs", "sign", "tanh", "clip")},
    "min": lambda *values: reduce(jnp.minimum, values),
    "max": lambda *values: reduce(jnp.maximum, values),
    "pi": np.pi,
}


def written_drift(text: str) -> Callable:
    """dz/dt as a function of (named, anonymous, z, u): dicts and a list of numbers."""
    code = re.sub(r"#.*", "", text)
    code = _ungrouped(code)
    counter = itertools.count()
    code = re.sub(r"\?(?![A-Za-z])", lambda _: f"anonymous_[{next(counter)}]", code)
    code = re.sub(r"\?(\w+)", r"named_['\1']", code)
    equations = dict(re.findall(r"^[ \t]*(\w+)' =(.*(?:\n[ \t]{6,}.*)*)$", code, re.MULTILINE))
    constants = {}
    for name, value in re.findall(r"(?:constant|,) (\w+) = ([^,\n]+)", code):
        try:
            constants[name] = eval(value, dict(_FUNCTIONS), constants)
        except (NameError, SyntaxError):  # a unit: `unit x = m, v = m/s`
            continue

    def drift(named: dict, anonymous: list, z: dict, u: dict) -> list:
        scope = _FUNCTIONS | constants | z | u | {"named_": named, "anonymous_": anonymous}
        return [eval(f"({_round(right)})", scope) for right in equations.values()]

    return drift


def _ungrouped(code: str) -> str:
    """?(a, b) → (?*(a) + ?*(b)), by walking over the characters."""
    while "?(" in code:
        start = code.index("?(")
        depth, parts, last = 0, [], start + 2
        for index in range(start + 1, len(code)):
            depth += (code[index] in "([") - (code[index] in ")]")
            if depth == 0 or (depth == 1 and code[index] == ","):
                parts.append(code[last:index])
                last = index + 1
            if depth == 0:
                group = " + ".join(f"?*({part})" for part in parts)
                code = f"{code[:start]}({group}){code[index + 1 :]}"
                break
    return code


def _round(code: str) -> str:
    """Square brackets to round ones, except those that this module put in."""
    return re.sub(
        r"(named_\['\w+'\]|anonymous_\[\d+\])|(\[)|(\])",
        lambda m: m.group(1) or ("(" if m.group(2) else ")"),
        code,
    )


def true_lifted_derivative(system: System, theta, z, u):
    """d/dt of the extended state: psi's derivative along the written right-hand sides (jvp)."""
    drift = written_drift(system.text)
    named = {x.name: v for x, v in zip(system.unknowns, theta, strict=True) if not x.anonymous}
    anonymous = [v for x, v in zip(system.unknowns, theta, strict=True) if x.anonymous]
    controls = dict(zip(system.controls, u, strict=True))
    states = dict(zip(system.states, z, strict=True))
    velocity = jnp.stack(
        [jnp.asarray(v, z.dtype) for v in drift(named, anonymous, states, controls)]
    )

    def psi(z):
        scope = _FUNCTIONS | dict(zip(system.states, z, strict=True))
        return jnp.stack([jnp.asarray(eval(name, dict(scope)), z.dtype) for name in system.names])

    return jax.jvp(psi, (z,), (velocity,))


def assert_lifted_form_is_true(
    system: System, theta, z, u, tolerance: float, allow_cancellation: bool = False
) -> None:
    """A z_ext + B u is the time derivative of z_ext, relative to the size of its terms.

    `allow_cancellation`: relative to the largest row, because a lifted row repeats the terms of
    written ones inside one entry, where they may cancel.
    """
    z_ext, lifted, A, B, got, size, expected = _both_sides(system)(theta, z, u)
    np.testing.assert_allclose(lifted, z_ext, rtol=tolerance)
    assert A.dtype == B.dtype == z.dtype
    size = np.asarray(size)
    if allow_cancellation:
        size = np.full_like(size, size.max())
    error = np.abs(np.asarray(got) - np.asarray(expected)) / (size + 1e-30)
    assert np.isfinite(np.asarray(got)).all()
    assert error.max() < tolerance, dict(zip(system.names, error, strict=True))


@lru_cache(maxsize=4)
def _both_sides(system: System) -> Callable:
    """One program of the written and the lifted derivative: separate operations would compile a
    program each.
    """

    @jax.jit
    def sides(theta, z, u):
        z_ext, expected = true_lifted_derivative(system, theta, z, u)
        A, B = system.assemble(theta, z_ext, u)
        size = jnp.abs(A) @ jnp.abs(z_ext) + jnp.abs(B) @ jnp.abs(u) + jnp.abs(expected)
        return z_ext, system.lift(z), A, B, A @ z_ext + B @ u, size, expected

    return sides
