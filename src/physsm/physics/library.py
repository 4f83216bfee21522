"""The built-in systems: each `.phys` file in `systems/` is one, by the name of the file."""

from __future__ import annotations

from importlib.resources import files

from physsm._errors import PhysicsError, did_you_mean


def system_names() -> list[str]:
    """The names of the built-in systems, sorted."""
    folder = files("physsm.physics") / "systems"
    return sorted(
        entry.name.removesuffix(".phys")
        for entry in folder.iterdir()
        if entry.name.endswith(".phys")
    )


def system_text(name: str) -> str:
    """The physics text of a built-in system."""
    names = system_names()
    if name not in names:
        raise PhysicsError(
            f"there is no built-in system {name!r}",
            expected="one of " + ", ".join(names),
            hint=did_you_mean(name, names) or "a file of your own must end in .phys",
        )
    return (files("physsm.physics") / "systems" / f"{name}.phys").read_text(encoding="utf-8")
