"""The question of a run: how many time steps it is to forecast, and from how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from physsm._values import Panel
from physsm.data.window import LEAST_CONTEXT, Part, default_size_words

_SIZES = ("context", "horizon")


@dataclass(frozen=True, kw_only=True)
class Question:
    """Context and horizon of the evaluation windows in time steps.

    `chosen` says in words how each size that was not given was chosen.
    """

    context: int
    horizon: int
    chosen: Mapping[str, str]

    @property
    def is_given(self) -> bool:
        """Whether both sizes were given."""
        return not self.chosen

    def sentence(self) -> str:
        """The question, and who decided it."""
        if self.is_given:
            return f"Asked: the next {self.horizon} time steps from a context of {self.context}."
        horizon, context = (self.chosen.get(name, "given") for name in ("horizon", "context"))
        if horizon == context:
            sizes = f"the next {self.horizon} time steps from a context of {self.context}"
            return f"Asked: {sizes} ({horizon})."
        return (
            f"Asked: the next {self.horizon} time steps ({horizon}) from a context of "
            f"{self.context} ({context})."
        )

    def content(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "context": self.context,
            "horizon": self.horizon,
            "given": self.is_given,
            "sentence": self.sentence(),
        }


def given_sizes(
    settings: Mapping[str, Any], context: int | None, horizon: int | None
) -> dict[str, int]:
    """Sizes that were asked for, or that the settings have. A context of less than two time steps
    counts as two, because one step has no gap.
    """
    asked = {
        "context": None if context is None else max(context, LEAST_CONTEXT),
        "horizon": horizon,
    }
    sizes = {name: asked[name] or settings.get(name) for name in _SIZES}
    return {name: size for name, size in sizes.items() if size is not None}


def size_reasons(given: Panel | Part, known: Mapping[str, int]) -> dict[str, str]:
    """How the sizes that are not known are chosen, in words."""
    if isinstance(given, Part):
        return dict.fromkeys(_SIZES, "the protocol's")
    words = default_size_words(given)
    return {name: f"chosen: {words[name]}" for name in _SIZES if name not in known}
