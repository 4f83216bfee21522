"""`System`: a physics text compiled to array functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm._errors import did_you_mean
from physsm.physics.bounds import Bounds
from physsm.physics.clip_states import clip_states
from physsm.physics.compiled import (
    CompiledMatrices,
    compile_drift,
    compile_matrices,
    compile_observations,
    evaluate,
)
from physsm.physics.constrain import from_bounded, to_bounded
from physsm.physics.program import Program, compile_program
from physsm.physics.read import load_structure, parse_structure, read_structure
from physsm.physics.structure import Overlap, Structure, Unknown

Vector = Array | np.ndarray


class System(eqx.Module):
    """Partly known dynamical system `d/dt z_ext = A z_ext + B u`, linear in the extended state.

    `z_ext` holds the written states, then the lifted functions of them (such as sin(theta)), then
    the constant 1 where a term needs it. `A` and `B` depend on the states, the controls and,
    linearly, on `theta`, which holds one number for each unknown (`?`) of the text. A network that
    predicts theta therefore fills exactly the unknown entries: this is the knowledge mask.

    All functions take one sample (`vmap` for more), follow the dtype of their arguments, and work
    under `jit`, `vmap` and `grad`. Shapes: n states, d extended states, m controls, k unknowns.
    `control_functions` is a program for the functions of controls alone in the text.

    Functions see states clipped to their declared bounds (`state h >= 0`), so sqrt(h) always has a
    value, and all slopes are finite, also on the bound and beyond it.
    """

    structure: Structure = eqx.field(static=True)
    _lift: Program = eqx.field(static=True)
    _known: CompiledMatrices = eqx.field(static=True)
    _full: CompiledMatrices = eqx.field(static=True)
    _drift: Program = eqx.field(static=True)
    _observe: Program = eqx.field(static=True)
    control_functions: Program = eqx.field(static=True)

    def __init__(self, structure: Structure):
        self.structure = structure
        inputs = (*structure.states, *structure.physics.controls)
        functions = structure.extended[len(structure.states) :]
        self._lift = compile_program(functions, structure.states, structure.bounded)
        self._known = compile_matrices(structure, inputs, known_only=True)
        everything = (*inputs, *structure.symbols)
        self._full = compile_matrices(structure, everything, known_only=False)
        self._drift = compile_drift(structure, everything)
        self._observe = compile_observations(structure, everything)
        self.control_functions = compile_program(
            structure.control_terms, structure.physics.controls
        )

    @classmethod
    def parse(cls, text: str) -> System:
        """Compile a physics text."""
        return cls(parse_structure(text))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> System:
        """Compile a `.phys` file."""
        return cls(read_structure(path))

    @classmethod
    def load(cls, name: str) -> System:
        """Compile a built-in system, such as "pendulum"; `physsm systems` lists them."""
        return cls(load_structure(name))

    def __repr__(self) -> str:
        lifted = self.names[len(self.states) :]
        parts = [f"states={list(self.states)}"]
        parts += [f"lifted={list(lifted)}"] if lifted else []
        parts += [f"controls={list(self.controls)}"] if self.controls else []
        parts += (
            [f"unknowns={[unknown.name for unknown in self.unknowns]}"] if self.unknowns else []
        )
        return f"System({', '.join(parts)})"

    # Properties of the system.

    @property
    def text(self) -> str:
        """Physics text: `System.parse(system.text)` is an equal system."""
        return self.structure.text

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the extended states, length d."""
        return self.structure.names

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the written states, length n: the first n of `names`."""
        return self.names[: len(self.structure.states)]

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the controls, length m."""
        return self.structure.controls

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Unknowns in the order of the equations, then of observations: the k elements of theta."""
        return self.structure.unknowns

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed channels, in written order; empty if a decoder must be learned."""
        return self.structure.observed

    @property
    def observed_states(self) -> tuple[int, ...]:
        """Index of the state that an observed channel is, or -1 for a function of states."""
        return self.structure.observed_states

    @property
    def holds(self) -> dict[str, str]:
        """Declared holds of controls between time steps: "previous", "linear" or "mean"."""
        return dict(self.structure.physics.holds)

    @property
    def units(self) -> dict[str, str]:
        """Units of states, controls, constants and unknowns (`?name`) that the text declares."""
        return dict(self.structure.physics.units)

    @property
    def constants(self) -> dict[str, float]:
        """Constants of the text."""
        return dict(self.structure.physics.constants)

    @property
    def state_bounds(self) -> tuple[Bounds, ...]:
        """Bounds of the written states, length n."""
        return self.structure.state_bounds

    @property
    def mask_A(self) -> np.ndarray:
        """True where A holds an unknown, shape (d, d)."""
        return self.structure.mask("A")

    @property
    def mask_B(self) -> np.ndarray:
        """True where B holds an unknown, shape (d, m)."""
        return self.structure.mask("B")

    @property
    def invariants(self) -> tuple[str, ...]:
        """Linear conserved quantities, such as `S + I + R`."""
        return self.structure.invariant_texts

    @property
    def invariant_weights(self) -> np.ndarray:
        """Weights of the invariants over the extended state, shape (number, d)."""
        return self.structure.invariants.copy()

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Entries with more than one part, from the check of Proposition 1."""
        return self.structure.overlaps

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of the text, such as parts that are not identifiable, with advice."""
        return self.structure.warnings

    # Functions of the system.

    def lift(self, z: Float[Vector, " n"]) -> Float[Array, " d"]:
        """Extended state of a state: the state as given, then functions of the clipped state."""
        z = _vector(z, self.states, "z", "state")
        return jnp.concatenate([z, evaluate(self._lift, self._clipped(z))])

    def A_known(self, z_ext: Float[Vector, " d"], u: Float[Vector, " m"]) -> Float[Array, "d d"]:
        """A without its unknown parts."""
        return self._known.evaluate(self._inputs(z_ext, u))[0]

    def B_known(self, z_ext: Float[Vector, " d"], u: Float[Vector, " m"]) -> Float[Array, "d m"]:
        """B without its unknown parts."""
        return self._known.evaluate(self._inputs(z_ext, u))[1]

    def assemble(
        self, theta: Float[Vector, " k"], z_ext: Float[Vector, " d"], u: Float[Vector, " m"]
    ) -> tuple[Float[Array, "d d"], Float[Array, "d m"]]:
        """A and B with the values of the unknowns.

        Entries depend on the written states, `z_ext[:n]`: lifted states are only columns.
        """
        theta = _vector(theta, self.unknowns, "theta", "unknown")
        return self._full.evaluate(jnp.concatenate([self._inputs(z_ext, u), theta]))

    def drift(
        self, theta: Float[Vector, " k"], z: Float[Vector, " n"], u: Float[Vector, " m"]
    ) -> Float[Array, " n"]:
        """Written right-hand sides, `dz/dt`."""
        z = _vector(z, self.states, "z", "state")
        u = _vector(u, self.controls, "u", "control")
        theta = _vector(theta, self.unknowns, "theta", "unknown")
        return evaluate(self._drift, jnp.concatenate([self._clipped(z), u, theta]))

    def observe(
        self, theta: Float[Vector, " k"], z: Float[Vector, " n"], u: Float[Vector, " m"]
    ) -> Float[Array, " observed"]:
        """Values of the observed channels: states as given, and functions of the clipped state."""
        z = _vector(z, self.states, "z", "state")
        u = _vector(u, self.controls, "u", "control")
        theta = _vector(theta, self.unknowns, "theta", "unknown")
        functions = evaluate(self._observe, jnp.concatenate([self._clipped(z), u, theta]))
        states = np.asarray(self.observed_states, int)
        # Functions follow the states in one vector; each channel takes its own element.
        position = np.where(states >= 0, states, len(z) + np.cumsum(states < 0) - 1)
        return jnp.concatenate([z, functions])[position]

    def theta(self, values: Mapping[str, float | Array]) -> Float[Array, " k"]:
        """Vector of unknowns from their names: `system.theta({"beta": 0.3, "gamma": 0.1})`."""
        names = [unknown.name for unknown in self.unknowns]
        if missing := [name for name in names if name not in values]:
            raise ValueError(f"no value for the unknown {', '.join(missing)}")
        if extra := [name for name in values if name not in names]:
            hint = did_you_mean(extra[0], names) or f"the unknowns are {', '.join(names)}"
            raise ValueError(f"there is no unknown {extra[0]!r}: {hint}")
        reals = [jnp.asarray(values[name], jnp.result_type(float)) for name in names]
        return jnp.stack(reals) if reals else jnp.zeros(0)

    def constrain(self, raw: Float[Vector, " k"]) -> Float[Array, " k"]:
        """Theta within its bounds, from any real numbers."""
        raw = _vector(raw, self.unknowns, "raw", "unknown")
        return to_bounded(raw, [unknown.bounds for unknown in self.unknowns])

    def unconstrain(self, theta: Float[Vector, " k"]) -> Float[Array, " k"]:
        """Inverse of `constrain`. A value on a bound or beyond becomes one just inside."""
        theta = _vector(theta, self.unknowns, "theta", "unknown")
        return from_bounded(theta, [unknown.bounds for unknown in self.unknowns])

    def constrain_state(self, raw: Float[Vector, " n"]) -> Float[Array, " n"]:
        """State within its bounds, from any real numbers."""
        return to_bounded(_vector(raw, self.states, "raw", "state"), self.state_bounds)

    def unconstrain_state(self, z: Float[Vector, " n"]) -> Float[Array, " n"]:
        """Inverse of `constrain_state`. A value on a bound or beyond becomes one just inside."""
        return from_bounded(_vector(z, self.states, "z", "state"), self.state_bounds)

    def _inputs(self, z_ext: Vector, u: Vector) -> Array:
        z_ext = _vector(z_ext, self.names, "z_ext", "extended state")
        u = _vector(u, self.controls, "u", "control")
        return jnp.concatenate([self._clipped(z_ext[: len(self.states)]), u])

    def _clipped(self, z: Array) -> Array:
        bounds = self.structure.state_bounds
        return clip_states(z, bounds) if any(bounds) else z


def _vector(value: Vector, members: Sequence[object], name: str, of_what: str) -> Array:
    """Vector with one number per member, checked: JAX would silently clamp an index beyond it."""
    vector = jnp.asarray(value)
    if vector.shape != (len(members),):
        raise ValueError(
            f"{name} has the shape {vector.shape} and must have ({len(members)},): "
            f"one number per {of_what}; use jax.vmap for many samples"
        )
    if jnp.issubdtype(vector.dtype, jnp.complexfloating):
        raise TypeError(f"{name} holds complex numbers and must hold real ones")
    is_real = jnp.issubdtype(vector.dtype, jnp.floating)
    return vector if is_real else vector.astype(jnp.result_type(float))
