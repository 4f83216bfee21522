"""An experiment: a table of models on data sets, written in TOML.

    title = "Baselines on every data set"
    seeds = 3                      # 0, 1 and 2, where a seed changes the result

    [[data]]                       # a column: a data set under a protocol; data = [NAMES] is short
    name = "drone:strict"
    settings = { stride = 25 }     # of the protocol
    test_windows = 600             # at most, evenly spaced; all by default

    [[row]]                        # a model
    model = "arx"
    label = "arx_100_by_2"         # its name in the table; by default the model's
    settings = { lags = [50], spacing = 2 }
    configuration = "drone"        # named settings, which the row's own override
    on = ["drone:strict"]          # all columns by default
    ablation = "no regulariser"    # the part that was left out, if any
    [row.settings_on."drone:strict"]  # settings for one column, which override the others
    horizon = 200
    [row.budgets.smoke]            # settings for a budget, which override the others
    training = { steps = 10 }

    [budgets.smoke]                # the same for all rows that have a configuration
    training = { epochs = 1 }

    [published."drone:paper".arx_100_by_2]  # published scores of a row
    extrap_mae = 0.3

A job is one cell of the table with a seed and a budget.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from physsm._arguments import merged
from physsm._errors import ConfigError, did_you_mean
from physsm.benchmark.configurations import configuration

Budget = Literal["smoke", "cpu", "paper"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)

_FOLDER = resources.files("physsm") / "experiments"


class Column(BaseModel):
    """A data set under a protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    settings: dict[str, Any] = {}
    test_windows: int | None = Field(default=None, ge=1)

    @field_validator("name")
    @classmethod
    def _names_a_protocol(cls, name: str) -> str:
        if re.fullmatch(r"\w+:\w+", name) is None:
            raise ValueError(
                f"{name!r} is not a data set with a protocol, such as covid:strict (physsm data "
                "list shows all); for a table of your own, fit each model with physsm fit and "
                "score it with physsm evaluate"
            )
        return name

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self.name.split(":")[0]

    @property
    def protocol(self) -> str:
        """The name of its protocol."""
        return self.name.split(":")[1]


class Row(BaseModel):
    """A model with its settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    label: str | None = Field(default=None, pattern=r"^\w+$")
    configuration: str | None = None
    settings: dict[str, Any] = {}
    settings_on: dict[str, dict[str, Any]] = {}
    budgets: dict[Budget, dict[str, Any]] = {}
    physics: str | None = None
    on: tuple[str, ...] | None = None
    ablation: str | None = None

    @property
    def name(self) -> str:
        """Its name in the table."""
        return self.label or self.model


def _as_column(written: Any) -> Any:
    """A column from a name alone, without settings."""
    return {"name": written} if isinstance(written, str) else written


class Experiment(BaseModel):
    """A table: `data` holds its columns, `row` its rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    data: tuple[Annotated[Column, BeforeValidator(_as_column)], ...] = Field(min_length=1)
    row: tuple[Row, ...] = Field(min_length=1)
    seeds: int = Field(default=3, ge=1)
    budgets: dict[Budget, dict[str, Any]] = {}
    published: dict[str, dict[str, dict[str, float]]] = {}

    @model_validator(mode="after")
    def _give_budgets(self) -> Experiment:
        """Pass the table's budgets on to rows with a configuration; their own override these."""
        rows = tuple(
            row.model_copy(update={"budgets": merged(self.budgets, row.budgets)})
            if row.configuration
            else row
            for row in self.row
        )
        return self.model_copy(update={"row": rows, "budgets": {}})


class Job(BaseModel):
    """One cell of a table with a seed and a budget: all that its result depends on.

    Field names are part of `store.digest`: results of other names would count as foreign.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str
    column: Column
    row: Row
    seed: int
    budget: Budget

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the model: those of its configuration, the row, the column and the budget. A
        later one overrides an earlier one.
        """
        row, where = self.row, self.column.name
        settings = configuration(row.configuration, row.model) if row.configuration else {}
        for more in (
            row.settings,
            row.settings_on.get(where, {}),
            row.budgets.get(self.budget, {}),
        ):
            settings = merged(settings, more)
        return settings

    @property
    def name(self) -> str:
        """The stem of its result file."""
        where = self.column.name.replace(":", "-")
        return f"{where}-{self.row.name}-{self.budget}-{self.seed}"


def experiment_names() -> list[str]:
    """Names of the tables that come with physsm."""
    paths = (Path(entry.name) for entry in _FOLDER.iterdir())
    return sorted(path.stem for path in paths if path.suffix == ".toml")


def read_experiment(name: str) -> tuple[str, Experiment]:
    """A table by its name, or from a TOML file: its name and contents."""
    path = Path(name)
    if path.suffix == ".toml":
        try:
            return path.stem, _parsed(path.read_text("utf-8"), name)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name} cannot be read: {error}") from error
    if name not in (known := experiment_names()):
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no table called {name!r}: {hint}")
    return name, _parsed(_FOLDER.joinpath(f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def jobs(
    table: str,
    experiment: Experiment,
    seeds: Sequence[int],
    budget: Budget,
    models: Sequence[str] | None = None,
) -> Iterator[Job]:
    """The jobs of a table for these seeds: all its cells, or those of the rows in `models`."""
    rows = _chosen(experiment, models)
    for column in experiment.data:
        for row in rows:
            if row.on is None or column.name in row.on:
                for seed in seeds:
                    yield Job(table=table, column=column, row=row, seed=seed, budget=budget)


def _chosen(experiment: Experiment, models: Sequence[str] | None) -> Sequence[Row]:
    known = [row.name for row in experiment.row]
    for name in models or ():
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise ConfigError(f"the table has no row {name!r}: {hint}")
    return [row for row in experiment.row if models is None or row.name in models]


def _parsed(text: str, source: str) -> Experiment:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    try:
        experiment = Experiment.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{source}: {place}: {first['msg']}") from None
    _check_names(experiment, source)
    return experiment


def _check_names(experiment: Experiment, source: str) -> None:
    columns = [column.name for column in experiment.data]
    for kind, names in (("column", columns), ("row", [row.name for row in experiment.row])):
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"{source}: there are two {kind}s called {twice[0]!r}")
    labels = [row.name for row in experiment.row]
    for where, rows in experiment.published.items():
        if where not in columns:
            raise ConfigError(f"{source}: published: there is no column {where!r}")
        if unknown := [name for name in rows if name not in labels]:
            raise ConfigError(f"{source}: published: there is no row {unknown[0]!r}")
    for row in experiment.row:
        if row.configuration is not None:
            configuration(row.configuration, row.model)
        for name in (*(row.on or ()), *row.settings_on):
            if name not in columns:
                hint = did_you_mean(name, columns) or f"there are {', '.join(columns)}"
                raise ConfigError(f"{source}: row {row.name} names the column {name!r}: {hint}")
