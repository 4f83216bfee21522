"""Baselines around the equations of a run: what an engineer would fit without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from physsm._errors import ConfigError, DataError
from physsm._registry import find
from physsm._values import Panel
from physsm.data.window import Part, Sizes
from physsm.models._base import AbstractFitted
from physsm.physics.system import System

PHYSICS_BASELINES = ("grey_box", "least_squares", "sindy")
# As baselines they try one candidate instead of many: each further one costs seconds.
_ONE_HISTORY = {"rows": [28], "priors": [0.1]}
_SETTINGS: Mapping[str, dict[str, Any]] = {
    "least_squares": _ONE_HISTORY,
    "sindy": {**_ONE_HISTORY, "thresholds": [0.15]},
}


class PhysicsBaselines(NamedTuple):
    """Fitted baselines by name, and a sentence for each that cannot be fitted."""

    fitted: dict[str, AbstractFitted]
    left_out: tuple[str, ...] = ()


def fit_physics_baselines(
    system: System,
    train: Panel | Part,
    validation: Panel | Part,
    *,
    seed: int,
    sizes: Sizes,
    model: AbstractFitted,
    stage: Callable[[str], None] = lambda _: None,
) -> PhysicsBaselines:
    """The baselines with physics beside a fitted model, for the same question. One that cannot be
    fitted to this table, such as one that needs every state measured, is left out.
    """
    fitted, left_out = {}, []
    for name in PHYSICS_BASELINES:
        if name == model.name or (name == "grey_box" and model.is_grey_box):
            continue
        stage(f"fitting the baseline {name}")
        kind = find("models", name, "MODEL")
        asked = {"context": sizes.context, "horizon": sizes.horizon}
        settings = {key: size for key, size in asked.items() if key in kind.Config.model_fields}
        try:
            baseline = kind.create(system, {**settings, **_SETTINGS.get(name, {})})
            fitted[name] = baseline.fit(train, validation, seed=seed)
        except (DataError, ConfigError) as error:
            reason = error.message if isinstance(error, DataError) else str(error)
            left_out.append(f"{name} is left out of the comparison: {reason}.")
    return PhysicsBaselines(fitted, tuple(left_out))
