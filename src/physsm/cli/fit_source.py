"""Input of `physsm fit`: a table with its physics, or the split of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from physsm._errors import ConfigError
from physsm._values import Panel
from physsm.benchmark.named_data import NamedData, named_data
from physsm.cli.columns import read_columns, refuse_columns
from physsm.data.table import read_table
from physsm.datasets._dataset import Split
from physsm.physics.read import find_structure
from physsm.physics.system import System


@dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """Series to fit to, and their physics. `data_set` names data set and protocol, `physics` the
    system; both are None if there is none.
    """

    data: Panel | Split
    title: str
    data_set: str | None
    physics: str | None
    system: System | None

    @property
    def unit_of_errors(self) -> str:
        """The unit of the scores in words."""
        if isinstance(self.data, Split):
            return f"units of {self.data.unit_words}"
        return "standard deviations of the training part"

    def read_validation(self, path: Path) -> Panel:
        """A validation table with the columns of the table."""
        if isinstance(self.data, Split):
            raise ConfigError(
                f"--validation is only for a table, and {self.data_set} is a data set"
            )
        table = self.data
        return read_table(
            path,
            time=table.layout.time,
            series=table.layout.series,
            channels=list(table.channels),
            controls=list(table.control_names),
            time_unit=table.layout.time_unit,
        )


def read_source(
    table: str, physics: str | None, columns: Mapping[str, str | None], data_dir: Path | None
) -> Source:
    """Read a table or make the split of a data set; `columns` are the options that name columns."""
    if (named := named_data(table)) is not None:
        return _data_set(named, table, physics, columns, data_dir)
    system = None if physics is None else System(find_structure(physics))
    controls = None if system is None else list(system.controls)
    return Source(
        data=read_columns(Path(table), columns, controls),
        title=Path(table).stem,
        data_set=None,
        physics=physics,
        system=system,
    )


def _data_set(
    named: NamedData,
    title: str,
    physics: str | None,
    columns: Mapping[str, str | None],
    data_dir: Path | None,
) -> Source:
    refuse_columns(columns, title)
    split = named.split(data_dir)
    physics = physics or named.dataset.system
    return Source(
        data=split,
        title=title,
        data_set=named.name,
        physics=physics,
        system=System(find_structure(physics)),
    )
