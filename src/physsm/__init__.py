"""Long-term forecasts of partly known dynamical systems from noisy, irregular measurements."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from physsm._errors import PhysicsError as PhysicsError
    from physsm._errors import PhyssmError as PhyssmError
    from physsm.physics.system import System as System

__version__ = _version("physsm")

# Imported when first used: JAX and SymPy take longer to import than most commands to run.
_HOMES = {
    "PhysicsError": "physsm._errors",
    "PhyssmError": "physsm._errors",
    "System": "physsm.physics.system",
}

__all__ = ["PhysicsError", "PhyssmError", "System", "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'physsm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
