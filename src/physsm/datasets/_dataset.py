"""What every data set says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """A data set: the built-in system that describes it, and ways to make its panels by name.

    A protocol is called with settings as keywords, all of which have defaults.
    """

    name: str
    system: str
    protocols: Mapping[str, Callable[..., Any]]
