"""What a network is built around: sizes, names, scales and where measured states are.

All values are hashable, so that a plan can be part of a compiled program's identity, and plain, so
that it can be stored as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.data.scale import channel_moments, control_moments
from physsm.nn.layers import on_last_axis
from physsm.physics.program import run_program
from physsm.physics.system import System

Numbers = tuple[float, ...]

_FURTHEST = 10_000  # rows that a direct path may look back at


@dataclass(frozen=True)
class Plan:
    """Scales and places. A scaled channel is (x - shift)/scale; a scaled state is z/scale.

    `grounded[c]` is the state that channel c measures, or -1. `time_scale` is the unit of time
    inside the network, in the table's unit. `largest_gap` is in that unit. `offsets` are the rows
    that a direct path looks back at, counted from the last; without any there is no such path. It
    uses the first `short` of them (0: all) where a series has not yet as many rows. It is told of
    the functions of controls that the equations name, less `term_shift`, by `term_scale`. `span` is
    how long a training window is, in `time_scale`: the natural time of a drift that is learned.
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
    grounded: tuple[int, ...] = ()
    state_scale: Numbers = ()
    state_offset: Numbers = ()
    extended_scale: Numbers = ()
    unknown_size: Numbers = ()
    offsets: tuple[int, ...] = ()
    short: int = 0
    term_shift: Numbers = ()
    term_scale: Numbers = ()
    span: float = 1.0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Plan:
        """The inverse of `dataclasses.asdict`, after a way through JSON."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in content.items()
        }
        plan = cls(**fields)
        sizes = (plan.channel_scale, plan.control_scale, plan.state_scale, plan.extended_scale)
        sizes = (*sizes, plan.unknown_size, plan.term_scale)
        positive = [plan.time_scale, plan.largest_gap, plan.span, *sum(sizes, ())]
        if not all(0 < size < np.inf for size in positive):
            raise ValueError("a scale is not a positive number")
        shifts = (plan.channel_shift, plan.control_shift, plan.state_offset, plan.term_shift)
        scales = (plan.channel_scale, plan.control_scale, plan.state_scale, plan.term_scale)
        for shift, scale in zip(shifts, scales, strict=True):
            if len(shift) != len(scale) or not np.isfinite(np.array(shift, float)).all():
                raise ValueError("the shifts do not fit the scales")
        if not all(0 <= offset <= _FURTHEST for offset in plan.offsets):
            raise ValueError("an offset is out of range")
        if not 0 <= plan.short <= len(plan.offsets):
            raise ValueError("a short memory is longer than the whole one")
        return plan

    @property
    def channel_of_state(self) -> Int[np.ndarray, " n"]:
        """The channel that measures each state, or -1."""
        place = np.full(len(self.state_scale), -1)
        for channel, state in enumerate(self.grounded):
            if state >= 0:
                place[state] = channel
        return place

    def scale_controls(self, u: Float[Array, "*steps controls"]) -> Float[Array, "*steps controls"]:
        """Controls without their mean, by their standard deviation."""
        return (u - on_last_axis(self.control_shift, u)) / on_last_axis(self.control_scale, u)

    def scale(self, panel: Panel) -> Panel:
        """The panel with scaled channels and times; controls stay in their units."""
        values = (panel.values - np.array(self.channel_shift)) / np.array(self.channel_scale)
        return replace(panel, values=values, times=panel.times / self.time_scale)

    def unscale(self, values: np.ndarray) -> np.ndarray:
        """Channels in the units of the table, last axis channels."""
        return values * np.array(self.channel_scale) + np.array(self.channel_shift)


def data_plan(panel: Panel, shows_missing: bool, physical_units: bool) -> Plan:
    """Scales of channels, controls and time from the training data alone."""
    shift, scale = channel_moments(panel)
    control_shift, control_scale = control_moments(panel)
    time_scale = panel.median_gap if physical_units else 1.0
    largest = float(np.quantile(panel.gaps, 0.999)) if panel.gaps.size else 1.0
    is_missing = bool(panel.observed.sum() < panel.lengths.sum() * len(panel.channels))
    return Plan(
        channels=panel.channels,
        controls=panel.control_names,
        channel_shift=_numbers(shift),
        channel_scale=_numbers(scale),
        control_shift=_numbers(control_shift),
        control_scale=_numbers(control_scale),
        time_scale=time_scale,
        largest_gap=largest / time_scale,
        shows_missing=shows_missing or is_missing,
        grounded=(-1,) * len(panel.channels),
    )


def physics_plan(plan: Plan, system: System, panel: Panel, ground_states: bool) -> Plan:
    """The plan with what depends on the equations: grounded channels, scales of the states."""
    if missing := [name for name in system.controls if name not in plan.controls]:
        raise DataError(
            f"the physics has the control {missing[0]}, and the table has no such control column",
            hint="name the columns of all controls, for example --controls "
            + ",".join(system.controls),
        )
    plan = replace(plan, **_term_scales(system, plan, panel))
    if not ground_states:
        return replace(plan, **_free_scales(system))
    if unmeasured := [name for name in system.observed if name not in plan.channels]:
        raise DataError(
            f"the physics observes {unmeasured[0]}, and the table has no such channel",
            hint=did_you_mean(unmeasured[0], plan.channels)
            or f"the channels are {', '.join(plan.channels)}",
        )
    grounded = tuple(
        system.states.index(name) if name in system.states else -1 for name in plan.channels
    )
    scale = np.ones(len(system.states))
    offset = np.zeros(len(system.states))
    for channel, state in enumerate(grounded):
        if state >= 0:
            scale[state] = plan.channel_scale[channel]
            offset[state] = plan.channel_shift[channel] / plan.channel_scale[channel]
    _scale_velocities(scale, system, panel, grounded)
    extended = _extended_scale(system, scale, offset)
    return replace(
        plan,
        grounded=grounded,
        state_scale=_numbers(scale),
        state_offset=_numbers(offset),
        extended_scale=_numbers(extended),
        unknown_size=_numbers(_unknown_sizes(system, plan, extended)),
    )


def _free_scales(system: System) -> dict[str, Numbers]:
    return {
        "state_scale": (1.0,) * len(system.states),
        "state_offset": (0.0,) * len(system.states),
        "extended_scale": (1.0,) * len(system.names),
        "unknown_size": (1.0,) * len(system.unknowns),
    }


def _term_scales(system: System, plan: Plan, panel: Panel) -> dict[str, Numbers]:
    """Mean and scale of the functions of controls, unless one has no value somewhere."""
    if not system.control_functions.outputs:
        return {}
    used = [plan.controls.index(name) for name in system.controls]
    with np.errstate(all="ignore"):
        columns = run_program(system.control_functions, [panel.controls[..., i] for i in used], np)
        values = np.stack(columns, -1)
        shift, scale = control_moments(replace(panel, controls=values))
        # Networks compute in single precision.
        can_be_used = np.isfinite([shift, scale]).all() and np.isfinite(np.float32(values)).all()
    if not can_be_used:
        return {}
    return {"term_shift": _numbers(shift), "term_scale": _numbers(scale)}


def _numbers(array: np.ndarray) -> Numbers:
    return tuple(float(x) for x in array)


def _scale_velocities(
    scale: np.ndarray, system: System, panel: Panel, grounded: Sequence[int]
) -> None:
    """A state v that is not measured but is known to be x' of a measured x has the size of x'."""
    zeros = np.zeros(len(system.names))
    known = np.asarray(jax.jit(system.A_known)(zeros, np.zeros(len(system.controls))))
    for channel, x in enumerate(grounded):
        if x < 0:
            continue
        linked = np.flatnonzero(known[x])
        alone = len(linked) == 1 and not system.mask_A[x].any() and linked[0] < len(scale)
        if alone and int(linked[0]) not in grounded:
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


def _extended_scale(system: System, scale: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Scales of the written states, then typical sizes of the lifted ones."""
    draws = np.random.default_rng(0).standard_normal((256, len(scale)))
    states = (offset + draws) * scale
    for i, bounds in enumerate(system.state_bounds):
        states[:, i] = np.clip(states[:, i], *bounds.ends)
    lifted = np.abs(np.asarray(jax.jit(jax.vmap(system.lift))(states)))[:, len(scale) :]
    usual = np.median(np.where(np.isfinite(lifted), lifted, 1.0), axis=0)
    return np.concatenate([scale, np.where(usual > 1e-12, usual, 1.0)])


def _unknown_sizes(system: System, plan: Plan, extended: np.ndarray) -> np.ndarray:
    """The natural size of each unknown: what changes a scaled state by one in one unit of time.

    Of several entries that hold an unknown, the one that it moves most decides.
    """
    controls = np.array(
        [
            abs(plan.control_shift[i]) + plan.control_scale[i]
            for i in (plan.controls.index(name) for name in system.controls)
        ]
    )
    unknowns = len(system.unknowns)
    if not unknowns:
        return np.zeros(0)
    z_ext, u = np.asarray(extended), controls.reshape(-1)
    jacobian = jax.jit(jax.jacfwd(lambda theta: system.assemble(theta, z_ext, u)))
    dA, dB = jacobian(np.zeros(unknowns))
    columns = np.concatenate([extended, controls])
    effect = np.abs(np.concatenate([np.asarray(dA), np.asarray(dB)], axis=1))
    effect = effect * (columns[None, :, None] / extended[:, None, None]) * plan.time_scale
    largest = np.where(np.isfinite(effect), effect, 0).max((0, 1))
    return np.where(largest > 0, 1 / np.where(largest > 0, largest, 1), 1.0)
