"""The section of settings, folded away, with what identifies the data."""

from __future__ import annotations

import json

from physsm.report.contents import Contents
from physsm.report.markup import NOTHING, Column, count, escape, is_finite, table


def settings_section(contents: Contents) -> str:
    """All settings in a table that opens on a click."""
    settings = contents["settings"]
    rows = [[f"<code>{escape(name)}</code>", escape(_text(v))] for name, v in settings.items()]
    fingerprint = escape(contents["data"]["fingerprint"])
    listed = table([Column("Setting"), Column("Value")], rows) if rows else ""
    return (
        "<section id=settings>\n<h2>Settings</h2>\n"
        f"<details class=settings>\n<summary>{count(len(rows), 'setting')}</summary>\n{listed}\n"
        f"</details>\n<p class=note>Fingerprint of the data: <code>{fingerprint}</code></p>\n"
        "</section>"
    )


def _text(value: object) -> str:
    """A JSON value as one would type it."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and not is_finite(value)):
        return NOTHING
    return json.dumps(value, ensure_ascii=False)
