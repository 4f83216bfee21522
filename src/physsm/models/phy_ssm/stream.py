"""Streams: a series that arrives measurement by measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from physsm._arguments import number, numbers
from physsm._errors import DataError
from physsm._values import Panel
from physsm.models._files import Interface
from physsm.models._network.observations import FIRST_GAP, Observations
from physsm.models._network.scales import TableScales
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Boundary


@dataclass(frozen=True, eq=False)
class Stream:
    """State of one series: everything that its future depends on, whatever its length.

    `last` is each channel's last value, scaled; `control` is the last control in its units.
    """

    boundary: Boundary
    time: float | None
    last: Float[np.ndarray, " channels"]
    control: Float[np.ndarray, " controls"]


class Row(NamedTuple):
    """A measurement as the encoder reads it."""

    last: Float[np.ndarray, " channels"]
    seen: Float[np.ndarray, " channels"]
    control: Float[np.ndarray, " controls"]
    gap: float

    def observations(self, dtype: Any) -> Observations:
        """In the precision of a network."""
        return Observations(*(np.asarray(field, dtype) for field in self))  # type: ignore[arg-type]


def next_row(table: TableScales, stream: Stream, t: float, x: Any, u: Any) -> Row:
    """The next measurement of a stream, checked and scaled."""
    values, control = numbers(x, "channels").reshape(-1), numbers(u, "controls").reshape(-1)
    if len(values) != len(table.channels) or len(control) != len(table.controls):
        raise DataError(
            f"a row has {len(table.channels)} channels ({', '.join(table.channels)}) and "
            f"{len(table.controls)} controls ({', '.join(table.controls) or 'none'}), and "
            f"{len(values)} and {len(control)} were given",
            hint="channels are the argument x, controls u",
        )
    t = number(t, "time")
    if stream.time is not None and t <= stream.time:
        raise DataError(f"the time {t} is not after the stream's last time {stream.time}")
    if not np.isfinite(control).all() or np.isinf(values).any():
        raise DataError("a row holds an infinity, or a control that is not a number")
    seen = ~np.isnan(values)
    scaled = (values - table.channel_shift) / table.channel_scale
    gap = FIRST_GAP if stream.time is None else float((t - stream.time) / table.time_scale)
    return Row(
        last=np.where(seen, scaled, stream.last), seen=seen.astype(float), control=control, gap=gap
    )


def as_history(stream: Stream, interface: Interface) -> Panel:
    """A panel with the last time of a stream, for the times and controls of a forecast."""
    if stream.time is None:
        raise DataError("the stream has no measurement yet")
    return Panel(
        ids=("stream",),
        times=np.array([[stream.time]]),
        values=np.full((1, 1, len(interface.channels)), np.nan),
        controls=stream.control[None, None],
        lengths=np.array([1]),
        channels=interface.channels,
        control_names=interface.controls,
        layout=replace(interface.layout, integer_ids=False),
    )


def compiled_update(network: Network) -> Callable[[Boundary, Observations], Boundary]:
    """A stream after one more measurement. The parameters are part of the program: handing them
    over each time would take longer than the update itself.
    """
    return jax.jit(lambda boundary, row: network.update(boundary, row))
