"""Settings of models: named configurations, one TOML file each, and files of the user."""

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
    """Settings of models for series with so many channels, described by a built-in system: shared
    ones, and for each model its own, which override them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    channels: int = Field(ge=1)
    physics: str
    shared: dict[str, Any] = {}
    models: dict[str, dict[str, Any]]


def configuration_names() -> list[str]:
    """Names of the configurations that come with physsm."""
    paths = (Path(entry.name) for entry in _FOLDER.iterdir())
    return sorted(path.stem for path in paths if path.suffix == ".toml")


def configuration(name: str, model: str) -> dict[str, Any]:
    """The settings of a model in a named configuration."""
    named = read_configuration(name)
    if model not in named.models:
        hint = did_you_mean(model, list(named.models)) or f"it has {', '.join(named.models)}"
        raise ConfigError(f"the configuration {name} has no settings for {model}: {hint}")
    return merged(named.shared, named.models[model])


@cache
def read_configuration(name: str) -> Configuration:
    """A configuration that comes with physsm."""
    if name not in (known := configuration_names()):
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no configuration called {name!r}: {hint}")
    content = tomllib.loads(_FOLDER.joinpath(f"{name}.toml").read_text("utf-8"))
    return Configuration.model_validate(content)


def read_settings(config: Path, model: str) -> dict[str, Any]:
    """The settings of a model: a TOML file, or a named configuration if there is no such file."""
    names = configuration_names()
    if str(config) in names and not config.exists():
        return configuration(str(config), model)
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"there is no file {config}, and no configuration of that name: there are "
            f"{', '.join(names)}"
        ) from error
    except OSError as error:
        raise ConfigError(f"{config} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not TOML: {error}") from error
