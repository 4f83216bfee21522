"""Scales of a network: of the table's columns and time, and of the states of its physics.

All values are hashable, so that they can be part of a compiled program's identity, and plain, so
that they can be stored as JSON. They are fitted to the training part alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Array, Float, Int

from physsm._values import Panel
from physsm.data.scale import channel_moments, control_moments
from physsm.nn.layers import on_last_axis

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

    `measured[c]` is the state that channel c measures, or -1; `expression[c]` is the observation of
    the physics that it is a measurement of (as `level` in `observe level = ?gain*h`), or -1.
    `state_offset` are the means of states, scaled. `unknown_size` is the natural size of each
    unknown: what changes a scaled state by one in the `signal_time`, in which signals change by
    their own size (in the network's unit of time). Without physics there are no states.
    """

    measured: tuple[int, ...]
    state_scale: Numbers = ()
    state_offset: Numbers = ()
    extended_scale: Numbers = ()
    unknown_size: Numbers = ()
    signal_time: float = 1.0
    expression: tuple[int, ...] = ()

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
        """The channels that the physics gives, as states or as functions of them."""
        return np.flatnonzero(self._is_grounded)

    @property
    def expression_channels(self) -> Int[np.ndarray, " expressions"]:
        """The channels that are functions of states."""
        return np.flatnonzero(np.array(self.expression, int) >= 0)

    @property
    def _is_grounded(self) -> np.ndarray:
        expression = np.array(self.expression or (-1,) * len(self.measured))
        return (np.array(self.measured) >= 0) | (expression >= 0)

    @property
    def free_channels(self) -> Int[np.ndarray, " free"]:
        """The channels that the physics does not give."""
        return np.flatnonzero(~self._is_grounded)

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
