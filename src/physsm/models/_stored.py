"""What the files of a fitted model hold, and the columns that it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from physsm._errors import RunError
from physsm._values import Layout, Panel
from physsm.data.scale import channel_moments
from physsm.models._calibration import Calibration


@dataclass(frozen=True)
class Interface:
    """The columns that a fitted model speaks of, and how its training table looked.

    `channel_scale` is the standard deviation of each channel there: the unit of scores.
    """

    channels: tuple[str, ...]
    controls: tuple[str, ...]
    layout: Layout
    median_gap: float
    channel_scale: tuple[float, ...] = ()

    @classmethod
    def of(cls, panel: Panel) -> Interface:
        """That of a model trained on the panel."""
        return cls(
            panel.channels,
            panel.control_names,
            panel.layout,
            panel.median_gap,
            tuple(float(scale) for scale in channel_moments(panel)[1]),
        )


class Stored(NamedTuple):
    """The content of a model's files. `source` is their folder, for errors."""

    description: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    interface: Interface
    calibration: Calibration
    source: str

    def array(self, name: str, shape: Sequence[int | None]) -> np.ndarray:
        """An array of 64-bit floats, checked. A None in `shape` is any length but zero."""
        array = self.arrays.get(name)
        if array is None:
            raise RunError(f"{self.source} does not hold this model: the array {name} is missing")
        wrong = array.ndim != len(shape) or any(
            found != wanted if wanted is not None else not found
            for found, wanted in zip(array.shape, shape, strict=False)
        )
        if wrong or array.dtype != np.float64 or not np.isfinite(array).all():
            raise RunError(
                f"{self.source} does not hold this model: the array {name} is not as it was"
            )
        return array
