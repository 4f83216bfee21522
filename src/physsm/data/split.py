"""Training and validation parts that never share a sample."""

from __future__ import annotations

import numpy as np

from physsm._errors import ConfigError, DataError
from physsm._values import Panel

_SHARE = 0.2
ENOUGH_SERIES = 5  # with fewer, a fifth of the series would be less than one
_LEAST_ROWS = 2  # as in a table: one row has no gap


def split_series(panel: Panel, share: float, seed: int) -> tuple[Panel, Panel]:
    """Training and validation panels of whole series; about a `share` (at least one) validates."""
    _check_share(share)
    if len(panel) < 2:
        raise DataError(
            "a table of one series cannot be split by series", hint="split it by time instead"
        )
    count = int(np.clip(round(share * len(panel)), 1, len(panel) - 1))
    shuffled = np.random.default_rng(seed).permutation(len(panel))
    return panel.select(np.sort(shuffled[count:])), panel.select(np.sort(shuffled[:count]))


def split_time(panel: Panel, share: float, gap: int) -> tuple[Panel, Panel]:
    """Training and validation panels; the last `share` of each series is validation.

    The `gap` time steps before it belong to neither. With a gap of one window, no window that
    starts in the training part reaches the validation part.
    """
    _check_share(share)
    if gap < 0:
        raise ConfigError(f"the gap between training and validation is {gap} rows: it must be >= 0")
    starts = panel.lengths - np.rint(share * panel.lengths).astype(np.int64)
    stops = starts - gap
    for name, length, start, stop in zip(panel.ids, panel.lengths, starts, stops, strict=True):
        if stop < _LEAST_ROWS or length - start < _LEAST_ROWS:
            raise DataError(
                f"series {name} is too short to be split by time: of its {length} rows "
                f"{length - start} would be validation, {gap} the gap and {max(stop, 0)} training",
                hint=f"both parts need at least {_LEAST_ROWS} rows",
            )
    return panel.between(0, stops), panel.between(starts, panel.lengths)


def default_split(panel: Panel, seed: int, window: int) -> tuple[Panel, Panel]:
    """Default training and validation panels.

    From five series on, a fifth of them is validation. With fewer, it is the last fifth of each
    series (at least one `window`) after a gap of one window. Series too short for that are split
    by series if there are two. Validation series hold a window if any series does.
    """
    shortest = int(panel.lengths.argmin())
    rows = int(panel.lengths[shortest])
    long = np.flatnonzero(panel.lengths >= window)
    if len(panel) < ENOUGH_SERIES and rows >= 3 * window:
        return split_time(panel, max(_SHARE, window / rows), gap=window)
    if len(panel) < 2:
        raise DataError(
            f"series {panel.ids[shortest]} has {rows} rows, too few to train on and to validate: "
            f"with windows of {window} rows at least {3 * window} are needed",
            hint="use a shorter window, or give a validation table",
        )
    if len(long) < 2:
        return split_series(panel, _SHARE, seed)
    # A series shorter than a window is of little use for validation: it is trained on.
    count = min(_SHARE * len(panel), len(long) - 1)
    _, validation = split_series(panel.select(long), count / len(long), seed)
    train = [i for i, name in enumerate(panel.ids) if name not in set(validation.ids)]
    return panel.select(train), validation


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise ConfigError(f"the share of validation is {share}: it must be between 0 and 1")
