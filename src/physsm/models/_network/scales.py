"""Scales of a network: of the table's columns and time, and of the states of its physics.

They are fitted to the training part alone. Numbers are NumPy arrays, which a network carries but
training does not change: they are arguments of its compiled programs, so that one program serves
all tables of the same shape. Names and places are part of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from physsm._values import Panel
from physsm.data.scale import channel_moments, control_moments
from physsm.nn.layers import on_last_axis

T = TypeVar("T")


def as_vector(numbers: Any) -> Float[np.ndarray, " size"]:
    """Numbers as a vector."""
    return np.array(numbers, float).reshape(-1)


def as_scalar(number: Any) -> Float[np.ndarray, ""]:
    """A number as an array."""
    return np.array(number, float)


class TableScales(eqx.Module):
    """Scales of channels, controls and time. A scaled channel is (x - shift)/scale.

    `time_scale` is the network's unit of time, in the table's unit; `largest_gap` is in that unit.
    `shows_missing`: the encoder reads which channels were measured, beside their values.
    """

    channels: tuple[str, ...] = eqx.field(static=True)
    controls: tuple[str, ...] = eqx.field(static=True)
    channel_shift: Float[np.ndarray, " channels"] = eqx.field(converter=as_vector)
    channel_scale: Float[np.ndarray, " channels"] = eqx.field(converter=as_vector)
    control_shift: Float[np.ndarray, " controls"] = eqx.field(converter=as_vector)
    control_scale: Float[np.ndarray, " controls"] = eqx.field(converter=as_vector)
    time_scale: Float[np.ndarray, ""] = eqx.field(converter=as_scalar)
    largest_gap: Float[np.ndarray, ""] = eqx.field(converter=as_scalar)
    shows_missing: bool = eqx.field(static=True)

    def __check_init__(self) -> None:
        check_positive(self.time_scale, self.largest_gap, self.channel_scale, self.control_scale)
        check_shifts(self.channel_shift, self.channel_scale)
        check_shifts(self.control_shift, self.control_scale)

    @property
    def longest_step(self) -> float:
        """Longest gap that a network crosses at once, in the table's unit of time."""
        return float(np.maximum(self.largest_gap, 1.0) * self.time_scale)

    def scale(self, panel: Panel) -> Panel:
        """The panel with scaled channels and times; controls stay in their units."""
        values = (panel.values - self.channel_shift) / self.channel_scale
        return replace(panel, values=values, times=panel.times / self.time_scale)

    def unscale(self, values: Any) -> Float[np.ndarray, "*shape channels"]:
        """Channels in the units of the table."""
        return np.asarray(values) * self.channel_scale + self.channel_shift

    def unscale_spread(self, spread: np.ndarray) -> Float[np.ndarray, "*shape channels"]:
        """Standard deviations of channels in the units of the table."""
        return spread * self.channel_scale

    def scale_controls(self, u: Float[Array, "*steps controls"]) -> Float[Array, "*steps controls"]:
        """Controls without their mean, in standard deviations."""
        return (u - on_last_axis(self.control_shift, u)) / on_last_axis(self.control_scale, u)


class StateScales(eqx.Module):
    """Scales of states and unknowns. A scaled state is z/scale.

    `measured[c]` is the state that channel c measures, or -1; `expression[c]` is the observation of
    the physics that it is a measurement of (as `level` in `observe level = ?gain*h`), or -1.
    `state_offset` are the means of states, scaled. `unknown_size` is the natural size of each
    unknown: what changes a scaled state by one in the `signal_time`, in which signals change by
    their own size (in the network's unit of time). Without physics there are no states.
    """

    measured: tuple[int, ...] = eqx.field(static=True)
    state_scale: Float[np.ndarray, " n"] = eqx.field(converter=as_vector, default=())
    state_offset: Float[np.ndarray, " n"] = eqx.field(converter=as_vector, default=())
    extended_scale: Float[np.ndarray, " d"] = eqx.field(converter=as_vector, default=())
    unknown_size: Float[np.ndarray, " unknowns"] = eqx.field(converter=as_vector, default=())
    signal_time: Float[np.ndarray, ""] = eqx.field(converter=as_scalar, default=1.0)
    expression: tuple[int, ...] = eqx.field(static=True, default=())

    def __check_init__(self) -> None:
        check_positive(self.state_scale, self.extended_scale, self.unknown_size, self.signal_time)
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
        return np.asarray(z_ext)[..., :count] * self.state_scale if count else None


class Scales(eqx.Module):
    """Scales that every network has."""

    table: TableScales
    states: StateScales

    @property
    def structure(self) -> str:
        """All but the numbers, for the identity of compiled programs."""
        return str(jax.tree.structure(self))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return jax.tree.map(_plain, asdict(self), is_leaf=lambda leaf: isinstance(leaf, tuple))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Scales:
        """The inverse of `to_json`."""
        return cls(
            table=record_from_json(TableScales, content["table"]),
            states=record_from_json(StateScales, content["states"]),
        )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def record_from_json(kind: type[T], content: Mapping[str, Any]) -> T:
    """A flat record from JSON, which has lists instead of tuples."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
    }
    return kind(**fields)


def check_positive(*scales: np.ndarray) -> None:
    """Fail where a scale is no positive number, as in a damaged file."""
    if not all(((scale > 0) & (scale < np.inf)).all() for scale in scales):
        raise ValueError("a scale is not a positive number")


def check_shifts(shift: np.ndarray, scale: np.ndarray) -> None:
    """Fail where shifts are not one finite number for each scale."""
    if len(shift) != len(scale) or not np.isfinite(shift).all():
        raise ValueError("the shifts do not fit the scales")


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
        channel_shift=shift,
        channel_scale=scale,
        control_shift=control_shift,
        control_scale=control_scale,
        time_scale=time_scale,
        largest_gap=largest / time_scale,
        shows_missing=shows_missing or is_missing,
    )
