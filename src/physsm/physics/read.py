"""Readers of a structure: from a text, a `.phys` file, or the name of a built-in system.

Each `.phys` file in `systems/` is a built-in system; its name is the name of the file.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from physsm._errors import PhysicsError, did_you_mean
from physsm.physics.lift import lift
from physsm.physics.parse import parse
from physsm.physics.source import MAX_CHARACTERS, Source
from physsm.physics.structure import Structure


def parse_structure(text: str, path: str | None = None) -> Structure:
    """Structure of a physics text; `path` appears in messages only."""
    if not isinstance(text, str):
        raise TypeError(f"a physics text is a string, not {type(text).__name__}")
    return lift(parse(Source(text.removeprefix("\ufeff"), path)))


def read_structure(path: str | os.PathLike[str]) -> Structure:
    """Structure of a `.phys` file."""
    file = Path(path)
    try:
        if not file.exists():
            raise PhysicsError("there is no such file", path=str(path))
        if not file.is_file():
            raise PhysicsError("this is not a file", path=str(path))
        if file.stat().st_size > 4 * MAX_CHARACTERS:  # at most four bytes per character
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
    """Structure of a built-in system."""
    return parse_structure(system_text(name), f"{name}.phys")


def find_structure(name_or_path: str) -> Structure:
    """Structure of a file, if the argument ends in .phys or has a folder; else of a built-in."""
    if name_or_path.endswith(".phys") or os.sep in name_or_path:
        return read_structure(name_or_path)
    return load_structure(name_or_path)


def system_names() -> list[str]:
    """Names of the built-in systems, sorted."""
    folder = files("physsm.physics") / "systems"
    return sorted(
        entry.name.removesuffix(".phys")
        for entry in folder.iterdir()
        if entry.name.endswith(".phys")
    )


def system_text(name: str) -> str:
    """Physics text of a built-in system."""
    names = system_names()
    if name not in names:
        raise PhysicsError(
            f"there is no built-in system {name!r}",
            expected="one of " + ", ".join(names),
            hint=did_you_mean(name, names) or "a file of your own must end in .phys",
        )
    return (files("physsm.physics") / "systems" / f"{name}.phys").read_text(encoding="utf-8")
