"""Settings of a model, checked against its Pydantic class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from physsm._errors import ConfigError, did_you_mean

# Settings that had another name before: an error says what to write instead.
RENAMED_SETTINGS = {
    "assimilate": 'inference = "kalman" or "encoder"',
    "direct": "linear_bypass",
    "direct_speed": "bypass_speed",
    "surprise": "likelihood",
}


def read_config(kind: type[BaseModel], settings: Mapping[str, Any], model: str) -> Any:
    """Checked settings; an error names the setting, its value, and a similar name."""
    try:
        return kind.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            name, known = place.split(".")[-1], _setting_names(kind, first["loc"][:-1])
            hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
            hint = f"it is now {RENAMED_SETTINGS[name]}" if name in RENAMED_SETTINGS else hint
            raise ConfigError(f"{model} has no setting {place}: {hint}") from None
        subject = f"the setting {place} of {model} is" if place else f"the settings of {model} are"
        raise ConfigError(f"{subject} {first['input']!r}: {first['msg']}") from None


def _setting_names(kind: type[BaseModel], inside: Sequence[int | str]) -> list[str]:
    """Names of all settings, or of those inside one of them."""
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    if not inside:
        return list(fields)
    inner = fields[str(inside[0])].annotation
    return _setting_names(inner, inside[1:]) if isinstance(inner, type) else list(fields)
