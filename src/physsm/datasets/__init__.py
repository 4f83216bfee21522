"""Data sets by name, as in `physsm.datasets.covid.DATASET.split("strict")`: one in each file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from physsm._registry import names_in


def __getattr__(name: str) -> Any:
    # Imported when first used: their readers need libraries that most commands do not.
    if not name.startswith("_") and name in names_in("datasets"):
        return import_module(f"physsm.datasets.{name}")
    raise AttributeError(f"module 'physsm.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return names_in("datasets")
