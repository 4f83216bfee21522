"""A fitted network: forecast, fill gaps, follow a stream, show the unknowns, save and restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import numpy as np

from physsm._arguments import number
from physsm._values import Forecast, Panel, Query, Unknowns
from physsm.data.times import as_numbers
from physsm.models._base import Prediction, check_coverage, inside_times
from physsm.models._calibration import uncalibrated
from physsm.models._future import make_query
from physsm.models._latent.fitted import FittedNetwork, spreads
from physsm.models._latent.future import plan_steps
from physsm.models._latent.rows import Observations
from physsm.models._latent.shapes import rounded_up
from physsm.models.phy_ssm import compute
from physsm.models.phy_ssm.certainty import std_of_constants
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.inside import values_inside
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.on_panels import OnPanels, series_first
from physsm.models.phy_ssm.stability import instabilities
from physsm.models.phy_ssm.stream import Stream, as_history, next_row
from physsm.models.phy_ssm.values import Boundary

_MOST_SERIES = 64  # behind the certainty of the constants
_SMALLEST_SPREAD = 1e-6  # scaled: an interval must not have the width zero


class FittedLatent(FittedNetwork):
    """A fitted network."""

    Config = Config
    build = Network

    def __init__(self, *fields: Any, constants_std: tuple[float, ...] = (), **more: Any):
        super().__init__(*fields, **more)
        self.constants_std = constants_std

    def completed(self, train: Panel, held_out: Panel) -> FittedLatent:
        """With intervals, and with how sure its constants are."""
        return self.calibrated(held_out).with_certainty(train)

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

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "constants_std": self.constants_std}

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
        length = rounded_up(len(steps.gaps))
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
        return {**super().describe(), "constants_std": list(self.constants_std)}

    @classmethod
    def _restored(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        return {"constants_std": spreads(description["constants_std"])}
