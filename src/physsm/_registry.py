"""Registry of plug-ins: the name of a model, data set or metric is the name of its file."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from physsm._errors import ConfigError, did_you_mean


def names_in(package: str) -> list[str]:
    """Names of the public modules of a package of physsm, such as `models`, sorted.

    They are listed without an import of the modules.
    """
    modules = pkgutil.iter_modules(import_module(f"physsm.{package}").__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def find(package: str, name: str, attribute: str) -> Any:
    """Attribute of the module `name` of a package; an unknown name is an error with a hint."""
    known = names_in(package)
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no {package.removesuffix('s')} called {name!r}: {hint}")
    return getattr(import_module(f"physsm.{package}.{name}"), attribute)
