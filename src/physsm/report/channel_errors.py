"""Errors of channels in their own units: the model beside the best other one."""

from __future__ import annotations

from typing import NamedTuple

from physsm.report.contents import ChannelError, ScoreRow
from physsm.report.markup import Column, escape, number, table
from physsm.report.ranking import ranked

_SHOWN_CHANNELS = 8


class ChannelErrors(NamedTuple):
    """Names of the compared models, the errors of each of the first channels by these models, and
    the number of channels that are left out.
    """

    models: list[str]
    channels: dict[str, list[ChannelError]]
    left_out: int


def compare_channels(rows: list[ScoreRow], model: str) -> ChannelErrors | None:
    """Channel errors of a model and of the best other one; None if the scores, of an older run or
    of very many channels, have none.
    """
    known = [row for row in ranked(rows) if row.get("channel_errors")]
    ours = [row for row in known if row["model"] == model]
    if not ours:
        return None
    names = list(ours[0]["channel_errors"])
    others = [row for row in known if row["model"] != model]
    complete = [row for row in others if set(names) <= set(row["channel_errors"])]
    compared = [ours[0], *complete[:1]]
    return ChannelErrors(
        models=[row["model"] for row in compared],
        channels={
            name: [row["channel_errors"][name] for row in compared]
            for name in names[:_SHOWN_CHANNELS]
        },
        left_out=max(0, len(names) - _SHOWN_CHANNELS),
    )


def channel_section(rows: list[ScoreRow], model: str) -> str:
    """HTML of the comparison; empty if there is none."""
    found = compare_channels(rows, model)
    if found is None:
        return ""
    columns = [Column("Channel"), Column("Unit")]
    columns += [
        Column(f"{name} {error}", is_number=True)
        for name in found.models
        for error in ("MAE", "RMSE")
    ]
    lines = [
        [
            escape(name),
            escape(errors[0]["unit"] or "–"),
            *(number(value) for each in errors for value in (each["mae"], each["rmse"])),
        ]
        for name, errors in found.channels.items()
    ]
    more = f" {found.left_out} more channels are not shown." if found.left_out else ""
    note = f"Errors past the context in the units of the table, without a scale.{more}"
    return f"{table(columns, lines)}\n<p class=note>{note}</p>"
