"""What a direct path is told of the controls: them, and the functions that equations name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physsm.models._latent.plan import Plan
from physsm.physics.program import Program, run_program
from physsm.physics.system import System

Controls = TypeVar("Controls", np.ndarray, Array)

_LARGEST = 30.0  # scaled: a function may have a pole


@dataclass(frozen=True)
class PathInputs:
    """Scaled controls, then scaled functions of them, on the last axis."""

    plan: Plan
    functions: Program | None = None
    used: tuple[int, ...] = ()

    @classmethod
    def of(cls, system: System | None, plan: Plan) -> PathInputs:
        """Those of a network."""
        if system is None or not plan.term_scale:
            return cls(plan)
        used = tuple(plan.controls.index(name) for name in system.controls)
        return cls(plan, system.control_functions, used)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.plan.controls) + len(self.plan.term_scale)

    def __call__(self, u: Controls) -> Controls:
        """From controls in the units of the table, shape (..., controls)."""
        numpy: Any = np if isinstance(u, np.ndarray) else jnp
        scaled = _scaled(u, self.plan.control_shift, self.plan.control_scale)
        if self.functions is None:
            return scaled
        values = run_program(self.functions, [u[..., i] for i in self.used], numpy)
        terms = _scaled(numpy.stack(values, -1), self.plan.term_shift, self.plan.term_scale)
        return numpy.concatenate(
            [scaled, numpy.clip(numpy.nan_to_num(terms), -_LARGEST, _LARGEST)], -1
        )


def _scaled(u: Controls, shift: Sequence[float], scale: Sequence[float]) -> Controls:
    shape = (1,) * (u.ndim - 1) + (-1,)
    shifts, scales = (np.asarray(numbers, u.dtype).reshape(shape) for numbers in (shift, scale))
    return (u - shifts) / scales
