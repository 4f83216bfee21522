"""A fitted network: forecast, interpolate, follow a stream, show the unknowns, save and restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from physsm._arguments import number
from physsm._values import Forecast, Panel, Query, Unknowns
from physsm.data.parts import Parts
from physsm.data.query import make_query
from physsm.data.times import as_numbers
from physsm.models._base import Prediction, check_coverage
from physsm.models._interpolation import inside_times
from physsm.models._intervals import uncalibrated
from physsm.models._network.compiled import Call, filled, rounded_up
from physsm.models._network.fitted import FittedNetwork, standard_deviations
from physsm.models._network.observations import Observations, series_first
from physsm.models._steps import future_steps
from physsm.models.phy_ssm import forecast
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.divergence import divergences
from physsm.models.phy_ssm.interpolate import interpolate
from physsm.models.phy_ssm.standard_errors import standard_errors
from physsm.models.phy_ssm.stream import Stream, as_history, compiled_update, next_row
from physsm.models.phy_ssm.values import Boundary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedStateSpace(FittedNetwork):
    """A fitted Phy-SSM or S5 network. `constants_std` are standard errors of constant unknowns; in
    a grey box varying ones are constant too.
    """

    Config = Config
    Scales = PhySSMScales
    build = staticmethod(build_network)

    constants_std: tuple[float, ...] = ()

    def completed(self, parts: Parts) -> FittedStateSpace:
        """With intervals, and with standard errors of its constants."""
        fitted = self.calibrated(parts.validation)
        if fitted.system is None or fitted.constants_std:
            return fitted
        return replace(fitted, constants_std=standard_errors(fitted.compiled, parts.train.panel))

    def _compile_ahead(self, series: Panel, history: Panel) -> None:
        self.compiled.prepare(
            forecast.call_over_series(self.compiled, forecast.one_step, series),
            forecast.call_over_series(self.compiled, forecast.boundary_after, history),
        )

    # The interface of all forecasters.

    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        boundary = forecast.over_series(self.compiled, forecast.boundary_after, history)
        return self._continue(boundary, history, query, wants_spread)

    def _continue(
        self, boundary: Boundary, history: Panel, query: Query, wants_spread: bool
    ) -> Prediction:
        compiled, scales, config = self.compiled, self.scales, self.network.config
        table = scales.table
        future = future_steps(
            history, query, table.longest_step, self.network.holds_previous, rounded_up
        )
        series = len(jax.tree.leaves(boundary)[0])  # more than in the history: see `over_series`
        controls = compiled.array(filled(future.controls, series, 1))
        gaps = compiled.array(filled(future.gaps / table.time_scale, series, 1))
        at = (future.steps, np.arange(len(history))[:, None])
        inputs, drawing = (boundary, controls, gaps), {"samples": config.samples}
        if wants_spread:
            compiled.prepare(
                Call(forecast.roll_out, inputs, {}),
                Call(forecast.spread_of_rollout, inputs, drawing),
            )
        rollout, channels = compiled(forecast.roll_out, *inputs)
        mean = table.unscale(np.asarray(channels)[at])
        spread = np.zeros_like(mean)
        if wants_spread:
            drawn = compiled(forecast.spread_of_rollout, *inputs, **drawing)
            spread = self.spread(np.asarray(drawn)[at])
        z_ext = np.asarray(rollout.z_ext)[at]
        theta = None if self.system is None else np.asarray(rollout.theta)[at]
        warnings = divergences(self.system, scales.states, history, query, z_ext)
        return Prediction(
            mean=mean,
            spread=spread,
            states=scales.states.unscale(z_ext),
            unknowns=theta,
            warnings=warnings,
        )

    def _one_step(self, history: Panel) -> Prediction:
        table = self.scales.table
        predicted, _ = forecast.over_series(self.compiled, forecast.one_step, history)
        mean = series_first(table.unscale(predicted), history, first=1)
        spread = np.broadcast_to(table.unscale_spread(np.array(self.noise)), mean.shape)
        return Prediction(mean, np.array(spread))

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history, given all of its measurements: at its times and between them
        by a smoother, which goes back over the steps of the filter. Intervals are those of a
        measurement there.

        Without a filter (preset `paper`): at its times the inferred states, between two times a
        mean of the step forwards from the one and backwards from the other, weighted by nearness.
        """
        check_coverage(coverage)
        panel = self.check(history)
        wanted = inside_times(panel, times)
        prediction = interpolate(
            self.network.inference, self.compiled, panel, wanted, np.array(self.noise)
        )
        lengths = panel.lengths if times is None else np.full(len(panel), wanted.shape[1])
        gaussian = uncalibrated(len(panel.channels))  # the calibration is that of forecasts
        return self._as_forecast(panel, wanted, lengths, prediction, coverage, gaussian)

    def unknowns(self, history: Any) -> Unknowns:
        """The learned unknowns at each time of the history, in physical units.

        `std` is the standard error of a `constant` unknown, given the training data and the rest of
        the model; of one `per series` it comes from the filter, of a varying one from draws of the
        states, or that of a constant in a grey box. NaN where none is known: of an unknown that
        could vary and whose network was dropped.
        """
        if self.system is None:
            return super().unknowns(history)
        panel = self.check(history)
        mean, std = forecast.over_series(self.compiled, forecast.unknowns_with_std, panel)
        std = np.hypot(series_first(std, panel), np.array(self.constants_std))
        return Unknowns(
            names=tuple(unknown.name for unknown in self.system.unknowns),
            ids=panel.ids,
            times=panel.times,
            lengths=panel.lengths,
            mean=series_first(mean, panel),
            std=np.where(std > 0, std, np.nan),
        )

    # Streams.

    def start(self) -> Stream:
        """A stream before its first measurement."""
        table = self.scales.table
        return Stream(
            boundary=self.network.start(),
            time=None,
            last=np.zeros(len(table.channels)),
            control=np.zeros(len(table.controls)),
        )

    def update(self, stream: Stream, t: Any, x: Any, u: Any = ()) -> Stream:
        """The stream after one more measurement: time, channels (NaN: not measured) and controls.

        The time is a number or, where the table of the fit had dates, a datetime; numbers then
        count from that table's earliest time. The cost does not depend on the stream's length.
        """
        if not isinstance(t, float | int):
            t = number(as_numbers(t, self.interface.layout), "time")
        row = next_row(self.scales.table, stream, t, x, u)
        boundary = self._update(stream.boundary, row.observations(self.network.dtype))
        return Stream(boundary=boundary, time=float(t), last=row.last, control=row.control)

    def forecast_stream(
        self, stream: Stream, *, times: Any, controls: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """The future of a stream, as `forecast` gives it for a history."""
        check_coverage(coverage)
        history = as_history(stream, self.interface)
        query = make_query(history, times, None, controls)
        boundary = jax.tree.map(lambda leaf: leaf[None], stream.boundary)
        prediction = self._continue(boundary, history, query, coverage is not None)
        return self._as_future(history, query, prediction, coverage)

    @cached_property
    def _update(self) -> Callable[[Boundary, Observations], Boundary]:
        return compiled_update(self.network)

    # Files.

    def describe(self) -> dict[str, Any]:
        """Settings, physics, scales, standard errors."""
        return {**super().describe(), "constants_std": list(self.constants_std)}

    @classmethod
    def _own_fields(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        return {"constants_std": standard_deviations(description["constants_std"])}
