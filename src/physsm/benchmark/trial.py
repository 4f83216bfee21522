"""What models are scored on: histories, what is asked of them, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from physsm._errors import DataError
from physsm._values import Panel, Query
from physsm.data.window import Sizes, cut_windows, windows
from physsm.datasets._dataset import Part, Split

_VALIDATION_WINDOWS = 200


@dataclass(frozen=True, eq=False)
class Trial:
    """Windows of a panel, as `data.window.cut_windows` gives them.

    `inside` is what a prediction one row ahead is held against: the history, or its truth. `unit`
    is what errors of each channel are divided by. The rest is as in `Split`.
    """

    history: Panel
    query: Query
    target: Panel
    inside: Panel
    unit: Float[np.ndarray, " channels"]
    debias: Callable[[np.ndarray], np.ndarray] | None = None
    tracks: tuple[tuple[str, str], ...] = ()
    in_domain: int | None = None

    def select(self, chosen: Int[np.ndarray, " chosen"]) -> Trial:
        """Some of the windows, by their numbers."""
        query = self.query
        return replace(
            self,
            history=self.history.select(chosen),
            query=Query(query.times[chosen], query.controls[chosen], query.lengths[chosen]),
            target=self.target.select(chosen),
            inside=self.inside.select(chosen),
        )


def panel_trial(panel: Panel, sizes: Sizes, unit: Float[np.ndarray, " channels"]) -> Trial:
    """All windows of a panel whose targets do not overlap."""
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.horizon)
    if not chosen.number:
        raise DataError(
            f"no series is long enough to score: a target of {sizes.horizon} rows and two rows "
            f"before it are needed, and the longest has {int(panel.lengths.max(initial=0))}",
            hint="give longer series, or set a smaller horizon",
        )
    history, query, target = cut_windows(panel, chosen)
    return Trial(history, query, target, history, unit)


def split_trial(split: Split, most: int | None = None) -> Trial:
    """The test windows of a split; of more than `most`, as many evenly chosen ones."""
    part = thinned(split.test, most)
    trial = _part_trial(split, part)
    if split.truth is None:
        return trial
    inside, _, target = cut_windows(split.truth, part.windows)
    return replace(trial, inside=inside, target=target)


def validation_trial(split: Split) -> Trial:
    """Windows of the validation part: what was measured is all that is known of it."""
    return _part_trial(split, thinned(split.validation, _VALIDATION_WINDOWS))


def _part_trial(split: Split, part: Part) -> Trial:
    history, query, target = cut_windows(part.panel, part.windows)
    return Trial(
        history, query, target, history, split.unit, split.debias, split.tracks, split.in_domain
    )


def thinned(part: Part, most: int | None) -> Part:
    """A part with at most so many of its windows, evenly chosen."""
    number = part.windows.number
    if most is None or number <= most:
        return part
    kept = np.unique(np.linspace(0, number - 1, most).astype(np.int64))
    return replace(part, windows=part.windows[kept])
