"""`physsm systems`: the built-in systems."""

from __future__ import annotations

from physsm.cli.options import Debug, Json
from physsm.cli.output import show, show_json


def systems(json: Json = False, debug: Debug = False) -> None:
    """List the built-in systems."""
    from rich.table import Table

    from physsm.physics.read import load_structure, system_names

    structures = {name: load_structure(name) for name in system_names()}
    rows = [
        {
            "name": name,
            "states": len(structure.states),
            "extended": len(structure.names),
            "controls": len(structure.controls),
            "unknowns": len(structure.unknowns),
            "summary": structure.physics.summary,
        }
        for name, structure in structures.items()
    ]
    if json:
        show_json(rows)
        return
    table = Table(box=None, header_style="bold")
    for heading in ("name", "states", "lifted to", "unknowns", "summary"):
        is_text = heading in ("name", "summary")
        table.add_column(
            heading, justify="left" if is_text else "right", no_wrap=heading != "summary"
        )
    for row in rows:
        shown = ("name", "states", "extended", "unknowns", "summary")
        table.add_row(*(str(row[key]) for key in shown))
    show(table)
