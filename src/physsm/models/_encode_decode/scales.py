"""Scales of an encode-decode network: those of every network, and the length of its windows."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from physsm.models._network.scales import (
    Scales,
    StateScales,
    TableScales,
    as_scalar,
    check_positive,
    record_from_json,
)

Number = float | Float[np.ndarray, ""] | Float[Array, ""]


class TrajectoryScales(Scales):
    """Scales of a network, with the length of a training window in the network's unit of time.

    This `span` is the natural time scale of a learned drift.
    """

    span: Float[np.ndarray, ""] = eqx.field(converter=as_scalar, default=1.0)

    def __check_init__(self) -> None:
        check_positive(self.span)

    @classmethod
    def from_json(cls, content: Any) -> TrajectoryScales:
        """The inverse of `to_json`."""
        return cls(
            table=record_from_json(TableScales, content["table"]),
            states=record_from_json(StateScales, content["states"]),
            span=content["span"],
        )

    @property
    def pace(self) -> Number:
        """Factor of a learned drift: a training window then lasts ten units of time."""
        return 10.0 / self.span

    @property
    def node(self) -> Number:
        """Spacing of times at which solver steps end: a quarter of a training window."""
        return self.span / 4
