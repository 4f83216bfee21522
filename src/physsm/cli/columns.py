"""Options that name the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping

from physsm._errors import ConfigError


def refuse_columns(options: Mapping[str, str | None], data: str) -> None:
    """Refuse options that name columns, for a data set: its columns are fixed."""
    if given := [f"--{name}" for name, value in options.items() if value]:
        raise ConfigError(f"{', '.join(given)}: only for a table, and {data} is a data set")


def column_names(text: str | None) -> list[str] | None:
    """Names that are separated by commas; None if there are none."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
