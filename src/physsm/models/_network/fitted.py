"""A trained network: its intervals and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import numpy as np

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.data.window import Part, Sizes, cut_windows, narrowed
from physsm.models._base import AbstractFitted
from physsm.models._files import Interface, Stored
from physsm.models._intervals import Calibration, calibrate
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.config import NetworkConfig
from physsm.models._settings import read_config
from physsm.nn.parameter_groups import is_parameter
from physsm.physics.bounds import limits
from physsm.physics.system import System
from physsm.training.checkpoint import named_arrays, restore_arrays
from physsm.training.loop import Result

M = TypeVar("M", bound="FittedNetwork")

_SMALLEST_SPREAD = 1e-6  # scaled: an interval must not have the width zero


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of a fit: its root mean square error over the horizon on validation windows, scaled
    (None: not finite), and whether its result was kept.
    """

    name: str
    error: float | None
    kept: bool


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedNetwork(AbstractFitted):
    """A trained network.

    `noise` is the standard deviation of errors one step ahead, for each scaled channel. `training`
    is known right after the training only.
    """

    Config: ClassVar[type[NetworkConfig]]
    Scales: ClassVar[Any]  # a record with `table` and `states`, and `from_json`
    build: ClassVar[Callable[..., Any]]  # a network of (system, scales, config, seed)

    network: Any
    interface: Interface
    calibration: Calibration
    noise: tuple[float, ...]
    sizes: Sizes
    system: System | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    training: Result | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    stages: tuple[Stage, ...] = ()
    before_refit: FittedNetwork | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def is_grey_box(self) -> bool:
        """Whether the fit ended before the stage of the network."""
        return bool(self.stages) and all(stage.name != "network" for stage in self.stages)

    @property
    def scales(self) -> Any:
        """Scales of the table and of the states."""
        return self.network.scales

    @property
    def fitted_horizon(self) -> int | None:
        """The horizon of its windows."""
        return self.sizes.horizon

    @cached_property
    def compiled(self) -> CompiledNetwork:
        """The network's functions as compiled programs."""
        # A grey box is compiled for longer than it runs.
        return CompiledNetwork(self.network, quick=self.is_grey_box)

    def completed(self: M, parts: Parts) -> M:
        """The model after its training, with calibrated intervals."""
        return self.calibrated(parts.validation)

    def calibrated(self: M, validation: Part) -> M:
        """The same model with intervals from its errors on the validation part.

        `noise` is added to the spread of the latent draws; then the whole is stretched to cover
        the measurements.
        """
        held_out, scale = validation.panel, self.scales.table.channel_scale
        separate = narrowed(validation.windows, replace(self.sizes, stride=self.sizes.horizon))
        history, query, target = cut_windows(held_out, separate)
        self._compile_ahead(held_out, history)
        scaled = (held_out.values - self._one_step(held_out).mean) / scale
        known = np.isfinite(scaled)
        number = known.sum((0, 1))
        square = np.where(known, scaled, 0.0) ** 2
        noise = np.sqrt(np.where(number > 0, square.sum((0, 1)) / np.maximum(number, 1), 1.0))
        noisy = replace(self, noise=tuple(float(x) for x in noise))
        prediction = noisy._predict(history, query, wants_spread=True)
        calibration = calibrate(target.values, prediction.mean, prediction.spread)
        return replace(noisy, calibration=calibration)

    def _compile_ahead(self, series: Panel, history: Panel) -> None:
        """Compile side by side what predicts series one step ahead and reads a history; by default
        each is compiled when it is first needed.
        """

    def spread(self, drawn: Any) -> np.ndarray:
        """Standard deviation of channels in the table's units, from that of scaled latent draws."""
        total = np.sqrt(np.asarray(drawn, float) ** 2 + np.array(self.noise) ** 2)
        return self.scales.table.unscale_spread(total + _SMALLEST_SPREAD)

    # Files.

    def describe(self) -> dict[str, Any]:
        """Settings, physics, scales."""
        return {
            "config": self.network.config.model_dump(by_alias=True),
            "physics": None if self.system is None else self.system.text,
            "scales": self.scales.to_json(),
            "noise": list(self.noise),
            "sizes": asdict(self.sizes),
            "stages": [asdict(stage) for stage in self.stages],
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters of the network."""
        return named_arrays(eqx.filter(self.network, is_parameter))

    @classmethod
    def restore(cls: type[M], stored: Stored) -> M:
        """Build the network again and put the stored parameters in."""
        description = stored.description
        config = read_config(cls.Config, description["config"], cls.name)
        text = description["physics"]
        system = None if text is None else System.parse(text)
        sizes = Sizes(**description["sizes"])
        if min(asdict(sizes).values()) < 1:
            raise ValueError("a size is not a positive number")
        fresh = cls.build(system, cls.Scales.from_json(description["scales"]), config, 0)
        parameters, rest = eqx.partition(fresh, is_parameter)
        source = Path(stored.source) / "model.safetensors"
        network = eqx.combine(restore_arrays(parameters, stored.arrays, source), rest)
        return cls(
            system=system,
            network=network,
            interface=stored.interface,
            calibration=stored.calibration,
            noise=standard_deviations(description["noise"]),
            sizes=sizes,
            stages=tuple(Stage(**stage) for stage in description.get("stages", [])),
            **cls._own_fields(description),
        )

    @classmethod
    def _own_fields(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a subclass, from a description."""
        return {}

    # Names and bounds from the physics.

    def _physics_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.system is None:
            return (), ()
        return self.system.states, tuple(unknown.name for unknown in self.system.unknowns)

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = super()._limits()
        if self.system is not None:
            least, greatest = limits(self.system.state_bounds)
            for channel, state in enumerate(self.scales.states.measured):
                if state >= 0:
                    lower[channel], upper[channel] = least[state], greatest[state]
        return lower, upper


def standard_deviations(stored: Any) -> tuple[float, ...]:
    """Standard deviations from a file, checked."""
    values = tuple(float(x) for x in stored)
    if not all(0 <= value < np.inf for value in values):
        raise ValueError("a standard deviation is negative or infinite")
    return values
