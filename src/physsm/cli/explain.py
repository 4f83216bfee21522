"""`physsm explain`: the compiled form of a physics text."""

from __future__ import annotations

from typing import Annotated

import typer

from physsm.cli.input import read_standard_input
from physsm.cli.options import Debug, Json
from physsm.cli.output import show, show_json, show_plain


def explain(
    system: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="A built-in system, a .phys file, or - for standard input."
        ),
    ],
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX formula.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a compiled physics text: lifted equations, matrices, unknowns, guarantees."""
    from physsm.physics import explain as explanation
    from physsm.physics.read import find_structure, parse_structure
    from physsm.physics.source import MAX_CHARACTERS

    if latex and json:
        raise typer.BadParameter("choose one of --latex and --json")
    if system == "-":
        structure = parse_structure(read_standard_input(MAX_CHARACTERS + 1), "standard input")
    else:
        structure = find_structure(system)
    if json:
        show_json(explanation.describe(structure))
    elif latex:
        show_plain(explanation.latex(structure))
    else:
        show(explanation.render(structure, system))
