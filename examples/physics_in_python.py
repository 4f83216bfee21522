"""A physics text as functions on JAX arrays, for a model or a solver of your own.

`--quick` changes nothing here: nothing is trained.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp

import physsm


def main(quick: bool) -> None:
    """An epidemic: matrices, bounds, a conserved sum, and one gradient through all of it."""
    system = physsm.System.load("sir_conserving")
    print(system.states, system.invariants)  # S + I + R never changes

    state, no_control = jnp.array([0.99, 0.01, 0.0]), jnp.zeros(0)

    def infected_after_a_step(raw: jax.Array) -> jax.Array:
        theta = system.constrain(raw)  # any numbers become allowed rates
        A, B = system.assemble(theta, system.lift(state), no_control)
        change = A @ system.lift(state) + B @ no_control
        return (state + 0.1 * change[:3])[1]

    raw = jnp.zeros(len(system.unknowns))
    print("infected:", infected_after_a_step(raw))
    print("and how it depends on the unknowns:", jax.grad(infected_after_a_step)(raw))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="changes nothing here")
    main(parser.parse_args().quick)
