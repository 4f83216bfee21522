"""Long-term forecasts of partly known dynamical systems from noisy, irregular measurements."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from physsm._version import __version__

if TYPE_CHECKING:
    import physsm.datasets as datasets
    import physsm.metrics as metrics
    import physsm.models as models
    from physsm._compile_cache import use_compile_cache as use_compile_cache
    from physsm._errors import ConfigError as ConfigError
    from physsm._errors import DataError as DataError
    from physsm._errors import PhysicsError as PhysicsError
    from physsm._errors import PhyssmError as PhyssmError
    from physsm._errors import RunError as RunError
    from physsm._values import Forecast as Forecast
    from physsm._values import Panel as Panel
    from physsm.data.arrays import panel_from_arrays as panel_from_arrays
    from physsm.data.table import read_table as read_table
    from physsm.data.table import to_panel as to_panel
    from physsm.models._base import load as load
    from physsm.models.phy_ssm.forecaster import PhySSM as PhySSM
    from physsm.physics.system import System as System

# Modules of the public names, imported at first use: JAX and SymPy take longer to import than most
# commands take to run.
_MODULES = {
    "ConfigError": "physsm._errors",
    "DataError": "physsm._errors",
    "Forecast": "physsm._values",
    "Panel": "physsm._values",
    "PhySSM": "physsm.models.phy_ssm.forecaster",
    "PhysicsError": "physsm._errors",
    "PhyssmError": "physsm._errors",
    "RunError": "physsm._errors",
    "System": "physsm.physics.system",
    "load": "physsm.models._base",
    "panel_from_arrays": "physsm.data.arrays",
    "read_table": "physsm.data.table",
    "to_panel": "physsm.data.table",
    "use_compile_cache": "physsm._compile_cache",
}

__all__ = [
    "ConfigError",
    "DataError",
    "Forecast",
    "Panel",
    "PhySSM",
    "PhysicsError",
    "PhyssmError",
    "RunError",
    "System",
    "__version__",
    "datasets",
    "load",
    "metrics",
    "models",
    "panel_from_arrays",
    "read_table",
    "to_panel",
    "use_compile_cache",
]
_PACKAGES = ("datasets", "metrics", "models")


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"physsm.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'physsm' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
