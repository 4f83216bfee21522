"""Smoothed states of series: values and slopes of local parabolas through the measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from physsm._values import Panel, Series
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.physics.structure import slope_of

_RIDGE = 1e-9


def smoothed_states(
    unit: PhysicsUnit, scaled: Panel, half: int
) -> Float[np.ndarray, "series rows n"]:
    """Scaled states at all rows, from parabolas over `half` rows on both sides; NaN for a state
    that is neither a channel nor the derivative of a state that is one.
    """
    system, scales = unit.system, unit.scales
    states = np.full((*scaled.times.shape, unit.size), np.nan)
    slopes = np.full_like(states, np.nan)
    place = scales.states.channel_of_state
    offset, size = scales.states.state_offset, scales.states.state_scale
    for state in np.flatnonzero(place >= 0):
        for i, one in enumerate(scaled):
            rows = len(one.times)
            value, slope = parabolas(one.times, one.values[:, place[state]], half)
            states[i, :rows, state], slopes[i, :rows, state] = value + offset[state], slope
    for state in np.flatnonzero(place < 0):
        source = slope_of(system.structure, int(state))
        if source >= 0 and place[source] >= 0:
            factor = size[source] / (size[state] * scales.table.time_scale)
            states[..., state] = slopes[..., source] * factor
    return states


def parabolas(
    times: Float[np.ndarray, " rows"], values: Float[np.ndarray, " rows"], half: int
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """Values and slopes at each row of a parabola through its neighbours; of a line or a constant
    where there are few measurements, NaN where there are none.
    """
    seen = ~np.isnan(values)
    if not seen.any():
        return np.full(len(times), np.nan), np.full(len(times), np.nan)
    t, x = times[seen], values[seen]
    width = min(2 * half + 1, len(t))
    nearest = np.searchsorted(t, times)
    first = np.clip(nearest - width // 2, 0, len(t) - width)
    near = first[:, None] + np.arange(width)
    apart = t[near] - times[:, None]
    span = np.maximum(np.abs(apart).max(1, keepdims=True), 1e-300)
    apart = apart / span
    powers = apart[..., None] ** np.arange(min(3, width))
    gram = np.swapaxes(powers, 1, 2) @ powers + _RIDGE * np.eye(powers.shape[-1])
    right = np.swapaxes(powers, 1, 2) @ x[near][..., None]
    weights = np.linalg.solve(gram, right)[..., 0]
    slope = weights[:, 1] / span[:, 0] if weights.shape[1] > 1 else np.zeros(len(times))
    return weights[:, 0], slope


def states_at_rows(
    panel: Panel, known: Sequence[tuple[Panel, Float[np.ndarray, "_ _ n"]]]
) -> Float[np.ndarray, "series rows n"]:
    """States at all rows of a panel, linear in time between rows of parts of it where they are
    known. A part has the id of its series and rows of it, because series of two tables may have the
    same id. The means of all known states stand for a series without any.
    """
    size = known[0][1].shape[-1]
    each = [
        states[j, :rows] for part, states in known for j, rows in enumerate(part.lengths.tolist())
    ]
    middle = np.nanmean(np.concatenate(each), axis=0)
    result = np.zeros((*panel.times.shape, size)) + middle
    for i, one in enumerate(panel):
        pairs = [
            (part.times[j, :rows], states[j, :rows])
            for part, states in known
            for j, rows in enumerate(part.lengths)
            if _is_part(part[j], one)
        ]
        if pairs:
            times, values = (np.concatenate(column) for column in zip(*pairs, strict=True))
            order = np.argsort(times)
            for state in range(size):
                result[i, : len(one.times), state] = np.interp(
                    one.times, times[order], values[order, state]
                )
    return np.nan_to_num(result)


def _is_part(part: Series, whole: Series) -> bool:
    """Whether all rows of a series are rows of another one of the same id."""
    rows = np.minimum(np.searchsorted(whole.times, part.times), len(whole.times) - 1)
    return (
        part.id == whole.id
        and np.array_equal(whole.times[rows], part.times)
        and np.array_equal(whole.values[rows], part.values, equal_nan=True)
    )
