"""Parts of records that are cut at given rows, so that no row is in two parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physsm._values import Layout, Panel, Series
from physsm.data.scale import channel_moments
from physsm.data.window import Sizes, windows
from physsm.datasets._dataset import Part, RawRows, Split


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """Record of one channel and one control; the control of a row is held until the next row."""

    name: str
    times: Float[np.ndarray, " rows"]
    channel: Float[np.ndarray, " rows"]
    control: Float[np.ndarray, " rows"]


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Rows of the parts of each record: training before `validation`, test from `test` on.

    `sizes` are those of training and validation windows; test windows have the size `test_sizes`.
    """

    validation: int
    test: int
    sizes: Sizes
    test_sizes: Sizes


def split_records(
    records: Sequence[Record], names: tuple[str, str], cut: Cut, notes: tuple[str, ...]
) -> Split:
    """Split of records with the same cut; `names` are the names of the channel and the control.

    Errors are in standard deviations of the training part.
    """
    train = _part(records, names, slice(0, cut.validation), cut.sizes)
    validation = _part(records, names, slice(cut.validation, cut.test), cut.sizes)
    test = _part(records, names, slice(cut.test, None), cut.test_sizes)
    _, scale = channel_moments(train.panel)
    is_longer = cut.test_sizes.horizon > cut.sizes.horizon
    return Split(
        train,
        validation,
        test,
        cut.sizes,
        unit=scale,
        unit_words="the standard deviation in training",
        in_domain=cut.sizes.horizon if is_longer else None,
        notes=notes,
    )


def _part(records: Sequence[Record], names: tuple[str, str], rows: slice, sizes: Sizes) -> Part:
    channel, control = names
    numbers = [np.arange(len(record.times))[rows] for record in records]
    series = [
        Series(
            f"{record.name}@{number[0]}",
            record.times[number],
            record.channel[number][:, None],
            record.control[number][:, None],
        )
        for record, number in zip(records, numbers, strict=True)
    ]
    panel = Panel.from_series(series, [channel], [control], Layout(series="record"))
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.stride)
    raw = (RawRows(r.name, number) for r, number in zip(records, numbers, strict=True))
    return Part(panel, chosen, tuple(raw))
