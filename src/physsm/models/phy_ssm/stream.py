"""A series that comes in row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from physsm._arguments import number, numbers
from physsm._errors import DataError
from physsm._values import Panel
from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models._stored import Interface
from physsm.models.phy_ssm.values import Boundary


@dataclass(frozen=True, eq=False)
class Stream:
    """One series as it comes in: everything that its future depends on, whatever its length.

    `last` is each channel's last value, scaled, `control` the last control in its units.
    """

    boundary: Boundary
    time: float | None
    last: Float[np.ndarray, " channels"]
    control: Float[np.ndarray, " controls"]


class Row(NamedTuple):
    """A row as the encoder reads it."""

    last: Float[np.ndarray, " channels"]
    seen: Float[np.ndarray, " channels"]
    control: Float[np.ndarray, " controls"]
    gap: float

    def observations(self, dtype: Any) -> Observations:
        """In the precision of a network."""
        return Observations(*(np.asarray(field, dtype) for field in self))  # type: ignore[arg-type]


def next_row(plan: Plan, stream: Stream, t: float, x: Any, u: Any) -> Row:
    """A row after the stream's last, checked and scaled."""
    values, control = numbers(x, "channels").reshape(-1), numbers(u, "controls").reshape(-1)
    if len(values) != len(plan.channels) or len(control) != len(plan.controls):
        raise DataError(
            f"a row has {len(plan.channels)} channels ({', '.join(plan.channels)}) and "
            f"{len(plan.controls)} controls ({', '.join(plan.controls) or 'none'}), and "
            f"{len(values)} and {len(control)} were given",
            hint="channels are the argument x, controls u",
        )
    t = number(t, "time")
    if stream.time is not None and t <= stream.time:
        raise DataError(f"the time {t} is not after the stream's last time {stream.time}")
    if not np.isfinite(control).all() or np.isinf(values).any():
        raise DataError("a row holds an infinity, or a control that is not a number")
    seen = ~np.isnan(values)
    scaled = (values - np.array(plan.channel_shift)) / np.array(plan.channel_scale)
    gap = 1.0 if stream.time is None else (t - stream.time) / plan.time_scale
    return Row(np.where(seen, scaled, stream.last), seen.astype(float), control, gap)


def as_history(stream: Stream, interface: Interface) -> Panel:
    """The last row of a stream as a panel, for the times and controls of a forecast."""
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
