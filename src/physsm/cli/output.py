"""Printing: the only place that writes to the terminal."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement

from physsm._errors import PhyssmError


def show(renderable: RenderableType, *, may_cut: bool = True) -> None:
    """Print a table or text. It is cut to the width of a terminal, but not in a file or pipe; with
    `may_cut=False` long lines wrap in a terminal too.
    """
    terminal = Console()
    width = terminal.width
    if not terminal.is_terminal or not may_cut:
        wide = Console(width=10_000)
        width = max(width, Measurement.get(wide, wide.options, renderable).maximum)
    page = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal.is_terminal,
        color_system=terminal.color_system,  # type: ignore[arg-type]
        highlight=False,
    )
    page.print(renderable)
    text = page.file.getvalue()  # type: ignore[attr-defined]
    show_plain("\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")))


def show_json(content: Any) -> None:
    """Print JSON."""
    from physsm._json import to_json

    show_plain(to_json(content, indent=2))


def show_plain(text: str) -> None:
    """Print text; characters that the terminal's encoding lacks become escapes."""
    if sys.stdout is None:
        raise PhyssmError("the output cannot be written: it is closed")
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _discard_output()
        raise SystemExit(0) from None
    except OSError as error:
        _discard_output()
        raise PhyssmError(f"the output cannot be written: {error.strerror}") from error


def show_error(text: str, kind: str = "error") -> None:
    """Print to standard error as plain text, so that carets stay below the right column."""
    if sys.stderr is not None:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(f"{kind}: {text}\n".encode(encoding, "backslashreplace").decode(encoding))


def _discard_output() -> None:
    """Discard buffered output, so that closing the stream at exit raises no second error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
