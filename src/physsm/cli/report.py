"""`physsm report`: the HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import Debug, Json
from physsm.cli.output import show_json, show_plain


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path("report.html"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the report of a run: one self-contained HTML file."""
    from physsm._errors import RunError
    from physsm.report.contents import read_contents
    from physsm.report.page import write_page

    if not run.is_dir():
        raise RunError(f"there is no run folder {run}")
    write_page(read_contents(run / "evaluation.json"), out)
    if json:
        show_json({"report": str(out)})
    else:
        show_plain(f"The report is in {out}.")
