"""A trained network: its intervals and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import numpy as np

from physsm._values import Panel
from physsm.data.window import Sizes, cut_windows
from physsm.models._base import AbstractFitted, read_config
from physsm.models._calibration import Calibration, calibrate
from physsm.models._latent.plan import Plan
from physsm.models._latent.settings import NetworkConfig
from physsm.models._latent.task import long_enough_windows
from physsm.models._stored import Interface, Stored
from physsm.physics.bounds import limits
from physsm.physics.system import System
from physsm.training.checkpoint import named_arrays, restore_arrays
from physsm.training.loop import Result

M = TypeVar("M", bound="FittedNetwork")


class FittedNetwork(AbstractFitted):
    """A trained network. `noise` is what one step ahead leaves open in each channel, scaled."""

    Config: ClassVar[type[NetworkConfig]]
    build: ClassVar[Callable[..., Any]]  # a network of (system, plan, config, seed)

    def __init__(
        self,
        system: System | None,
        network: Any,
        interface: Interface,
        calibration: Calibration,
        noise: tuple[float, ...],
        sizes: Sizes,
        training: Result | None = None,
    ):
        self.system = system
        self.network = network
        self.interface = interface
        self.calibration = calibration
        self.noise = noise
        self.sizes = sizes
        self.training = training

    @property
    def plan(self) -> Plan:
        """Scales and places."""
        return self.network.plan

    def completed(self: M, train: Panel, held_out: Panel) -> M:
        """The model after its training, with what is found out about it then."""
        return self.calibrated(held_out)

    def calibrated(self: M, held_out: Panel) -> M:
        """The same model with intervals from its errors on series that it was not trained on.

        `noise`, what one step ahead leaves open, is added to the spread of the latent draws; then
        the whole is stretched to cover the measurements.
        """
        residual = held_out.values - self._one_step(held_out).mean
        scaled = residual / np.array(self.plan.channel_scale)
        known = np.isfinite(scaled)
        number = known.sum((0, 1))
        square = np.where(known, scaled, 0.0) ** 2
        noise = np.sqrt(np.where(number > 0, square.sum((0, 1)) / np.maximum(number, 1), 1.0))
        noisy = self._with(noise=tuple(float(x) for x in noise))
        chosen = long_enough_windows(
            held_out, replace(self.sizes, stride=self.sizes.horizon), "validation"
        )
        history, query, target = cut_windows(held_out, chosen)
        prediction = noisy._predict(history, query, wants_spread=True)
        return noisy._with(calibration=calibrate(target.values, prediction.mean, prediction.spread))

    def _fields(self) -> dict[str, Any]:
        """What the model is made of, by the names of the constructor's arguments."""
        return {
            "system": self.system,
            "network": self.network,
            "interface": self.interface,
            "calibration": self.calibration,
            "noise": self.noise,
            "sizes": self.sizes,
            "training": self.training,
        }

    def _with(self: M, **changes: Any) -> M:
        return type(self)(**{**self._fields(), **changes})

    # Files.

    def describe(self) -> dict[str, Any]:
        """Settings, physics, scales."""
        return {
            "config": self.network.config.model_dump(by_alias=True),
            "physics": None if self.system is None else self.system.text,
            "plan": asdict(self.plan),
            "noise": list(self.noise),
            "sizes": asdict(self.sizes),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters of the network."""
        return named_arrays(eqx.filter(self.network, eqx.is_inexact_array))

    @classmethod
    def restore(cls: type[M], stored: Stored) -> M:
        """Build the network again and put the stored parameters in."""
        description = stored.description
        config = read_config(cls.Config, description["config"], cls.name)
        text = description["physics"]
        system = None if text is None else System.parse(text)
        plan = Plan.from_json(description["plan"])
        sizes = Sizes(**description["sizes"])
        if min(asdict(sizes).values()) < 1:
            raise ValueError("a size is not a positive number")
        fresh = cls.build(system, plan, config, 0)
        network = restore_arrays(fresh, stored.arrays, Path(stored.source) / "model.safetensors")
        return cls(
            system=system,
            network=network,
            interface=stored.interface,
            calibration=stored.calibration,
            noise=spreads(description["noise"]),
            sizes=sizes,
            **cls._restored(description),
        )

    @classmethod
    def _restored(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        """Further arguments of the constructor, from a description."""
        return {}

    # What the physics says of channels.

    def _physics_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.system is None:
            return (), ()
        return self.system.states, tuple(unknown.name for unknown in self.system.unknowns)

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = super()._limits()
        if self.system is not None:
            least, greatest = limits(self.system.state_bounds)
            for channel, state in enumerate(self.plan.grounded):
                if state >= 0:
                    lower[channel], upper[channel] = least[state], greatest[state]
        return lower, upper


def spreads(stored: Any) -> tuple[float, ...]:
    """Standard deviations from a file, checked."""
    found = tuple(float(x) for x in stored)
    if not all(0 <= spread < np.inf for spread in found):
        raise ValueError("a spread is negative or infinite")
    return found
