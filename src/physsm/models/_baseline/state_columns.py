"""States of a system as a table shows them: by channels of their names, or as slopes of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.models._baseline.origins import Origins, channel_points, columns_between
from physsm.physics.system import System


class Columns(NamedTuple):
    """Where each state and each control of the physics stands in a table.

    `channel[i]` is the channel of state i, or -1; `slope_of[i]` the state of which state i is the
    derivative by the equations, or -1. `control[j]` is the place of control j.
    """

    channel: tuple[int, ...]
    slope_of: tuple[int, ...]
    control: tuple[int, ...]


def find_columns(system: System, channels: Sequence[str], controls: Sequence[str]) -> Columns:
    """Match a system with a table; an error names what does not fit."""
    for name in channels:
        if name not in system.states:
            hint = did_you_mean(name, system.states)
            raise DataError(
                f"the channel {name} is no state of the physics, which has "
                f"{', '.join(system.states)}",
                hint=hint or "leave the channel out, or write an equation for it",
            )
    if missing := [name for name in system.controls if name not in controls]:
        raise DataError(f"the table has no control {missing[0]}, which the physics needs")
    channel = tuple(
        channels.index(name) if name in channels else -1 for name in map(str, system.states)
    )
    slope_of = tuple(_slope_of(system, i) for i in range(len(system.states)))
    for name, place, source in zip(system.states, channel, slope_of, strict=True):
        if place < 0 and (source < 0 or channel[source] < 0):
            raise DataError(
                f"the state {name} has no channel in the table, and it is not the derivative of a "
                "state that has one",
                hint=f"measure it as a channel {name}, or take a model that fills in states",
            )
    return Columns(channel, slope_of, tuple(controls.index(name) for name in system.controls))


def _slope_of(system: System, state: int) -> int:
    """The state whose equation is just this state: `x' = v`; -1 if there is none."""
    structure = system.structure
    for i in range(len(system.states)):
        row = {place: entry for place, entry in structure.A.items() if place[0] == i}
        has_control = any(place[0] == i for place in structure.B)
        if list(row) == [(i, state)] and not has_control:
            entry = row[i, state]
            if entry.known == 1 and not entry.factors:
                return i
    return -1


def states_at(
    panel: Panel,
    origins: Origins,
    wanted: Float[np.ndarray, "origins nodes"],
    columns: Columns,
    usual: Float[np.ndarray, " states"],
) -> Float[np.ndarray, "origins nodes states"]:
    """States at increasing times inside the histories, along straight lines between measurements.

    A state that was not measured is the slope between the nodes on both sides, if it is one, and
    otherwise has its usual value.
    """
    known = [channel_points(panel, k, origins) for k in range(len(panel.channels))]
    values = columns_between(known, origins, wanted)
    states = np.full((*wanted.shape, len(columns.channel)), np.nan)
    for i, channel in enumerate(columns.channel):
        if channel >= 0:
            states[..., i] = values[..., channel]
    for i, source in enumerate(columns.slope_of):
        if source >= 0:
            slope = _slopes(wanted, states[..., source])
            states[..., i] = np.where(np.isnan(states[..., i]), slope, states[..., i])
    return np.where(np.isnan(states), usual, states)


def _slopes(
    times: Float[np.ndarray, "origins nodes"], values: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes"]:
    """Between the nodes on both sides; 0 where there is no time between them."""
    node = np.arange(times.shape[1])
    before, after = np.maximum(node - 1, 0), np.minimum(node + 1, len(node) - 1)
    width = times[:, after] - times[:, before]
    return (values[:, after] - values[:, before]) / np.where(width > 0, width, np.inf)


def rows_before(origins: Origins, rows: int) -> Int[np.ndarray, "origins rows"]:
    """The last rows of each history, the latest last; the first row again where it is shorter."""
    return np.maximum(origins.row[:, None] + np.arange(1 - rows, 1), 0)
