"""Data sets by name, where a command also takes a table: `NAME` or `NAME:PROTOCOL`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from physsm._registry import find, names_in

if TYPE_CHECKING:
    from physsm.datasets._dataset import Dataset, Split


@dataclass(frozen=True)
class NamedData:
    """A data set under a protocol."""

    dataset: Dataset
    protocol: str

    @property
    def name(self) -> str:
        """Data set and protocol, such as `drone:strict`."""
        return f"{self.dataset.name}:{self.protocol}"

    def split(self, data_dir: Path | None) -> Split:
        """The split of the protocol. Its files are searched in `data_dir` first."""
        where = {"data_dir": data_dir} if self.dataset.sources else {}
        return self.dataset.split(self.protocol, **where)


def named_data(text: str) -> NamedData | None:
    """The data set of this name, by default under its strict protocol; None for a file."""
    name, _, protocol = text.partition(":")
    if name not in names_in("datasets") or Path(text).exists():
        return None
    dataset: Dataset = find("datasets", name, "DATASET")
    default = "strict" if "strict" in dataset.protocols else next(iter(dataset.protocols))
    return NamedData(dataset, protocol or default)


def units_of(dataset: Dataset) -> dict[str, str]:
    """Units of the columns of a data set: those that its system declares, and the others."""
    from physsm.physics.read import load_structure  # late, because SymPy loads slowly

    return {**load_structure(dataset.system).physics.units, **dataset.units}
