"""Named configurations: settings of many models for one experiment, in a TOML file each."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from physsm._arguments import merged
from physsm._errors import ConfigError, did_you_mean

_FOLDER = resources.files("physsm") / "configurations"


class Configuration(BaseModel):
    """Settings of models for data with so many channels, described by a built-in system: what they
    share, and over it what is their own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    channels: int = Field(ge=1)
    physics: str
    shared: dict[str, Any] = {}
    models: dict[str, dict[str, Any]]


def configuration_names() -> list[str]:
    """Those that come with physsm."""
    found = (Path(entry.name) for entry in _FOLDER.iterdir())
    return sorted(path.stem for path in found if path.suffix == ".toml")


def configuration(name: str, model: str) -> dict[str, Any]:
    """The settings of a model in a named configuration."""
    found = read_configuration(name)
    if model not in found.models:
        hint = did_you_mean(model, list(found.models)) or f"it has {', '.join(found.models)}"
        raise ConfigError(f"the configuration {name} has no settings for {model}: {hint}")
    return merged(found.shared, found.models[model])


@cache
def read_configuration(name: str) -> Configuration:
    """A configuration that comes with physsm."""
    if name not in (known := configuration_names()):
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no configuration called {name!r}: {hint}")
    content = tomllib.loads(_FOLDER.joinpath(f"{name}.toml").read_text("utf-8"))
    return Configuration.model_validate(content)
