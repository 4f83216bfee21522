"""The three ways to a structure: a text, a file, or the name of a built-in system."""

from __future__ import annotations

import os
from pathlib import Path

from physsm._errors import PhysicsError
from physsm.physics.library import system_text
from physsm.physics.lift import lift
from physsm.physics.parse import parse
from physsm.physics.source import MAX_CHARACTERS, Source
from physsm.physics.structure import Structure


def parse_structure(text: str, path: str | None = None) -> Structure:
    """Parse and lift a physics text; `path` only serves messages."""
    if not isinstance(text, str):
        raise TypeError(f"a physics text is a string, not {type(text).__name__}")
    return lift(parse(Source(text.removeprefix("\ufeff"), path)))


def read_structure(path: str | os.PathLike[str]) -> Structure:
    """Read, parse and lift a `.phys` file."""
    file = Path(path)
    try:
        if not file.exists():
            raise PhysicsError("there is no such file", path=str(path))
        if not file.is_file():
            raise PhysicsError("this is not a file", path=str(path))
        if file.stat().st_size > 4 * MAX_CHARACTERS:  # UTF-8 takes at most four bytes for one
            raise PhysicsError(
                f"the file is too large: a physics text has at most {MAX_CHARACTERS:,} characters",
                path=str(path),
            )
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PhysicsError(
            f"the file is not UTF-8 text (byte {error.start})", path=str(path)
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PhysicsError(f"the file cannot be read: {reason}", path=str(path)) from error
    return parse_structure(text, str(path))


def load_structure(name: str) -> Structure:
    """Parse and lift a built-in system."""
    return parse_structure(system_text(name), f"{name}.phys")


def find_structure(name_or_path: str) -> Structure:
    """A file, if the argument ends in .phys or holds a folder; else a built-in system."""
    if name_or_path.endswith(".phys") or os.sep in name_or_path:
        return read_structure(name_or_path)
    return load_structure(name_or_path)
