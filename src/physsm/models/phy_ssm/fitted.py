"""A fitted network: forecast, fill gaps, follow a stream, show the unknowns, save and restore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from physsm._arguments import number
from physsm._values import Forecast, Panel, Query, Unknowns
from physsm.data.times import as_numbers
from physsm.data.window import (
    Sizes,
    cut_windows,
)
from physsm.models._base import (
    AbstractFitted,
    Prediction,
    check_coverage,
    inside_times,
    read_config,
)
from physsm.models._calibration import Calibration, calibrate, uncalibrated
from physsm.models._future import make_query
from physsm.models._stored import Interface, Stored
from physsm.models.phy_ssm import compute
from physsm.models.phy_ssm.certainty import std_of_constants
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.future import plan_steps
from physsm.models.phy_ssm.inside import values_inside
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.on_panels import OnPanels, series_first
from physsm.models.phy_ssm.plan import Plan
from physsm.models.phy_ssm.stability import instabilities
from physsm.models.phy_ssm.stream import Stream, as_history, next_row
from physsm.models.phy_ssm.task import long_enough_windows
from physsm.models.phy_ssm.values import Boundary, Observations
from physsm.physics.bounds import limits
from physsm.physics.system import System
from physsm.training.checkpoint import named_arrays, restore_arrays
from physsm.training.loop import Result

_MOST_SERIES = 64  # behind the certainty of the constants
_SMALLEST_SPREAD = 1e-6  # scaled: an interval must not have the width zero


class FittedLatent(AbstractFitted):
    """A fitted network."""

    def __init__(
        self,
        system: System | None,
        network: Network,
        interface: Interface,
        calibration: Calibration,
        noise: tuple[float, ...],
        sizes: Sizes,
        training: Result | None = None,
        constants_std: tuple[float, ...] = (),
    ):
        self.system = system
        self.network = network
        self.interface = interface
        self.calibration = calibration
        self.noise = noise
        self.sizes = sizes
        self.training = training
        self.constants_std = constants_std

    @property
    def plan(self) -> Plan:
        """Scales and places."""
        return self.network.plan

    def calibrated(self, held_out: Panel) -> FittedLatent:
        """The same model with intervals from its errors on series that it was not trained on.

        `noise`, what one step ahead leaves open, is added to the spread of the latent draws; then
        the whole is stretched to cover the measurements.
        """
        residual = held_out.values - self._one_step(held_out).mean
        scaled = residual / np.array(self.plan.channel_scale)
        with np.errstate(invalid="ignore"):
            square = np.nanmean(scaled**2, axis=(0, 1)) if np.isfinite(scaled).any() else 1.0
        noise = np.sqrt(np.nan_to_num(np.broadcast_to(square, (scaled.shape[-1],)), nan=1.0))
        noisy = self._with(noise=tuple(float(x) for x in noise))
        chosen = long_enough_windows(
            held_out, replace(self.sizes, stride=self.sizes.horizon), "validation"
        )
        history, query, target = cut_windows(held_out, chosen)
        prediction = noisy._predict(history, query, wants_spread=True)
        return noisy._with(calibration=calibrate(target.values, prediction.mean, prediction.spread))

    def with_certainty(self, train: Panel) -> FittedLatent:
        """The same model with the standard deviations of its constants, from the training data.

        Of many series some are used, and count for all.
        """
        if self.system is None:
            return self
        used = np.linspace(0, len(train) - 1, min(len(train), _MOST_SERIES)).astype(int)
        std = std_of_constants(self.network, self._on_panels.batch(train.select(used)))
        share = train.lengths[used].sum() / train.lengths.sum()
        return self._with(constants_std=tuple(float(x) for x in std * np.sqrt(share)))

    def _with(self, **changes: Any) -> FittedLatent:
        fields = {
            "system": self.system,
            "network": self.network,
            "interface": self.interface,
            "calibration": self.calibration,
            "noise": self.noise,
            "sizes": self.sizes,
            "training": self.training,
            "constants_std": self.constants_std,
        }
        return type(self)(**{**fields, **changes})

    # The interface of all forecasters.

    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        boundary = self._on_panels.over(compute.boundary_after, history)
        return self._continue(boundary, history, query, wants_spread)

    def _continue(
        self, boundary: Boundary, history: Panel, query: Query, wants_spread: bool
    ) -> Prediction:
        model = self._on_panels
        longest = max(self.plan.largest_gap, 1.0) * self.plan.time_scale
        holds_start = self.network.config.control_hold == "start"
        steps = plan_steps(history, query, longest, holds_start)
        length = compute.rounded_up(len(steps.gaps))
        gaps = model.array(compute.padded_steps(steps.gaps / self.plan.time_scale, length))
        controls = model.array(compute.padded_steps(steps.controls, length))
        future, channels = model.run(compute.roll_out, boundary, controls, gaps)
        series = np.arange(len(history))[:, None]
        mean = model.in_units(np.asarray(channels)[steps.rows, series])
        spread = np.zeros_like(mean)
        if wants_spread:
            draws = model.run(
                compute.spread_of_rollout,
                boundary,
                controls,
                gaps,
                samples=self.network.config.samples,
            )
            latent = np.asarray(draws)[steps.rows, series]
            total = np.sqrt(latent**2 + np.array(self.noise) ** 2) + _SMALLEST_SPREAD
            spread = total * np.array(self.plan.channel_scale)
        reached = np.asarray(future.z_ext)[steps.rows, series]
        theta = None
        if self.system is not None:
            theta = np.asarray(future.theta)[steps.rows, series]
        warnings = instabilities(self.system, self.plan, history, query, reached)
        return Prediction(mean, spread, model.states(reached), theta, warnings)

    def _one_step(self, history: Panel) -> Prediction:
        predicted = self._on_panels.over(compute.next_rows, history)
        mean = series_first(self._on_panels.in_units(predicted), history, first=1)
        spread = np.broadcast_to(
            np.array(self.noise) * np.array(self.plan.channel_scale), mean.shape
        )
        return Prediction(mean, np.array(spread))

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history, given all of its measurements: at its rows and between them
        by a smoother, which goes back over what the filter has found. Intervals are for what a
        measurement there would show.

        Without a filter (preset `paper`): at rows the inferred states, between two rows a mean of
        the step forwards from the one and backwards from the other, weighted by nearness.
        """
        check_coverage(coverage)
        panel = self.check(history)
        wanted = inside_times(panel, times)
        prediction = values_inside(self._on_panels, panel, wanted, self.noise)
        lengths = panel.lengths if times is None else np.full(len(panel), wanted.shape[1])
        gaussian = uncalibrated(len(panel.channels))  # the calibration is that of forecasts
        return self._as_forecast(panel, wanted, lengths, prediction, coverage, gaussian)

    def unknowns(self, history: Any) -> Unknowns:
        """The learned terms at each row of the history, in physical units.

        `std` is how sure they are: of a `constant` unknown given the training data and the rest of
        the model, of one `per series` by the filter, of a varying one over draws of the states.
        """
        if self.system is None:
            return super().unknowns(history)
        panel = self.check(history)
        observed = self._on_panels.over(compute.observe, panel)
        std = observed.theta_std
        if self.network.filter is None:
            std = self._on_panels.over(compute.spread_of_unknowns, panel)
        return Unknowns(
            names=tuple(unknown.name for unknown in self.system.unknowns),
            ids=panel.ids,
            times=panel.times,
            lengths=panel.lengths,
            mean=series_first(observed.theta, panel),
            std=np.hypot(series_first(std, panel), np.array(self.constants_std)),
        )

    # Streams.

    def start(self) -> Stream:
        """A stream before its first measurement."""
        channels, controls = len(self.plan.channels), len(self.plan.controls)
        return Stream(self.network.start(), None, np.zeros(channels), np.zeros(controls))

    def update(self, stream: Stream, t: Any, x: Any, u: Any = ()) -> Stream:
        """The stream after one more row: its time, channels (NaN: not measured) and controls.

        The time is a number or, where the table of the fit had dates, a datetime; numbers then
        count from that table's earliest time. Takes as long however long the stream is.
        """
        if not isinstance(t, float | int):
            t = number(as_numbers(t, self.interface.layout), "time")
        row = next_row(self.plan, stream, t, x, u)
        boundary = self._update(stream.boundary, row.observations(self.network.dtype))
        return Stream(boundary, float(t), row.last, row.control)

    def forecast_stream(
        self, stream: Stream, *, times: Any, controls: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """The future of a stream, as `forecast` gives it for a history."""
        check_coverage(coverage)
        history = as_history(stream, self.interface)
        query = make_query(history, times, None, controls)
        boundary = jax.tree.map(lambda leaf: leaf[None], stream.boundary)
        prediction = self._continue(boundary, history, query, coverage is not None)
        return self._as_forecast(history, query.times, query.lengths, prediction, coverage)

    @cached_property
    def _on_panels(self) -> OnPanels:
        return OnPanels(self.network)

    @cached_property
    def _update(self) -> Callable[[Boundary, Observations], Boundary]:
        return compute.compiled_update(self.network)

    # Files.

    def describe(self) -> dict[str, Any]:
        """Settings, physics, scales."""
        return {
            "config": self.network.config.model_dump(by_alias=True),
            "physics": None if self.system is None else self.system.text,
            "plan": asdict(self.plan),
            "noise": list(self.noise),
            "sizes": asdict(self.sizes),
            "constants_std": list(self.constants_std),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters of the network."""
        return named_arrays(eqx.filter(self.network, eqx.is_inexact_array))

    @classmethod
    def restore(cls, stored: Stored) -> FittedLatent:
        """Build the network again and put the stored parameters in."""
        description = stored.description
        config = read_config(Config, description["config"], cls.name)
        text = description["physics"]
        system = None if text is None else System.parse(text)
        plan = Plan.from_json(description["plan"])
        noise = tuple(float(x) for x in description["noise"])
        constants_std = tuple(float(x) for x in description["constants_std"])
        if not all(0 <= spread < np.inf for spread in (*noise, *constants_std)):
            raise ValueError("a spread is negative or infinite")
        sizes = Sizes(**description["sizes"])
        if min(asdict(sizes).values()) < 1:
            raise ValueError("a size is not a positive number")
        fresh = Network(system, plan, config, seed=0)
        network = restore_arrays(fresh, stored.arrays, Path(stored.source) / "model.safetensors")
        return cls(
            system,
            network,
            stored.interface,
            stored.calibration,
            noise,
            sizes,
            constants_std=constants_std,
        )

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
