"""Printing: the only place that writes to the terminal."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement


def show(renderable: RenderableType) -> None:
    """Print for people. Into a file or pipe, nothing is cut to the width of a terminal."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
        return
    wide = Console(width=10_000)
    needed = Measurement.get(wide, wide.options, renderable).maximum
    console.width = max(console.width, needed)
    with console.capture() as captured:
        console.print(renderable)
    show_plain("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")))


def show_json(content: Any) -> None:
    """Print for machines."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def show_plain(text: str) -> None:
    """Print as it is."""
    sys.stdout.write(text + "\n")


def show_error(text: str) -> None:
    """Print to standard error, in plain text so that carets stay under their place."""
    sys.stderr.write(f"error: {text}\n")
