"""Options that commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

INTERRUPTED = 130  # exit code after Ctrl-C


@dataclass
class Debugging:
    """Whether errors show their traceback."""

    wanted: bool = False


debugging = Debugging()


def _set_debugging(value: bool) -> bool:
    debugging.wanted = debugging.wanted or value
    return value


DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder to search first for a data set's files.")
]
Seed = Annotated[int, typer.Option("--seed", help="The random seed.", min=0, max=2**31 - 1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", callback=_set_debugging),
]
