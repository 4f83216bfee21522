"""Evaluation of programs on JAX arrays, and of matrices whose entries are programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import lax
from jaxtyping import Array, Float

from physsm.physics.program import Program, compile_program, run_program
from physsm.physics.structure import Structure


@partial(jax.jit, static_argnums=0)
def evaluate(program: Program, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    """Values of a program at one point; `vmap` for many."""
    if not program.outputs:
        return jnp.zeros(0, inputs.dtype)
    # One split: the gradient of each single index would be a whole array.
    scalars = [part.reshape(()) for part in lax.split(inputs, (1,) * inputs.shape[0])]
    values = run_program(program, scalars, jnp)
    return jnp.stack([jnp.asarray(value, inputs.dtype) for value in values])


@dataclass(frozen=True)
class CompiledMatrices:
    """A and B as a program for their nonzero entries; `places` are their flat indices in [A B]."""

    program: Program
    places: tuple[int, ...]
    rows: int
    columns: int

    def evaluate(
        self, inputs: Float[Array, " inputs"]
    ) -> tuple[Float[Array, "d d"], Float[Array, "d m"]]:
        """A and B at one point."""
        flat = jnp.zeros(self.rows * self.columns, inputs.dtype)
        # With sorted and unique indices the gradient of this scatter is a plain gather.
        flat = flat.at[np.asarray(self.places, int)].set(
            evaluate(self.program, inputs), unique_indices=True, indices_are_sorted=True
        )
        matrices = flat.reshape(self.rows, self.columns)
        return matrices[:, : self.rows], matrices[:, self.rows :]


def compile_drift(structure: Structure, symbols: Sequence[sp.Symbol]) -> Program:
    """Program of the written right-hand sides, without the lifted rows, which may have kinks."""
    sides: list[list[sp.Expr]] = [[] for _ in structure.states]
    columns = ((structure.A, structure.extended), (structure.B, structure.physics.controls))
    for entries, names in columns:
        for (i, j), entry in entries.items():
            if i < len(sides):
                parts = [factor * (s or sp.S.One) for s, factor in entry.parts()]
                sides[i] += [part * names[j] for part in parts]
    return compile_program([sp.Add(*terms) for terms in sides], symbols, structure.bounded)


def compile_observations(structure: Structure, symbols: Sequence[sp.Symbol]) -> Program:
    """Program of the observed channels that are functions of states."""
    values = [
        sp.Add(entry.known, *(symbol * factor for symbol, factor in entry.factors.items()))
        for entry, state in zip(structure.observations, structure.observed_states, strict=True)
        if state < 0
    ]
    return compile_program(values, symbols, structure.bounded)


def compile_matrices(
    structure: Structure, symbols: Sequence[sp.Symbol], known_only: bool
) -> CompiledMatrices:
    """Matrices of a structure, compiled as functions of `symbols`."""
    rows = len(structure.names)
    columns = rows + len(structure.controls)
    values: dict[int, sp.Expr] = {}
    for offset, entries in ((0, structure.A), (rows, structure.B)):
        for (i, j), entry in entries.items():
            unknown = [] if known_only else [s * factor for s, factor in entry.factors.items()]
            value = sp.Add(entry.known, *unknown)
            if value != 0:
                values[i * columns + offset + j] = value
    places = tuple(sorted(values))
    program = compile_program([values[place] for place in places], symbols, structure.bounded)
    return CompiledMatrices(program, places, rows, columns)
