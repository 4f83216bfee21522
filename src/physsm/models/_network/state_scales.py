"""Scales of the states of a system, from the training part: of measured states those of their
channels, of others first guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.models._network.scales import StateScales, TableScales
from physsm.physics.structure import slope_of
from physsm.physics.system import System

_DRAWS = 256
_WITHIN = 0.683  # share of normal draws within one standard deviation
_SPREADS = (1.0, 4.0, 16.0, 64.0)  # of draws of states, in their scales


def state_scales(
    system: System | None, table: TableScales, panel: Panel, ground_states: bool
) -> StateScales:
    """Scales of the states: those of the channels that measure them, if `ground_states`; else 1."""
    nothing_measured = (-1,) * len(table.channels)
    if system is None:
        return StateScales(nothing_measured)
    _check_columns(system, table, ground_states)
    if not ground_states:
        return StateScales(
            measured=nothing_measured,
            state_scale=(1.0,) * len(system.states),
            state_offset=(0.0,) * len(system.states),
            extended_scale=(1.0,) * len(system.names),
            unknown_size=(1.0,) * len(system.unknowns),
        )
    measured = tuple(
        system.states.index(name) if name in system.states else -1 for name in table.channels
    )
    expression = tuple(
        system.observed.index(name) if name in system.observed and state < 0 else -1
        for name, state in zip(table.channels, measured, strict=True)
    )
    given = StateScales(measured=measured, expression=expression)
    unit = float(table.time_scale)
    span = max(1.0, signal_time(panel, given.grounded_channels.tolist()) / unit)
    scale, offset = _first_scales(system, table, panel, given, span * unit)
    return scales_of_states(system, table, replace(given, signal_time=span), scale, offset)


def _first_scales(
    system: System, table: TableScales, panel: Panel, given: StateScales, span: float
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Scales and scaled means of the states: of measured ones those of their channels, of others
    guesses, which a grey box replaces. `span` is the signal time in the table's unit.
    """
    scale, offset = np.full(len(system.states), np.nan), np.zeros(len(system.states))
    for channel, state in enumerate(given.measured):
        if state >= 0:
            scale[state] = table.channel_scale[channel]
            offset[state] = table.channel_shift[channel] / table.channel_scale[channel]
    _scale_velocities(scale, system, panel, given.measured)
    _scale_observed(scale, system, table, given.expression)
    _scale_like_controls(scale, offset, system, table)
    for state in np.flatnonzero(np.isnan(scale)):
        source = slope_of(system.structure, int(state))
        if source >= 0 and np.isfinite(scale[source]):
            scale[state] = scale[source] / span
    sizes = scale[np.isfinite(scale)]
    return np.where(np.isnan(scale), sizes.mean() if sizes.size else 1.0, scale), offset


def scales_of_states(
    system: System,
    table: TableScales,
    given: StateScales,
    scale: Float[np.ndarray, " n"],
    offset: Float[np.ndarray, " n"],
) -> StateScales:
    """`given` with these scales and means of the written states, and with the sizes of lifted
    states and unknowns that follow from them.
    """
    states = typical_states(system, scale, offset)
    return replace(
        given,
        state_scale=scale,
        state_offset=offset,
        extended_scale=_extended_scale(system, scale, states[0]),
        unknown_size=_unknown_sizes(system, table, given, scale, states),
    )


def typical_states(
    system: System, scale: Float[np.ndarray, " n"], offset: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "spreads draws n"]:
    """Draws of the written states around their means: with their scales, then further out."""
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(scale)))
    states = (offset + np.multiply.outer(_SPREADS, draws)) * scale
    for i, bounds in enumerate(system.state_bounds):
        states[..., i] = np.clip(states[..., i], *bounds.ends)
    return states


def signal_time(panel: Panel, channels: Sequence[int]) -> float:
    """Time in which signals change by their own size: the lag at which the mean square difference
    of two values reaches the variance within a series, the median over channels.
    """
    times = [_time_of_channel(panel, channel) for channel in channels]
    return float(np.median(times)) if times else panel.median_gap


def _time_of_channel(panel: Panel, channel: int) -> float:
    x = panel.values[:, :, channel]
    valid = np.arange(x.shape[1]) < panel.lengths[:, None]
    x = np.where(valid, x, np.nan)
    count = np.maximum((~np.isnan(x)).sum(1, keepdims=True), 1)
    centred = x - np.nansum(x, axis=1, keepdims=True) / count
    variance = np.nansum(centred**2) / max(count.sum(), 1)
    lag, reached = 1, panel.median_gap
    while lag < x.shape[1]:
        difference = x[:, lag:] - x[:, :-lag]
        known = ~np.isnan(difference)
        if known.any():
            reached = float(np.median((panel.times[:, lag:] - panel.times[:, :-lag])[known]))
            if (difference[known] ** 2).mean() >= variance:
                break
        lag *= 2
    return reached


def _check_columns(system: System, table: TableScales, ground_states: bool) -> None:
    """Fail where the table lacks a column that the physics names."""
    if missing := [name for name in system.controls if name not in table.controls]:
        raise DataError(
            f"the physics has the control {missing[0]}, and the table has no such control column",
            hint="name the columns of all controls, for example --controls "
            + ",".join(system.controls),
        )
    unmeasured = [name for name in system.observed if name not in table.channels]
    if ground_states and unmeasured:
        raise DataError(
            f"the physics observes {unmeasured[0]}, and the table has no such channel",
            hint=did_you_mean(unmeasured[0], table.channels)
            or f"the channels are {', '.join(table.channels)}",
        )


def _scale_observed(
    scale: np.ndarray, system: System, table: TableScales, expression: Sequence[int]
) -> None:
    """Scale states that are measured through a function alone like the channel."""
    if max(expression, default=-1) < 0:
        return
    theta, u = np.ones(len(system.unknowns)), np.ones(len(system.controls))
    slope = jax.jit(jax.jacfwd(system.observe, argnums=1))
    slopes = np.asarray(slope(theta, np.ones(len(scale)), u))
    for channel, observation in enumerate(expression):
        if observation >= 0:
            size = np.hypot(table.channel_shift[channel], table.channel_scale[channel])
            scale[(slopes[observation] != 0) & np.isnan(scale)] = size


def _scale_like_controls(
    scale: np.ndarray, offset: np.ndarray, system: System, table: TableScales
) -> None:
    """Scale and centre states without a scale like the first control in their equation: a lag
    follows its input.
    """
    for row, column in sorted(system.structure.B):
        if row < len(scale) and np.isnan(scale[row]):
            control = table.controls.index(system.controls[column])
            scale[row] = table.control_scale[control]
            offset[row] = table.control_shift[control] / table.control_scale[control]


def _scale_velocities(
    scale: np.ndarray, system: System, panel: Panel, measured: Sequence[int]
) -> None:
    """Scale each state v that is not measured, but is x' of a measured x, by the slopes of x."""
    zeros = np.zeros(len(system.names))
    known = np.asarray(jax.jit(system.A_known)(zeros, np.zeros(len(system.controls))))
    for channel, x in enumerate(measured):
        if x < 0:
            continue
        linked = np.flatnonzero(known[x])
        is_only = len(linked) == 1 and not system.mask_A[x].any() and linked[0] < len(scale)
        if is_only and int(linked[0]) not in measured:
            slope = _typical_slope(panel, channel)
            scale[linked[0]] = slope / abs(known[x, linked[0]]) if slope > 0 else scale[x]


def _typical_slope(panel: Panel, channel: int, points: int = 5) -> float:
    """Root mean square of the slopes of lines through a few neighbouring measurements each."""
    squares: list[np.ndarray] = []
    for one in panel:
        seen = ~np.isnan(one.values[:, channel])
        t, x = one.times[seen], one.values[seen, channel]
        if len(t) >= points:
            ts = np.lib.stride_tricks.sliding_window_view(t, points)
            xs = np.lib.stride_tricks.sliding_window_view(x, points)
            ts = ts - ts.mean(1, keepdims=True)
            squares.append(((ts * xs).sum(1) / (ts**2).sum(1)) ** 2)
    return float(np.sqrt(np.mean(np.concatenate(squares)))) if squares else 0.0


def _extended_scale(system: System, scale: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Scales of the written states, then typical sizes of the lifted ones."""
    lifted = np.abs(np.asarray(jax.jit(jax.vmap(system.lift))(states)))[:, len(scale) :]
    typical = np.median(np.where(np.isfinite(lifted), lifted, 1.0), axis=0)
    return np.concatenate([scale, np.where(typical > 1e-12, typical, 1.0)])


def _unknown_sizes(
    system: System, table: TableScales, given: StateScales, scale: np.ndarray, states: np.ndarray
) -> np.ndarray:
    """The natural size of each unknown: what changes a scaled state by one in the signal time, or a
    scaled channel by one, at typical states. Of several effects of an unknown the largest decides.

    A difference counts as one effect: `?k*(outside - inside)` moves a temperature of 300 +- 1 by
    what is between the two, not by 300.
    """
    count = len(system.unknowns)
    if not count:
        return np.zeros(0)
    used = [table.controls.index(name) for name in system.controls]
    draws = np.random.default_rng(1).standard_normal((states.shape[1], len(used)))
    u = table.control_shift[used] + table.control_scale[used] * draws

    def slopes(z: Array, u: Array) -> tuple[Array, Array]:
        zeros = jnp.zeros(count, z.dtype)
        return jax.jacfwd(system.drift)(zeros, z, u), jax.jacfwd(system.observe)(zeros, z, u)

    every = jax.jit(jax.vmap(jax.vmap(slopes), in_axes=(0, None)))
    rates, observed = (np.asarray(part, float) for part in every(states, u))
    effects = [rates * (table.time_scale * given.signal_time) / scale[:, None]]
    for channel, observation in enumerate(given.expression):
        if observation >= 0:
            effects.append(observed[:, :, [observation]] / table.channel_scale[channel])
    largest = typical_size(np.concatenate(effects, axis=2)).max(1)
    # An effect that is zero at typical states, such as an overflow, counts where it sets in.
    first = np.take_along_axis(largest, (largest > 0).argmax(0)[None], axis=0)[0]
    return np.where(first > 0, 1 / np.where(first > 0, first, 1), 1.0)


def typical_size(effects: np.ndarray) -> np.ndarray:
    """A high quantile over draws, the second axis, of the finite sizes that are not zero; 0 without
    any. It is the standard deviation of normal draws around zero.
    """
    sizes = np.abs(effects)
    sizes = np.sort(np.where(np.isfinite(sizes) & (sizes > 0), sizes, np.inf), axis=1)
    count = np.isfinite(sizes).sum(1, keepdims=True)
    size = np.take_along_axis(sizes, (_WITHIN * count).astype(int), axis=1)
    return np.where(count > 0, size, 0.0)[:, 0]
