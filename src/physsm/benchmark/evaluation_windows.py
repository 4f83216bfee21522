"""Evaluation windows: histories, queries and targets on which models are scored."""

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


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationWindows:
    """Windows of a panel, one series each, as `data.window.cut_windows` returns them.

    - `reference`: what predictions one step ahead inside the context are compared with: the
      history, or its values without noise where these are known.
    - `scale`: what the errors of each channel are divided by.
    - `debias`, `tracks`, `in_domain`: as in `Split`.
    """

    history: Panel
    query: Query
    target: Panel
    reference: Panel
    scale: Float[np.ndarray, " channels"]
    debias: Callable[[np.ndarray], np.ndarray] | None = None
    tracks: tuple[tuple[str, str], ...] = ()
    in_domain: int | None = None

    def select(self, chosen: Int[np.ndarray, " chosen"]) -> EvaluationWindows:
        """Some of the windows, by their indices."""
        query = self.query
        return replace(
            self,
            history=self.history.select(chosen),
            query=Query(query.times[chosen], query.controls[chosen], query.lengths[chosen]),
            target=self.target.select(chosen),
            reference=self.reference.select(chosen),
        )


def windows_of_panel(
    panel: Panel, sizes: Sizes, scale: Float[np.ndarray, " channels"]
) -> EvaluationWindows:
    """All windows of a panel whose targets do not overlap."""
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.horizon)
    if not chosen.number:
        raise DataError(
            f"no series is long enough to score: a target of {sizes.horizon} time steps and two "
            f"before it are needed, and the longest has {int(panel.lengths.max(initial=0))}",
            hint="give longer series, or set a smaller horizon",
        )
    history, query, target = cut_windows(panel, chosen)
    return EvaluationWindows(
        history=history, query=query, target=target, reference=history, scale=scale
    )


def windows_of_test_part(split: Split, most: int | None = None) -> EvaluationWindows:
    """The test windows of a split, at most `most`, evenly spaced. Errors are taken against values
    without noise, where the split has them.
    """
    part = _thinned(split.test, most)
    found = _windows_of_part(split, part)
    if split.truth is None:
        return found
    reference, _, target = cut_windows(split.truth, part.windows)
    return replace(found, reference=reference, target=target)


def windows_of_validation_part(split: Split) -> EvaluationWindows:
    """Some validation windows of a split, evenly spaced, as measured."""
    return _windows_of_part(split, _thinned(split.validation, _VALIDATION_WINDOWS))


def _windows_of_part(split: Split, part: Part) -> EvaluationWindows:
    history, query, target = cut_windows(part.panel, part.windows)
    return EvaluationWindows(
        history=history,
        query=query,
        target=target,
        reference=history,
        scale=split.unit,
        debias=split.debias,
        tracks=split.tracks,
        in_domain=split.in_domain,
    )


def _thinned(part: Part, most: int | None) -> Part:
    """A part with at most `most` of its windows, evenly spaced."""
    number = part.windows.number
    if most is None or number <= most:
        return part
    chosen = np.unique(np.linspace(0, number - 1, most).astype(np.int64))
    return replace(part, windows=part.windows[chosen])
