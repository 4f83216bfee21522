"""Starts of the grey box: unknowns by regression where all states are known, and random draws.

The regression is in weak form: over a window from row a to row b the change of a state is the
integral of its right-hand side, which is linear in the unknowns. Noise of the measurements counts
once for a window, not once for each gap.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.random import Generator

from physsm._values import Panel, Series
from physsm.models._network.compiled import filled, rounded_up
from physsm.models._network.unknowns import from_physical_units
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.physics.bounds import Bounds, limits
from physsm.physics.structure import slope_of
from physsm.physics.system import System

_MOST_ROWS = 5000
_RIDGE = 1e-6
_LEAST_POWER, _MOST_POWER = -1.5, 0.5  # of ten, of a random unknown in its natural size


def hidden_states(unit: PhysicsUnit) -> Bool[np.ndarray, " n"]:
    """Which states are neither a channel nor the derivative of a state that is one."""
    place = unit.scales.states.channel_of_state
    sources = [slope_of(unit.system.structure, state) for state in range(unit.size)]
    return np.array(
        [
            place[state] < 0 and (source < 0 or place[source] < 0)
            for state, source in enumerate(sources)
        ],
        bool,
    )


@eqx.filter_jit
def _linear_in_unknowns(system: System, z: Array, u: Array) -> tuple[Array, Array]:
    """Right-hand sides at many points as `known + factors @ theta`."""

    def one(z: Array, u: Array) -> tuple[Array, Array]:
        zeros = jnp.zeros(len(system.unknowns), z.dtype)
        return system.drift(zeros, z, u), jax.jacfwd(system.drift)(zeros, z, u)

    return jax.vmap(one)(z, u)


def _right_hand_sides(
    system: System, each: list[tuple[Series, np.ndarray]], columns: list[int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Known parts and factors of the unknowns along series with known states. All rows together, in
    a rounded number: a program is compiled for each.
    """
    if not each:
        return []
    z = np.concatenate([states for _, states in each])
    u = np.concatenate([one.controls[:, columns] for one, _ in each])
    number = rounded_up(len(z))
    with jax.enable_x64(True):
        parts = _linear_in_unknowns(
            system, jnp.asarray(filled(z, number, 0)), jnp.asarray(filled(u, number, 0))
        )
        known, factors = (np.asarray(part)[: len(z)] for part in parts)
    stops = np.cumsum([len(states) for _, states in each])[:-1]
    return list(zip(np.split(known, stops), np.split(factors, stops), strict=True))


def regression(
    unit: PhysicsUnit,
    scaled: Panel,
    states: Float[np.ndarray, "series rows n"],
    window: int,
) -> Float[np.ndarray, " k"]:
    """Unknowns in physical units by least squares over windows of some rows, of series whose states
    are all known, whatever their bounds.
    """
    system, scales = unit.system, unit.scales
    size, unit_of_time = scales.states.state_scale, scales.table.time_scale
    columns = [scales.table.controls.index(name) for name in system.controls]
    chosen = _some(scaled)
    each = [
        (one, states[i][: len(one.times)] * size)
        for i, one in zip(chosen, scaled.select(chosen), strict=True)
        if len(one.times) > window
    ]
    targets, features = [], []
    for (one, z), (known, factors) in zip(
        each, _right_hand_sides(system, each, columns), strict=True
    ):
        rows = len(one.times)
        gap = np.diff(one.times)[:, None] * unit_of_time
        starts = np.arange(0, rows - window, max(1, window // 2))
        change = z[starts + window] - z[starts]
        targets.append((change - _integral(known, gap, starts, window)) / size)
        weighted = _integral(factors.reshape(rows, -1), gap, starts, window)
        features.append(weighted.reshape(len(starts), *factors.shape[1:]) / size[:, None])
    if not targets:
        return np.zeros(len(system.unknowns))
    target = np.concatenate(targets).reshape(-1)
    feature = np.concatenate(features).reshape(len(target), -1)
    usable = np.isfinite(target) & np.isfinite(feature).all(1)
    target, feature = target[usable], feature[usable]
    norm = np.sqrt((feature**2).sum(0))
    norm = np.where(norm > 0, norm, 1.0)
    gram = (feature / norm).T @ (feature / norm) + _RIDGE * np.eye(feature.shape[1])
    return np.linalg.solve(gram, (feature / norm).T @ target) / norm


def _some(panel: Panel) -> np.ndarray:
    """Evenly spaced series with at most `_MOST_ROWS` rows together, at least one."""
    count = max(1, int(min(1.0, _MOST_ROWS / panel.lengths.sum()) * len(panel)))
    return np.unique(np.linspace(0, len(panel) - 1, count).round().astype(int))


def _integral(values: np.ndarray, gap: np.ndarray, starts: np.ndarray, window: int) -> np.ndarray:
    """Integrals over windows, by the trapezoidal rule; NaN where a value is not finite."""
    pieces = (values[1:] + values[:-1]) / 2 * gap
    is_known = np.isfinite(pieces)
    total = np.pad(np.cumsum(np.where(is_known, pieces, 0), axis=0), ((1, 0), (0, 0)))
    unknown = np.pad(np.cumsum(~is_known, axis=0), ((1, 0), (0, 0)))
    is_whole = unknown[starts + window] == unknown[starts]
    return np.where(is_whole, total[starts + window] - total[starts], np.nan)


def as_shared(unit: PhysicsUnit, theta: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Unknowns in physical units as the unit trains them, moved inside their bounds."""
    bounds = [unknown.bounds for unknown in unit.system.unknowns]
    size = unit.scales.states.unknown_size
    low, high = (np.array(end, float) for end in limits(bounds))
    inset = np.minimum(0.01 * size, np.where(np.isfinite(high - low), 0.01 * (high - low), np.inf))
    inside = np.clip(np.where(np.isfinite(theta), theta, size), low + inset, high - inset)
    return from_physical_units(unit.system, unit.scales, inside)


def physical(unit: PhysicsUnit, shared: np.ndarray) -> np.ndarray:
    """Unknowns in physical units, with per-series terms of zero."""
    with jax.enable_x64(True):
        precise = eqx.tree_at(lambda u: u.constants, unit, np.asarray(shared, float))
        zeros = jnp.zeros(len(unit.varying)), jnp.zeros(len(unit.per_series))
        return np.asarray(jax.jit(lambda unit: unit.theta(*zeros))(precise))


def random_unknowns(unit: PhysicsUnit, rng: Generator) -> Float[np.ndarray, " k"]:
    """A draw of the unknowns in physical units: sizes spread over powers of ten, within bounds."""
    sizes = unit.scales.states.unknown_size
    # A rate may be as fast as the sampling, however slowly the signal wanders.
    highest = max(_MOST_POWER, float(np.log10(unit.scales.states.signal_time)))
    drawn = [
        _draw(unknown.bounds, size, highest, rng)
        for unknown, size in zip(unit.system.unknowns, sizes, strict=True)
    ]
    return np.array(drawn)


def _draw(bounds: Bounds, size: float, highest: float, rng: Generator) -> float:
    amount = size * 10 ** rng.uniform(_LEAST_POWER, highest)
    is_up = rng.random() < 0.5
    low, high = bounds.ends
    if np.isfinite(low) and np.isfinite(high):
        if rng.random() < 0.5:
            return float(rng.uniform(low, high))
        return float(np.clip(low + amount if is_up else high - amount, low, high))
    if np.isfinite(low):
        return low + amount
    if np.isfinite(high):
        return high - amount
    return amount if is_up else -amount
