"""The fit of the linear bypass: ridge regressions of each time step on those before it.

Of several memories and ridges, the pair with the least squared error of rollouts over the horizon,
in the validation part, makes the rollout weights. Of that memory, the ridge with the least error
one step ahead makes the weights of the next step. In these rollouts, channels that measure a state
are taken as measured. Without a validation window, the shortest memory and the strongest ridge are
taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.data.window import Sizes, Windows, hold_last, windows
from physsm.models._baseline.ridge import ridge_weights
from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.bypass_inputs import BypassInputs, BypassShape
from physsm.models.phy_ssm.linear_bypass import FAR, LONGEST, LinearBypass, features
from physsm.nn.layers import parameter

OFFSETS = (*range(8), *range(8, 100, 2))
_MEMORIES = (4, 12, 20, 32, len(OFFSETS))  # how many of the offsets may be used
_SHORT = 12  # of them where a series has fewer rows
_RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
_MOST_FEATURES = 2500
_MOST_ROWS = 40_000
_MOST_WINDOWS = 64
_REGULAR = 0.9  # share of the gaps near the median, and of the cells that were measured


class BypassFit(NamedTuple):
    """The shape of a bypass, and its weights for rollouts, for the next step and, if it has a short
    memory, for the first steps of a series.
    """

    shape: BypassShape
    rollout: Float[np.ndarray, "features free"]
    next: Float[np.ndarray, "features free"]
    short: Float[np.ndarray, "short_features free"] | None = None


def with_weights(bypass: LinearBypass, fit: BypassFit) -> LinearBypass:
    """The bypass with fitted weights."""
    arrays = [fit.rollout, fit.next] + ([] if fit.short is None else [fit.short])

    def weights(bypass: LinearBypass) -> list[Any]:
        return [bypass.rollout_weights, bypass.next_weights, bypass.short_weights][: len(arrays)]

    return eqx.tree_at(weights, bypass, [parameter(array) for array in arrays])


def is_regular(panel: Panel) -> bool:
    """Whether gaps are nearly equal, with nearly all channels measured."""
    gaps, cells = panel.gaps / panel.median_gap, panel.lengths.sum() * len(panel.channels)
    near = np.mean((gaps > 0.5) & (gaps < 1.5)) if gaps.size else 0.0
    return bool(near >= _REGULAR and panel.observed.sum() >= _REGULAR * cells)


def fit_linear_bypass(
    inputs: BypassInputs, states: StateScales, train: Panel, held_out: Panel, sizes: Sizes
) -> BypassFit | None:
    """From scaled panels; None where times are irregular or all channels measure a state."""
    free = states.free_channels
    memories = [
        offsets
        for offsets in (OFFSETS[:count] for count in _MEMORIES)
        if features(inputs, len(offsets)) <= _MOST_FEATURES
        and max(offsets) < min(sizes.context, int(train.lengths.max(initial=0)) // 2)
    ]
    if not len(free) or not memories or not is_regular(train):
        return None
    rows = _all_rows(inputs, train)
    widths = {len(offsets): features(inputs, len(offsets)) for offsets in memories}
    longest = memories[-1]
    every = -(-sum(len(one.gaps) for one in rows) // _MOST_ROWS)
    made = [_regression(one, inputs.count, longest, free, every) for one in rows]
    regressors, targets, known = (np.concatenate(part) for part in zip(*made, strict=True))
    weights = ridge_weights(regressors, targets, known, widths, _RIDGES)
    rollouts, one_step = _validation_rollouts(inputs, held_out, sizes), _all_rows(inputs, held_out)

    def rollout_error(pair: tuple[int, float]) -> float:
        return rollouts.squared_error(longest[: pair[0]], weights[pair], free)

    def best_next(count: int) -> np.ndarray:
        candidates = [weights[count, ridge] for ridge in sorted(_RIDGES, reverse=True)]
        return min(
            candidates,
            key=lambda candidate: _next_step_error(
                longest[:count], candidate, one_step, inputs.count, free
            ),
        )

    # Of equally good ones, the first: short memories and strong ridges.
    count, ridge = min(sorted(weights, key=lambda pair: (pair[0], -pair[1])), key=rollout_error)
    has_short = count > _SHORT and _SHORT in widths
    shape = replace(inputs.shape, offsets=longest[:count], short=_SHORT if has_short else 0)
    return BypassFit(
        shape=shape,
        rollout=weights[count, ridge],
        next=best_next(count),
        short=best_next(_SHORT) if has_short else None,
    )


def _all_rows(inputs: BypassInputs, panel: Panel) -> list[_Rows]:
    return [_rows(inputs, panel, i) for i in range(len(panel))]


def _next_step_error(
    offsets: tuple[int, ...],
    weights: np.ndarray,
    rows: list[_Rows],
    inputs: int,
    free: np.ndarray,
) -> float:
    """The mean squared error of slopes one row ahead, of rows that know all offsets."""
    total, count = 0.0, 0
    for one in rows:
        regressors, slopes, known = _regression(one, inputs, offsets, free, 1)
        whole = known == len(offsets)
        total += float(((regressors[whole] @ weights - slopes[whole]) ** 2).sum())
        count += int(whole.sum())
    return total / count if count else np.inf


class _Rows(NamedTuple):
    """One series: scaled channels, held where they were not measured, then inputs; gaps."""

    both: Float[np.ndarray, "rows width"]
    gaps: Float[np.ndarray, " before"]


def _rows(inputs: BypassInputs, panel: Panel, series: int) -> _Rows:
    one = panel[series]
    held = hold_last(np.nan_to_num(one.values), ~np.isnan(one.values))
    return _Rows(np.concatenate([held, inputs(one.controls)], axis=1), np.diff(one.times))


def _regression(
    one: _Rows, inputs: int, offsets: tuple[int, ...], free: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features and slopes of each `every`-th row that is followed by another soon enough, and how
    many of the offsets each knows.
    """
    now = np.arange(0, len(one.both) - 1, every)
    now = now[one.gaps[now] <= LONGEST]
    next_inputs = one.both[now + 1, one.both.shape[1] - inputs :]
    lagged = [one.both[np.maximum(now - offset, 0)] for offset in offsets]
    regressors = np.concatenate([np.ones((len(now), 1)), next_inputs, *lagged], axis=1)
    slopes = (one.both[now + 1][:, free] - one.both[now][:, free]) / one.gaps[now, None]
    known = np.searchsorted(np.array(offsets), now, side="right")
    return regressors, slopes, known


class _Rollouts(NamedTuple):
    """Windows of the validation part: rows up to the end of each, where its target begins."""

    both: Float[np.ndarray, "windows rows width"]
    gaps: Float[np.ndarray, "windows rows"]
    boundary: int
    inputs: int

    def squared_error(
        self, offsets: tuple[int, ...], weights: np.ndarray, free: np.ndarray
    ) -> float:
        """The mean over all targets; infinite without any."""
        if not len(self.both):
            return np.inf
        both = np.array(self.both)
        for row in range(self.boundary, both.shape[1]):
            now = both[:, row, both.shape[2] - self.inputs :]
            lagged = [both[:, max(row - 1 - offset, 0)] for offset in offsets]
            regressors = np.concatenate([np.ones((len(both), 1)), now, *lagged], axis=1)
            slope = np.minimum(self.gaps[:, row, None], LONGEST) * (regressors @ weights)
            both[:, row, free] = np.clip(both[:, row - 1, free] + slope, -FAR, FAR)
        error = (both - self.both)[:, self.boundary :, free]
        return float((error**2).mean())


def _validation_rollouts(inputs: BypassInputs, panel: Panel, sizes: Sizes) -> _Rollouts:
    candidates = windows(panel, sizes.context, sizes.horizon, max(1, sizes.horizon // 2))
    whole = candidates.boundary - candidates.start == sizes.context
    candidates = Windows(*(column[whole] for column in tuple(candidates)))
    count = min(candidates.number, _MOST_WINDOWS)
    used = np.linspace(0, candidates.number - 1, count).astype(np.int64)
    rows = {int(i): _rows(inputs, panel, int(i)) for i in np.unique(candidates.series[used])}
    both = [rows[int(s)].both[a:b] for s, a, _, b in zip(*tuple(candidates[used]), strict=True)]
    gaps = [
        np.concatenate([[1.0], rows[int(s)].gaps[a : b - 1]])
        for s, a, _, b in zip(*tuple(candidates[used]), strict=True)
    ]
    width = len(inputs.table.channels) + inputs.count
    length = sizes.context + sizes.horizon
    return _Rollouts(
        np.array(both).reshape(-1, length, width),
        np.array(gaps).reshape(-1, length),
        sizes.context,
        inputs.count,
    )
