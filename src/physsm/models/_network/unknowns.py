"""Unknowns of a system as they are trained: unbounded numbers in units of their natural sizes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._network.scales import Scales
from physsm.nn.layers import on_last_axis, parameter
from physsm.physics.bounds import Bounds
from physsm.physics.constrain import from_bounded, to_bounded
from physsm.physics.structure import Unknown
from physsm.physics.system import System

_START = 0.05  # distance of a start value from a single bound, in the natural size
_MOST_SHARE = 0.999  # of the limit of an unknown without bounds
_NO_LIMIT = 1e6  # of an unknown that need not be limited, in its natural size
_FREE_LIMIT = 3.0  # of unknowns that cannot make the implicit step singular by themselves


def of_kind(system: System, kind: str) -> tuple[int, ...]:
    """Indices of the unknowns of a kind: varying, per series or constant."""
    return tuple(i for i, unknown in enumerate(system.unknowns) if unknown.kind == kind)


def starts(system: System, scales: Scales) -> Float[Array, " unknowns"]:
    """The unknowns before training, unbounded."""
    bounds, sizes = _bounds(system), scales.states.unknown_size
    near = np.array([_start(one, size) for one, size in zip(bounds, sizes, strict=True)])
    return parameter(from_bounded(near, bounds, sizes))


def in_physical_units(
    system: System, scales: Scales, raw: Float[Array, " unknowns"], is_implicit: bool = True
) -> Float[Array, " unknowns"]:
    """Unknowns from unbounded numbers: mapped into their bounds and multiplied by their sizes.

    Where steps are implicit, unknowns without bounds are limited so that no step is singular.
    """
    bounds, size = _bounds(system), on_last_axis(scales.states.unknown_size, raw)
    limit = on_last_axis(_free_limits(system, scales, is_implicit), raw)
    is_free = np.array([not b for b in bounds], bool)
    return jnp.where(is_free, size * limit * jnp.tanh(raw / limit), to_bounded(raw, bounds, size))


def from_physical_units(
    system: System, scales: Scales, theta: Float[np.ndarray, " unknowns"]
) -> Float[np.ndarray, " unknowns"]:
    """The inverse of `in_physical_units`, in double precision. A value on a bound or beyond becomes
    one slightly inside.
    """
    theta, size = np.asarray(theta, float), scales.states.unknown_size
    bounds, limit = _bounds(system), _free_limits(system, scales)
    is_free = np.array([not b for b in bounds], bool)
    share = np.clip(theta / size / limit, -_MOST_SHARE, _MOST_SHARE)
    return np.where(is_free, limit * np.arctanh(share), from_bounded(theta, bounds, size))


def _bounds(system: System) -> list[Bounds]:
    return [unknown.bounds for unknown in system.unknowns]


def _start(bounds: Bounds, size: float) -> float:
    """Value before training: small in its natural size, or the middle of an interval."""
    if bounds.lower is not None and bounds.upper is not None:
        return bounds.lower / 2 + bounds.upper / 2
    if bounds.lower is not None:
        return bounds.lower + _START * size
    return 0.0 if bounds.upper is None else bounds.upper - _START * size


def _free_limits(system: System, scales: Scales, is_implicit: bool = True) -> Any:
    """Largest size of each unknown without bounds, in its natural size: an array of the library
    that the scales are arrays of.

    Where it varies, a network may not make the implicit step singular by a rate above 2/gap on the
    diagonal of A. A constant is fitted: whatever serves best stays, however fast; so does the
    offset of an observation, which may be many scales large.
    """
    span, gap = scales.states.signal_time, scales.table.largest_gap
    numpy: Any = np if isinstance(span, np.ndarray) else jnp
    unknowns = system.unknowns
    is_fitted = [one.kind != "varying" or _is_only_observed(one) for one in unknowns]
    is_without = is_implicit & np.array(is_fitted, bool)
    is_diagonal = is_implicit & np.array([_is_diagonal(one) for one in unknowns], bool)
    # Sizes are per signal time, limits per unit of time.
    rates = numpy.where(is_diagonal, span / numpy.maximum(gap, 1.0), span * _FREE_LIMIT)
    return numpy.where(is_without, _NO_LIMIT, rates)


def _is_only_observed(unknown: Unknown) -> bool:
    """Whether an unknown stands in observations alone, where it is no rate."""
    return all(place.matrix == "observe" for place in unknown.places)


def _is_diagonal(unknown: Unknown) -> bool:
    return any(place.matrix == "A" and place.row == place.column for place in unknown.places)
