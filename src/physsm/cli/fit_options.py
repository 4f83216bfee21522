"""Arguments and options of `physsm fit`; some of them stand for settings of a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|NAME[:PROTOCOL]",
        help="A CSV or Parquet file, one row per time; or a data set (physsm data list).",
    ),
]
Physics = Annotated[
    str | None,
    typer.Option("--physics", metavar="NAME|FILE", help="A built-in system or a .phys file."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(help="A TOML file with settings, or a named configuration, such as drone."),
]
ValidationTable = Annotated[
    Path | None,
    typer.Option(
        help="A table like TABLE to validate on; without it a part of TABLE is set aside."
    ),
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=0,
        help="Time steps that a forecast sees before it; a few are a simulation, 0 and 1 count "
        "as 2. By default chosen from the table.",
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option(
        "--horizon", min=1, help="Time steps to forecast. By default chosen from the table."
    ),
]
NoRefit = Annotated[
    bool,
    typer.Option("--no-refit", help="Do not fit once more with the validation part included."),
]
Hold = Annotated[
    Literal["previous", "linear", "mean", "auto"] | None,
    typer.Option("--hold", help="How a control continues between its rows."),
]


def with_options(
    settings: Mapping[str, Any], model: str, *, no_refit: bool, hold: str | None
) -> dict[str, Any]:
    """Settings with those of the options that were given; an error if the model lacks one."""
    asked: dict[str, tuple[str, Any]] = {
        "refit": ("--no-refit", False if no_refit else None),
        "control_hold": ("--hold", hold),
    }
    given = {name: row for name, row in asked.items() if row[1] is not None}
    for name, (option, _) in given.items():
        _check_setting(model, name, option)
    return {**settings, **{name: value for name, (_, value) in given.items()}}


def _check_setting(model: str, setting: str, option: str) -> None:
    """Fail where a model has no such setting, with the names of those that have it."""
    from physsm._errors import ConfigError
    from physsm._registry import find, names_in

    if setting in find("models", model, "MODEL").Config.model_fields:
        return
    having = [
        name
        for name in names_in("models")
        if setting in find("models", name, "MODEL").Config.model_fields
    ]
    raise ConfigError(
        f"{option} sets {setting}, and {model} has no such setting; "
        + (f"these models have it: {', '.join(having)}" if having else "no model has it")
    )
