"""Training and validation parts that never share a sample."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from physsm._errors import ConfigError, DataError
from physsm._values import Panel

_SHARE = 0.2
_GAPS = 20  # of the gap before validation rows, in a series
ENOUGH_SERIES = 5  # with fewer, a fifth of the series would be less than one
_LEAST_ROWS = 2  # as in a table: one row has no gap
_LEAST_WINDOW = 3  # a context of two rows and one target


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
    """Default training and validation panels for windows of `window` rows.

    From five series on, a fifth of them is validation. With fewer, it is the end of each series: a
    fifth of its rows, at least one window and at most half, after a gap of a twentieth (at most one
    window). If that leaves one of several series without a training window, they are split by
    series. Validation series hold a window if any series does.
    """
    lengths = panel.lengths
    if len(panel) < ENOUGH_SERIES:
        held_out = np.maximum(np.rint(_SHARE * lengths).astype(np.int64), window)
        gaps = np.clip(lengths // _GAPS, 1, window)
        left = lengths - gaps - held_out
        if len(panel) == 1:
            _check_one_series(panel, window, int(left[0]))
            return _split_ends(panel, left, held_out)
        if (left >= window).all():
            return _split_ends(panel, left, held_out)
    long = np.flatnonzero(lengths >= window)
    if len(long) < 2:
        return split_series(panel, _SHARE, seed)
    # A series shorter than a window is of little use for validation: it is trained on.
    count = min(_SHARE * len(panel), len(long) - 1)
    _, validation = split_series(panel.select(long), count / len(long), seed)
    train = [i for i, name in enumerate(panel.ids) if name not in set(validation.ids)]
    return panel.select(train), validation


def _split_ends(
    panel: Panel, left: Int[np.ndarray, " series"], held_out: Int[np.ndarray, " series"]
) -> tuple[Panel, Panel]:
    """The first `left` and the last `held_out` rows of each series."""
    return panel.between(0, left), panel.between(panel.lengths - held_out, panel.lengths)


def _check_one_series(panel: Panel, window: int, left: int) -> None:
    """Fail where one series is too short for a validation window in its second half."""
    rows = int(panel.lengths[0])
    if 2 * window > rows or left < _LEAST_ROWS + 1:
        fits = f"set a context and a horizon of at most {rows // 2} rows together"
        raise DataError(
            f"series {panel.ids[0]} has {rows} rows, too few to train on and to validate: a "
            f"validation window, context and horizon, has {window} rows, and at most half of the "
            f"rows may be validation",
            hint=f"{fits if rows >= 2 * _LEAST_WINDOW else 'give more rows'}, or give a validation "
            "table",
        )


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise ConfigError(f"the share of validation is {share}: it must be between 0 and 1")
