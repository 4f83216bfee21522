"""Data sets where a command takes a table: `NAME` or `NAME:PROTOCOL`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from physsm._errors import ConfigError
from physsm._registry import find, names_in

if TYPE_CHECKING:
    from physsm.datasets._dataset import Dataset, Split


@dataclass(frozen=True)
class NamedData:
    """A data set under a protocol."""

    dataset: Dataset
    protocol: str

    def split(self, data_dir: Path | None) -> Split:
        """Its split, from files in `data_dir` if they are there."""
        where = {"data_dir": data_dir} if self.dataset.sources else {}
        return self.dataset.split(self.protocol, **where)


def named_data(what: str) -> NamedData | None:
    """The data set that is named, by default under its strict protocol; None for a file."""
    name, _, protocol = what.partition(":")
    if name not in names_in("datasets") or Path(what).exists():
        return None
    dataset: Dataset = find("datasets", name, "DATASET")
    usual = "strict" if "strict" in dataset.protocols else next(iter(dataset.protocols))
    return NamedData(dataset, protocol or usual)


def refuse_columns(options: Mapping[str, str | None], what: str) -> None:
    """A data set has its own columns: options that name them are an error."""
    if given := [f"--{name}" for name, value in options.items() if value]:
        raise ConfigError(f"{', '.join(given)}: only for a table, and {what} is a data set")


def column_names(text: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
