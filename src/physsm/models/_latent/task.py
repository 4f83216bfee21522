"""What is trained: windows of the training part, the objective, and the validation loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Array

from physsm._errors import DataError
from physsm._values import Panel
from physsm.data.window import (
    Batch,
    Sizes,
    Windows,
    gather,
    shuffled_batches,
    windows,
)
from physsm.models._latent.kept import Kept
from physsm.models._latent.settings import NetworkConfig
from physsm.training.loop import Task

_BREAK = 1000  # median gaps: a longer one is a break in the recording


def make_task(
    network: Any,
    train: Panel,
    held_out: Panel,
    sizes: Sizes,
    config: NetworkConfig,
    objective: Callable[[Any, Batch, int, Array, Array], Array],
    error: Callable[..., Array],
) -> Task:
    """The task of training a network on panels, by an objective of windows; `error`, a function of
    a module, of windows too, chooses the best parameters.
    """
    train, held_out = network.plan.scale(train), network.plan.scale(held_out)
    chosen = _without_breaks(train, long_enough_windows(train, sizes, "training"))
    size = min(config.training.batch_size, chosen.number)
    per_epoch = config.training.batches_per_epoch(-(-chosen.number // size))

    def batches(epoch: int, generator: np.random.Generator) -> Iterator[Batch]:
        hide = (config.hide, generator) if config.hide else None
        for part in islice(shuffled_batches(chosen, size, generator), per_epoch):
            yield gather(train, part, sizes.context, sizes.horizon, 1.0, hide)

    between = config.validation_stride or sizes.horizon
    held_out_windows = long_enough_windows(held_out, replace(sizes, stride=between), "validation")
    parts = list(_even_parts(held_out_windows, 64))

    def validate(network: Any) -> float:
        kept, values = Kept(network), []
        for part in parts:
            batch = gather(held_out, part, sizes.context, sizes.horizon, 1.0)
            values.append(float(kept(error, batch, context=sizes.context)))
        return float(np.average(values, weights=[part.number for part in parts]))

    def loss(params: Any, batch: Batch, key: Array, progress: Array) -> Array:
        return objective(params, batch, sizes.context, key, progress)

    identity = f"objective {sizes.context} {network.identity}"
    return Task(
        network, loss, batches, per_epoch, validate, identity, start_counts=network.starts_well
    )


def long_enough_windows(panel: Panel, sizes: Sizes, what: str) -> Windows:
    """The windows of a panel; an error if there are none."""
    found = windows(panel, sizes.context, sizes.horizon, sizes.stride)
    if not found.number:
        raise DataError(
            f"no {what} series is long enough: a window needs at least two rows and a target of "
            f"{sizes.horizon}, and the longest series has {int(panel.lengths.max(initial=0))} rows",
            hint="give longer series, or set a smaller horizon",
        )
    return found


def _without_breaks(panel: Panel, chosen: Windows) -> Windows:
    """The windows without an enormous gap, if there are any: nothing is known across one, and the
    gradients of a single such window would drown all others.
    """
    gaps = np.diff(panel.times, axis=1)
    is_break = (gaps > _BREAK * panel.median_gap) & (
        np.arange(1, panel.times.shape[1]) < panel.lengths[:, None]
    )
    before = np.concatenate([np.zeros((len(panel), 1), int), is_break.cumsum(1)], axis=1)
    broken = before[chosen.series, chosen.stop - 1] > before[chosen.series, chosen.start]
    return chosen if broken.all() else chosen[~broken]


def _even_parts(chosen: Windows, largest: int) -> Iterator[Windows]:
    count = -(-chosen.number // largest)
    for part in np.array_split(np.arange(chosen.number), count):
        yield chosen[part]
