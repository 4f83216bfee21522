"""Writes docs/cli.md, the command-line reference, from the program's own commands and options.

`--check` changes nothing and fails if the page is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from physsm.cli.main import app

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """\
# Command line

All commands of `physsm`, as `physsm COMMAND --help` prints them. `scripts/command_page.py` writes
this page from the program; a test compares the two.

Bad input ends in one sentence and exit code 2. Ctrl-C ends in exit code 130 and leaves a run that
`--resume` continues. `--json` prints a JSON document for other programs.
"""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def section(path: tuple[str, ...], command: Any) -> str:
    """Heading, purpose, usage and options of one command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    words = ["physsm", *path, *(_metavar(argument) for argument in arguments)]
    words += [f"{option.opts[0]} {_metavar(option)}" for option in options if option.required]
    purpose = re.sub(r"\s+", " ", (command.help or "").strip())
    head = f"## {' '.join(path)}\n\n{purpose}\n\n```sh\n{' '.join(words)} [OPTIONS]\n```\n"
    rows = [_row(_names(_metavar(argument)), argument) for argument in arguments]
    rows += [_row(", ".join(f"`{name}`" for name in option.opts), option) for option in options]
    return "\n".join([head, "| argument or option | default | meaning |", "|---|---|---|", *rows])


def _metavar(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _names(metavar: str) -> str:
    """Alternatives of an argument; a bar would end the cell of a table."""
    return " or ".join(f"`{name}`" for name in metavar.split("|"))


def _row(called: str, parameter: Any) -> str:
    value = parameter.default
    shows = value is not None and value is not False and value != () and not callable(value)
    default = "required" if parameter.required else f"`{value}`" if shows else ""
    return f"| {called} | {default} | {(parameter.help or '').replace('|', ' or ')} |"


def page() -> str:
    """The whole page."""
    program = typer.main.get_command(app)
    sections = [section(path, command) for path, command in commands(program)]
    return "\n\n".join([HEAD.rstrip(), *sections]) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page(), "utf-8")
    elif PAGE.read_text("utf-8") != page():
        sys.exit("docs/cli.md is stale: run python -m scripts.command_page")
