"""Where a command may write."""

from __future__ import annotations

from pathlib import Path

from physsm._errors import RunError


def check_output(out: Path, inputs: list[Path | None], endings: tuple[str, ...]) -> None:
    """Refuse an output that would replace an input, or has an ending of something else."""
    if out.suffix.lower() not in endings:
        raise RunError(f"{out} cannot be written: its name must end in {' or '.join(endings)}")
    for given in inputs:
        if given is not None and given.resolve() == out.resolve():
            raise RunError(f"{out} is read by this command and would be replaced: choose another")
