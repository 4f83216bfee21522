"""Inputs of the linear bypass: scaled controls, and functions of them that the equations name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm._values import Panel
from physsm.data.scale import control_moments
from physsm.models._network.scales import (
    Scales,
    StateScales,
    TableScales,
    as_vector,
    check_positive,
    check_shifts,
    record_from_json,
)
from physsm.physics.program import Program, run_program
from physsm.physics.system import System

Controls = TypeVar("Controls", np.ndarray, Array)

_LARGEST = 30.0  # scaled: a function may have a pole
_FURTHEST = 10_000  # lags


class BypassShape(eqx.Module):
    """Lags and input scales of a linear bypass; without any offset there is no bypass.

    `offsets` are the time steps that it reads, counted back from the last. It reads only the first
    `short` of them (0: all) where a series has not yet as many steps. Scaled functions of controls
    are (f(u) - shift)/scale.
    """

    offsets: tuple[int, ...] = eqx.field(static=True, default=())
    short: int = eqx.field(static=True, default=0)
    function_shift: Float[np.ndarray, " functions"] = eqx.field(converter=as_vector, default=())
    function_scale: Float[np.ndarray, " functions"] = eqx.field(converter=as_vector, default=())

    def __check_init__(self) -> None:
        check_positive(self.function_scale)
        check_shifts(self.function_shift, self.function_scale)
        if not all(0 <= offset <= _FURTHEST for offset in self.offsets):
            raise ValueError("an offset is out of range")
        if not 0 <= self.short <= len(self.offsets):
            raise ValueError("a short memory is longer than the whole one")


class PhySSMScales(Scales):
    """Scales of a Phy-SSM network."""

    bypass: BypassShape = eqx.field(default_factory=BypassShape)

    @classmethod
    def from_json(cls, content: Any) -> PhySSMScales:
        """The inverse of `to_json`."""
        return cls(
            table=record_from_json(TableScales, content["table"]),
            states=record_from_json(StateScales, content["states"]),
            bypass=record_from_json(BypassShape, content["bypass"]),
        )


class BypassInputs(eqx.Module):
    """Scaled controls, then scaled functions of them, on the last axis."""

    table: TableScales
    shape: BypassShape = eqx.field(default_factory=BypassShape)
    functions: Program | None = eqx.field(static=True, default=None)
    used: tuple[int, ...] = eqx.field(static=True, default=())

    @classmethod
    def of(cls, system: System | None, scales: PhySSMScales) -> BypassInputs:
        """The inputs for a system."""
        if system is None or not len(scales.bypass.function_scale):
            return cls(scales.table, scales.bypass)
        used = tuple(scales.table.controls.index(name) for name in system.controls)
        return cls(scales.table, scales.bypass, system.control_functions, used)

    @property
    def count(self) -> int:
        """The number of inputs."""
        return len(self.table.controls) + len(self.shape.function_scale)

    def __call__(self, u: Controls) -> Controls:
        """From controls in the units of the table, shape (..., controls)."""
        numpy: Any = np if isinstance(u, np.ndarray) else jnp
        scaled = _scaled(u, self.table.control_shift, self.table.control_scale)
        if self.functions is None:
            return scaled
        values = run_program(self.functions, [u[..., i] for i in self.used], numpy)
        stacked = numpy.stack(values, -1)
        terms = _scaled(stacked, self.shape.function_shift, self.shape.function_scale)
        return numpy.concatenate(
            [scaled, numpy.clip(numpy.nan_to_num(terms), -_LARGEST, _LARGEST)], -1
        )


def function_scales(system: System | None, table: TableScales, panel: Panel) -> BypassShape:
    """Mean and scale of the functions of controls, unless one has no value somewhere."""
    if system is None or not system.control_functions.outputs:
        return BypassShape()
    used = [table.controls.index(name) for name in system.controls]
    with np.errstate(all="ignore"):
        columns = run_program(system.control_functions, [panel.controls[..., i] for i in used], np)
        values = np.stack(columns, -1)
        shift, scale = control_moments(replace(panel, controls=values))
        # Networks compute in single precision.
        can_be_used = np.isfinite([shift, scale]).all() and np.isfinite(np.float32(values)).all()
    if not can_be_used:
        return BypassShape()
    return BypassShape(function_shift=shift, function_scale=scale)


def _scaled(u: Controls, shift: Any, scale: Any) -> Controls:
    numpy: Any = np if isinstance(u, np.ndarray) else jnp
    shape = (1,) * (u.ndim - 1) + (-1,)
    shifts, scales = (numpy.asarray(numbers, u.dtype).reshape(shape) for numbers in (shift, scale))
    return (u - shifts) / scales
