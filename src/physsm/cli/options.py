"""Options that every command has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

INTERRUPTED = 130  # the exit code of a command that was stopped by Ctrl-C


@dataclass
class Debugging:
    """Whether errors show their traceback."""

    wanted: bool = False


debugging = Debugging()


def _set_debugging(value: bool) -> bool:
    debugging.wanted = debugging.wanted or value
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", callback=_set_debugging),
]
