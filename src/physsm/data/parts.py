"""Training and validation parts: the windows for training and model selection, chosen once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from physsm._errors import ConfigError, DataError
from physsm._values import Panel
from physsm.data.split import default_split
from physsm.data.window import (
    LEAST_CONTEXT,
    Part,
    Sizes,
    default_sizes,
    largest_sizes,
    narrowed,
    windows,
)


@dataclass(frozen=True)
class WindowSettings:
    """Sizes of windows that a model asks for. None: the protocol's size, or a share of the length
    of the median series (`default_sizes`). `validation_stride` is by default the horizon.
    """

    context: int | None = None
    horizon: int | None = None
    stride: int | None = None
    validation_stride: int | None = None

    def sizes(self, given: Panel | Part) -> Sizes:
        """The sizes on a panel, or on windows of a protocol, which they cannot exceed."""
        if not isinstance(given, Part):
            return self._or(default_sizes(given))
        largest = largest_sizes(given.windows)
        sizes = self._or(largest)
        _check_horizon(given, sizes.horizon, "training")
        return Sizes(
            context=min(sizes.context, largest.context),
            horizon=sizes.horizon,
            stride=max(sizes.stride, largest.stride),
        )

    def _or(self, usual: Sizes) -> Sizes:
        return Sizes(
            self.context or usual.context,
            self.horizon or usual.horizon,
            self.stride or usual.stride,
        )

    def validation_sizes(self, sizes: Sizes) -> Sizes:
        """Sizes of windows of the validation part."""
        return replace(sizes, stride=self.validation_stride or sizes.horizon)


class Parts(NamedTuple):
    """Windows for training and validation, of at most these sizes."""

    train: Part
    validation: Part
    sizes: Sizes


def make_parts(
    train: Panel | Part, validation: Panel | Part | None, settings: WindowSettings, seed: int
) -> Parts:
    """Parts of a table or of a protocol.

    A protocol's windows are shortened to the model's sizes on both sides of their boundaries, and
    those closer together than its stride are dropped; measurements outside them are not used.
    Without a validation part, some of the series, or the ends of a few series, are used for
    validation. Training series without room for several horizons have windows with a shorter one;
    validation windows have the horizon itself.
    """
    sizes = settings.sizes(train)
    if validation is None:
        if isinstance(train, Part):
            raise ConfigError("windows for training were given, but none for validation")
        train, validation = default_split(train, seed, sizes.context + sizes.horizon)
    if isinstance(validation, Part):
        _check_horizon(validation, sizes.horizon, "validation")
    for_validation = settings.validation_sizes(sizes)
    return Parts(_part(train, _fitting(train, sizes)), _part(validation, for_validation), sizes)


def _check_horizon(part: Part, horizon: int, name: str) -> None:
    """Fail where a part has no windows, or none with a target as long as the horizon."""
    if not part.windows.number:
        raise DataError(f"the {name} part has no windows")
    longest = largest_sizes(part.windows).horizon
    if horizon > longest:
        raise DataError(
            f"the horizon is {horizon} time steps, and targets of the {name} windows have at most "
            f"{longest}",
            hint="set a horizon that they have, or leave it to the protocol",
        )


def _fitting(train: Panel | Part, sizes: Sizes) -> Sizes:
    """Sizes with a horizon of which training series have room for several: of a longer one each
    series would give one window, too few to train on.
    """
    if isinstance(train, Part):
        return sizes
    longest = int(train.lengths.max(initial=0))
    context = max(LEAST_CONTEXT, min(sizes.context, longest // 2))
    room = max(1, (longest - context) // 2)
    if sizes.horizon <= room:
        return sizes
    return replace(sizes, context=context, horizon=room)


def _part(given: Panel | Part, sizes: Sizes) -> Part:
    if isinstance(given, Part):
        covered = given.covered()
        return Part(covered.panel, narrowed(covered.windows, sizes))
    return Part(given, windows(given, sizes.context, sizes.horizon, sizes.stride))
