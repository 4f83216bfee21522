"""Checks of output paths."""

from __future__ import annotations

from pathlib import Path

from physsm._errors import RunError


def keep_inputs(out: Path, *inputs: Path | None) -> None:
    """Refuse an output that would replace an input."""
    for given in inputs:
        if given is not None and given.resolve() == out.resolve():
            raise RunError(
                f"{out} is an input of this command and would be replaced: choose another path"
            )
