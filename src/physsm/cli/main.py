"""The `physsm` command: one file per subcommand, and one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from physsm._errors import PhyssmError
from physsm.cli.bench import bench
from physsm.cli.data import data
from physsm.cli.demo import demo
from physsm.cli.evaluate import evaluate
from physsm.cli.explain import explain
from physsm.cli.fit import fit
from physsm.cli.forecast import forecast
from physsm.cli.options import INTERRUPTED, Debug, debugging
from physsm.cli.output import show_error, show_plain
from physsm.cli.report import report
from physsm.cli.systems import systems

# XLA, which is imported later, prints long warnings about its own tuning hints for the processor.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

BAD_INPUT = 2

app = typer.Typer(
    name="physsm",
    help="Forecast partly known dynamical systems from noisy, irregular measurements.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _command in (demo, systems, explain, fit, forecast, evaluate, report):
    app.command()(_command)
app.add_typer(data)
app.add_typer(bench)


def _show_version(wanted: bool) -> None:
    if wanted:
        from physsm._version import __version__

        show_plain(f"physsm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
    debug: Debug = False,
) -> None:
    """Forecast partly known dynamical systems from noisy, irregular measurements."""


def run() -> None:
    """Run the command line; bad input ends in one clear message and exit code 2."""
    try:
        app()
    except PhyssmError as error:
        if debugging.wanted:
            raise
        show_error(str(error))
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
