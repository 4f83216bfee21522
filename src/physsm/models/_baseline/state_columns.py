"""States of a system in a table: channels with the names of states, or slopes of such channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from physsm._errors import DataError, did_you_mean
from physsm._values import Panel
from physsm.models._baseline.origins import (
    Origins,
    channel_points,
    interpolate_columns,
    origins_at,
)
from physsm.physics.structure import slope_of
from physsm.physics.system import System


class Columns(NamedTuple):
    """Columns of a table for the states and controls of a system.

    `channel[i]` is the channel of state i, or -1. `slope_of[i]` is the state whose derivative state
    i is by the equations, or -1. `control[j]` is the column of control j.
    """

    channel: tuple[int, ...]
    slope_of: tuple[int, ...]
    control: tuple[int, ...]


def find_columns(system: System, channels: Sequence[str], controls: Sequence[str]) -> Columns:
    """The columns of a system in a table; an error names a column that does not fit."""
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
    slopes = tuple(slope_of(system.structure, i) for i in range(len(system.states)))
    for name, own, source in zip(system.states, channel, slopes, strict=True):
        if own < 0 and (source < 0 or channel[source] < 0):
            raise DataError(
                f"the state {name} has no channel in the table, and it is not the derivative of a "
                "state that has one",
                hint=f"measure it as a channel {name}, or use a model that infers states: phy_ssm",
            )
    return Columns(channel, slopes, tuple(controls.index(name) for name in system.controls))


def states_at(
    panel: Panel,
    origins: Origins,
    wanted: Float[np.ndarray, "origins nodes"],
    columns: Columns,
    mean: Float[np.ndarray, " states"],
) -> Float[np.ndarray, "origins nodes states"]:
    """States at increasing times inside the histories, interpolated linearly between measurements.

    A state without measurements is the slope between the two neighbouring nodes, if it is the
    derivative of a state, and its training mean otherwise.
    """
    points = [channel_points(panel, k, origins) for k in range(len(panel.channels))]
    values = interpolate_columns(points, origins, wanted)
    states = np.full((*wanted.shape, len(columns.channel)), np.nan)
    for i, channel in enumerate(columns.channel):
        if channel >= 0:
            states[..., i] = values[..., channel]
    for i, source in enumerate(columns.slope_of):
        if source >= 0:
            slope = _slopes(wanted, states[..., source])
            states[..., i] = np.where(np.isnan(states[..., i]), slope, states[..., i])
    return np.where(np.isnan(states), mean, states)


def _slopes(
    times: Float[np.ndarray, "origins nodes"], values: Float[np.ndarray, "origins nodes"]
) -> Float[np.ndarray, "origins nodes"]:
    """Slopes between the two neighbours of each node; 0 where no time lies between them."""
    node = np.arange(times.shape[1])
    before, after = np.maximum(node - 1, 0), np.minimum(node + 1, len(node) - 1)
    width = times[:, after] - times[:, before]
    return (values[:, after] - values[:, before]) / np.where(width > 0, width, np.inf)


def last_steps(origins: Origins, number: int) -> Int[np.ndarray, "origins steps"]:
    """The last time steps of each history, the latest last; a short history repeats its first."""
    return np.maximum(origins.step[:, None] + np.arange(1 - number, 1), 0)


class TrainingStatistics(NamedTuple):
    """Statistics of states in the training part, in the units of the table, and its unknowns.

    `raw` are the unknowns fitted to the whole training part, before they are mapped into their
    bounds, in their natural sizes `size`; `change` is the scale of their deviations.
    """

    mean: Float[np.ndarray, " states"]
    scale: Float[np.ndarray, " states"]
    low: Float[np.ndarray, " states"]
    high: Float[np.ndarray, " states"]
    raw: Float[np.ndarray, " unknowns"]
    change: Float[np.ndarray, " unknowns"]
    size: Float[np.ndarray, " unknowns"]


def training_statistics(
    system: System,
    train: Panel,
    columns: Columns,
    channel_mean: Float[np.ndarray, " channels"],
    channel_scale: Float[np.ndarray, " channels"],
) -> tuple[TrainingStatistics, Float[np.ndarray, "series steps states"]]:
    """Mean, scale and range of the states, with unknowns of zero; and the states at all steps."""
    ends = origins_at(train, np.arange(len(train)), train.lengths - 1, 0)
    mean = np.array([channel_mean[c] if c >= 0 else 0.0 for c in columns.channel])
    states = states_at(train, ends, train.times, columns, mean)
    valid = np.arange(train.times.shape[1]) < train.lengths[:, None]
    spread = states[valid].std(0)
    spread = np.where(spread > 0, spread, 1)
    scale = [
        channel_scale[c] if c >= 0 else s for c, s in zip(columns.channel, spread, strict=True)
    ]
    statistics = TrainingStatistics(
        mean=mean,
        scale=np.array(scale),
        low=states[valid].min(0),
        high=states[valid].max(0),
        raw=np.zeros(len(system.unknowns)),
        change=np.zeros(len(system.unknowns)),
        size=np.ones(len(system.unknowns)),
    )
    return statistics, states
