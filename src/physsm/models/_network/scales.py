"""Scales of a network: of the table's columns and time, and of the states of its physics.

All values are hashable, so that they can be part of a compiled program's identity, and plain, so
that they can be stored as JSON. They are fitted to the training part alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.data.scale import channel_moments, control_moments
from physsm.nn.layers import on_last_axis
from physsm.physics.system import System

Numbers = tuple[float, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class TableScales:
    """Scales of channels, controls and time. A scaled channel is (x - shift)/scale.

    `time_scale` is the network's unit of time, in the table's unit; `largest_gap` is in that unit.
    `shows_missing`: the encoder reads which channels were measured, beside their values.
    """

    channels: tuple[str, ...]
    controls: tuple[str, ...]
    channel_shift: Numbers
    channel_scale: Numbers
    control_shift: Numbers
    control_scale: Numbers
    time_scale: float
    largest_gap: float
    shows_missing: bool

    def __post_init__(self) -> None:
        check_positive(self.time_scale, self.largest_gap, *self.channel_scale, *self.control_scale)
        check_shifts(self.channel_shift, self.channel_scale)
        check_shifts(self.control_shift, self.control_scale)

    @property
    def longest_step(self) -> float:
        """Longest gap that a network crosses at once, in the table's unit of time."""
        return max(self.largest_gap, 1.0) * self.time_scale

    def scale(self, panel: Panel) -> Panel:
        """The panel with scaled channels and times; controls stay in their units."""
        values = (panel.values - np.array(self.channel_shift)) / np.array(self.channel_scale)
        return replace(panel, values=values, times=panel.times / self.time_scale)

    def unscale(self, values: Any) -> Float[np.ndarray, "*shape channels"]:
        """Channels in the units of the table."""
        return np.asarray(values) * np.array(self.channel_scale) + np.array(self.channel_shift)

    def unscale_spread(self, spread: np.ndarray) -> Float[np.ndarray, "*shape channels"]:
        """Standard deviations of channels in the units of the table."""
        return spread * np.array(self.channel_scale)

    def scale_controls(self, u: Float[Array, "*steps controls"]) -> Float[Array, "*steps controls"]:
        """Controls without their mean, in standard deviations."""
        return (u - on_last_axis(self.control_shift, u)) / on_last_axis(self.control_scale, u)


@dataclass(frozen=True)
class StateScales:
    """Scales of states and unknowns. A scaled state is z/scale.

    `measured[c]` is the state that channel c measures, or -1. `state_offset` are the means of
    measured states, scaled. `unknown_size` is the natural size of each unknown: what changes a
    scaled state by one in the `signal_time`, in which signals change by their own size (in the
    network's unit of time). Without physics there are no states.
    """

    measured: tuple[int, ...]
    state_scale: Numbers = ()
    state_offset: Numbers = ()
    extended_scale: Numbers = ()
    unknown_size: Numbers = ()
    signal_time: float = 1.0

    def __post_init__(self) -> None:
        check_positive(*self.state_scale, *self.extended_scale, *self.unknown_size)
        check_positive(self.signal_time)
        check_shifts(self.state_offset, self.state_scale)

    @property
    def channel_of_state(self) -> Int[np.ndarray, " n"]:
        """The channel that measures each state, or -1."""
        place = np.full(len(self.state_scale), -1)
        for channel, state in enumerate(self.measured):
            if state >= 0:
                place[state] = channel
        return place

    @property
    def grounded_channels(self) -> Int[np.ndarray, " grounded"]:
        """The channels that the physics gives."""
        return np.flatnonzero(np.array(self.measured) >= 0)

    @property
    def free_channels(self) -> Int[np.ndarray, " free"]:
        """The channels that measure no state."""
        return np.flatnonzero(np.array(self.measured) < 0)

    def unscale(self, z_ext: Any) -> Float[np.ndarray, "*shape n"] | None:
        """The written states in physical units; None without physics."""
        count = len(self.state_scale)
        return np.asarray(z_ext)[..., :count] * np.array(self.state_scale) if count else None


@dataclass(frozen=True)
class Scales:
    """Scales that every network has."""

    table: TableScales
    states: StateScales

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Scales:
        """The inverse of `dataclasses.asdict`, through JSON."""
        return cls(
            table=record_from_json(TableScales, content["table"]),
            states=record_from_json(StateScales, content["states"]),
        )


def record_from_json(kind: type[T], content: Mapping[str, Any]) -> T:
    """A flat dataclass from JSON, which has lists instead of tuples."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
    }
    return kind(**fields)


def check_positive(*scales: float) -> None:
    """Fail where a scale is no positive number, as in a damaged file."""
    if not all(0 < scale < np.inf for scale in scales):
        raise ValueError("a scale is not a positive number")


def check_shifts(shift: Sequence[float], scale: Sequence[float]) -> None:
    """Fail where shifts are not one finite number for each scale."""
    if len(shift) != len(scale) or not np.isfinite(np.array(shift, float)).all():
        raise ValueError("the shifts do not fit the scales")


def as_numbers(array: np.ndarray) -> Numbers:
    """A vector as plain numbers."""
    return tuple(float(x) for x in array)


def table_scales(panel: Panel, shows_missing: bool, physical_units: bool) -> TableScales:
    """Scales of channels, controls and time from the training part."""
    shift, scale = channel_moments(panel)
    control_shift, control_scale = control_moments(panel)
    time_scale = panel.median_gap if physical_units else 1.0
    largest = float(np.quantile(panel.gaps, 0.999)) if panel.gaps.size else 1.0
    is_missing = bool(panel.observed.sum() < panel.lengths.sum() * len(panel.channels))
    return TableScales(
        channels=panel.channels,
        controls=panel.control_names,
        channel_shift=as_numbers(shift),
        channel_scale=as_numbers(scale),
        control_shift=as_numbers(control_shift),
        control_scale=as_numbers(control_scale),
        time_scale=time_scale,
        largest_gap=largest / time_scale,
        shows_missing=shows_missing or is_missing,
    )


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
    scale, offset = np.ones(len(system.states)), np.zeros(len(system.states))
    for channel, state in enumerate(measured):
        if state >= 0:
            scale[state] = table.channel_scale[channel]
            offset[state] = table.channel_shift[channel] / table.channel_scale[channel]
    _scale_hidden(scale, offset, system, table, measured)
    _scale_velocities(scale, offset, system, panel, measured)
    channels = [channel for channel, state in enumerate(measured) if state >= 0]
    span = max(1.0, signal_time(panel, channels) / table.time_scale)
    return scales_of_states(system, table, measured, scale, offset, span)


def scales_of_states(
    system: System,
    table: TableScales,
    measured: tuple[int, ...],
    scale: Float[np.ndarray, " n"],
    offset: Float[np.ndarray, " n"],
    span: float,
) -> StateScales:
    """Scales of all states, with the sizes of lifted states and unknowns that follow from them."""
    extended = _extended_scale(system, scale, offset)
    magnitude = np.concatenate([scale * np.hypot(offset, 1), extended[len(scale) :]])
    return StateScales(
        measured=measured,
        state_scale=as_numbers(scale),
        state_offset=as_numbers(offset),
        extended_scale=as_numbers(extended),
        unknown_size=as_numbers(_unknown_sizes(system, table, extended, magnitude, span)),
        signal_time=span,
    )


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


def _scale_hidden(
    scale: np.ndarray,
    offset: np.ndarray,
    system: System,
    table: TableScales,
    measured: Sequence[int],
) -> None:
    """Scale and centre each state that is not measured like the first control in its equation: a
    lag follows its input. Only a first guess, which a grey box replaces.
    """
    for row, column in sorted(system.structure.B):
        if row < len(scale) and row not in measured and scale[row] == 1:
            control = table.controls.index(system.controls[column])
            scale[row] = table.control_scale[control]
            offset[row] = table.control_shift[control] / table.control_scale[control]


def _scale_velocities(
    scale: np.ndarray,
    offset: np.ndarray,
    system: System,
    panel: Panel,
    measured: Sequence[int],
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
            offset[linked[0]] = 0.0


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


def _extended_scale(system: System, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Scales of the written states, then typical sizes of the lifted ones."""
    draws = np.random.default_rng(0).standard_normal((256, len(scale)))
    states = (offset + draws) * scale
    for i, bounds in enumerate(system.state_bounds):
        states[:, i] = np.clip(states[:, i], *bounds.ends)
    lifted = np.abs(np.asarray(jax.jit(jax.vmap(system.lift))(states)))[:, len(scale) :]
    typical = np.median(np.where(np.isfinite(lifted), lifted, 1.0), axis=0)
    return np.concatenate([scale, np.where(typical > 1e-12, typical, 1.0)])


def _unknown_sizes(
    system: System, table: TableScales, extended: np.ndarray, magnitude: np.ndarray, span: float
) -> np.ndarray:
    """The natural size of each unknown: what changes a scaled state by one in the time `span`.

    `magnitude` is the usual size of each extended state, its mean included. Of several entries
    that hold an unknown, the one that it moves most decides.
    """
    used = [table.controls.index(name) for name in system.controls]
    controls = np.array([abs(table.control_shift[i]) + table.control_scale[i] for i in used])
    unknowns = len(system.unknowns)
    if not unknowns:
        return np.zeros(0)
    z_ext, u = magnitude, controls.reshape(-1)
    jacobian = jax.jit(jax.jacfwd(lambda theta: system.assemble(theta, z_ext, u)))
    dA, dB = jacobian(np.zeros(unknowns))
    columns = np.concatenate([magnitude, controls])
    effect = np.abs(np.concatenate([np.asarray(dA), np.asarray(dB)], axis=1))
    effect = effect * (columns[None, :, None] / extended[:, None, None])
    effect = effect * (table.time_scale * span)
    largest = np.where(np.isfinite(effect), effect, 0).max((0, 1))
    return np.where(largest > 0, 1 / np.where(largest > 0, largest, 1), 1.0)
