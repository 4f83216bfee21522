"""Physics with constant unknowns, fitted to the last time steps of each history by least squares.

For every forecast, the unknowns of the equations are constants. They and an initial state some
time steps back are fitted to the measurements since then, and the solution is continued:

    minimise  sum over times, channels of ((z(t) - x)/scale)^2 + prior * sum of y^2

where y are the deviations of the unknowns from those of the whole training part, each relative to
its size there (of an unknown with a bound about the logarithm of the ratio). A control is constant
from its time step until the next.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar, final

import jax
import numpy as np
from jaxtyping import Bool, Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._values import Panel, Unknowns
from physsm.models._base import AbstractFitted
from physsm.models._baseline.forecaster import (
    AbstractBaseline,
    PhysicsBaseline,
    common_fields,
    squared_errors,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.origins import Origins, origins_at, rolling_origins
from physsm.models._baseline.state_columns import (
    Columns,
    TrainingStatistics,
    find_columns,
    last_steps,
    states_at,
    training_statistics,
)
from physsm.models._baseline.trajectory_fit import (
    BLOCK,
    FitScales,
    Measurements,
    StateRange,
    TrajectoryFit,
    fit_block,
    fit_together,
    initial_unknowns,
    solve_block,
    typical_changes,
    unconstrained,
)
from physsm.models._files import Stored
from physsm.models._steps import Steps, cut_gaps
from physsm.physics.bounds import limits
from physsm.physics.system import System

_CHOICE_ORIGINS = 100  # forecasts by which the settings are chosen
_MOST_STEPS = 20_000
_TOGETHER = 12  # parts of the training series that are fitted with one set of unknowns
_RIDGE = 1e-6  # for unknowns that the training part cannot distinguish
_MARGIN = 10.0  # of the range of states during a fit, in widths of the training range


class Config(BaseModel):
    """- `rows`: candidates for the number of last time steps that the solution is fitted to. The
      pair of rows and prior with the least squared error of forecasts in validation is chosen.
    - `priors`: candidates for the weight of the unknowns of the training part. With 0 each history
      is fitted by itself; then a few that do not determine their unknowns diverge.
    - `substeps`: steps of the solver in a median gap.
    - `horizon`: time steps of the forecasts in validation and for the intervals. By default a
      quarter of the median series, at most 100; with fewer than five series a tenth, at most 300.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: tuple[Annotated[int, Field(ge=2)], ...] = Field((7, 14, 28), min_length=1)
    priors: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = Field(
        (0.0, 1e-2, 1e-1, 1.0, 10.0), min_length=1
    )
    substeps: int = Field(2, ge=1)
    horizon: int | None = Field(None, ge=1)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FittedLeastSquares(AbstractBaseline):
    """Least squares over the last `rows` time steps of a history, or over all if it has fewer.

    `width` is the number of time steps in the compiled program: candidates that differ in `rows`
    share one. Forecasts are clipped to the range of the training part, extended to the last value
    of the history where that lies outside, and widened by its own width on both sides. `clipped` of
    `validated` forecasts in validation left that range.
    """

    name: ClassVar[str] = "least_squares"
    system: System  # pyright: ignore[reportIncompatibleVariableOverride]
    columns: Columns
    rows: int
    width: int
    prior: float
    substeps: int
    statistics: TrainingStatistics
    clipped: int
    validated: int

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return self._continue(panel, origins)[0]

    def _continue(
        self, panel: Panel, origins: Origins
    ) -> tuple[Float[np.ndarray, "origins steps channels"], Bool[np.ndarray, " origins"]]:
        """Forecasts, and which of them were clipped."""
        fit = self._fit(panel, origins)
        now = panel.times[origins.series, origins.step][:, None]
        u = panel.controls[origins.series, origins.step][:, None]
        u = np.concatenate([u, origins.controls], 1)[..., list(self.columns.control)]
        times = np.concatenate([now, origins.times], 1)
        steps = _steps(times, self.interface.median_gap / self.substeps)
        controls, within = steps.zero_order_hold(u), self._range(panel, origins)
        nodes = np.empty((len(now), steps.lengths.shape[1] + 1, len(self.system.states)))
        clipped = np.zeros(nodes.shape[:2], bool)
        start = np.clip(fit.end, within.low, within.high)
        with jax.enable_x64(True):
            for part in _blocks(len(now)):
                solved = solve_block(
                    self.system,
                    fit.theta[part],
                    start[part],
                    steps.lengths[part],
                    controls[part],
                    _select(within, part),
                )
                nodes[part], clipped[part] = map(np.asarray, solved)
        states = np.take_along_axis(nodes, steps.reached[:, 1:, None], axis=1)
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        for i, channel in enumerate(self.columns.channel):
            if channel >= 0:
                mean[..., channel] = states[..., i]
        return mean, np.take_along_axis(clipped, steps.reached[:, -1:], axis=1)[:, 0]

    def _fit(self, panel: Panel, origins: Origins) -> TrajectoryFit:
        """Unknowns and end states of all origins."""
        measured = _measured(panel, origins, self)
        n, k = len(self.system.states), len(self.system.unknowns)
        number = len(origins.step)
        fit = TrajectoryFit(np.empty((number, k)), np.empty((number, k)), np.empty((number, n)))
        scales, within = _fit_scales(self.statistics, self.prior), _fit_range(self.statistics)
        with jax.enable_x64(True):
            for part in _blocks(number):
                block = fit_block(self.system, _select(measured, part), scales, within)
                for whole, piece in zip(fit, block, strict=True):
                    whole[part] = np.asarray(piece)
        return fit

    def _range(self, panel: Panel, origins: Origins) -> StateRange:
        """The range that states of each forecast are clipped to."""
        statistics = self.statistics
        times = panel.times[origins.series[:, None], last_steps(origins, 3)]
        now = states_at(panel, origins, times, self.columns, statistics.mean)[:, -1]
        margin = statistics.high - statistics.low
        least, most = limits(self.system.state_bounds)
        low = np.maximum(np.minimum(statistics.low, now) - margin, least)
        return StateRange(low, np.minimum(np.maximum(statistics.high, now) + margin, most))

    def unknowns(self, history: Any) -> Unknowns:
        """The fitted constants at each time step, from the last steps up to it.

        They are NaN at the first steps, which have fewer steps before them than the fit uses,
        unless the whole series has fewer. `std` are standard errors from the residuals and the
        Jacobian of the solution; NaN where there are no more measurements than variables.
        """
        panel = self.check(history)
        valid = np.arange(panel.times.shape[1]) < panel.lengths[:, None]
        series, step = np.nonzero(valid)
        fit = self._fit(panel, origins_at(panel, series, step, 0))
        mean, std = np.full((2, *valid.shape, len(self.system.unknowns)), np.nan)
        mean[valid], std[valid] = fit.theta, fit.std
        enough = np.minimum(self.rows, panel.lengths)[:, None] - 1
        is_early = np.arange(panel.times.shape[1]) < enough
        mean[is_early], std[is_early] = np.nan, np.nan
        names = tuple(unknown.name for unknown in self.system.unknowns)
        return Unknowns(
            names=names,
            ids=panel.ids,
            times=panel.times,
            lengths=panel.lengths,
            mean=mean,
            std=std,
        )

    def describe(self) -> dict[str, Any]:
        """The physics, the chosen settings, and how many validation forecasts were clipped."""
        return {
            "physics": self.system.text,
            "rows": self.rows,
            "prior": self.prior,
            "substeps": self.substeps,
            "held": self.clipped,
            "tried": self.validated,
        }

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {f"state_{name}": array for name, array in self.statistics._asdict().items()}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        description = stored.description
        system = System.parse(description["physics"])
        lists = {"rows": [description["rows"]], "priors": [description["prior"]]}
        config = Config.model_validate({**lists, "substeps": description["substeps"]})
        shapes = [(len(system.states),)] * 4 + [(len(system.unknowns),)] * 3
        arrays = {
            name: stored.array(f"state_{name}", shape)
            for name, shape in zip(TrainingStatistics._fields, shapes, strict=True)
        }
        return {
            "system": system,
            "columns": find_columns(system, stored.interface.channels, stored.interface.controls),
            "rows": config.rows[0],
            "width": config.rows[0],
            "prior": config.priors[0],
            "substeps": config.substeps,
            "statistics": TrainingStatistics(**arrays),
            "clipped": int(description["held"]),
            "validated": int(description["tried"]),
        }


def _steps(times: np.ndarray, longest: float, least: int = 1) -> Steps:
    """Steps of the solver, padded to a power of two of at least `least`, so that few programs are
    compiled. A time that needs more than `_MOST_STEPS` is far ahead by mistake.
    """
    return cut_gaps(
        times, longest, _MOST_STEPS, lambda steps: 1 << (max(steps, least) - 1).bit_length()
    )


def _blocks(number: int) -> list[np.ndarray]:
    """Indices in blocks of one size; the last block repeats the last index."""
    starts = range(0, number, BLOCK)
    return [np.minimum(np.arange(first, first + BLOCK), number - 1) for first in starts]


Record = TypeVar("Record", Measurements, StateRange)


def _select(record: Record, chosen: np.ndarray) -> Record:
    """The arrays of the chosen origins."""
    return jax.tree.map(lambda array: array[chosen], record)


def _fit_scales(statistics: TrainingStatistics, prior: float) -> FitScales:
    return FitScales(
        scale=statistics.scale,
        size=statistics.size,
        raw=statistics.raw,
        change=statistics.change,
        prior=np.array(prior),
    )


def _fit_range(statistics: TrainingStatistics) -> StateRange:
    """The range of states during a fit: wide, but a solution must not lose all digits."""
    margin = _MARGIN * np.maximum(statistics.high - statistics.low, statistics.scale)
    return StateRange(statistics.low - margin, statistics.high + margin)


def _measured(panel: Panel, origins: Origins, fitted: FittedLeastSquares) -> Measurements:
    """Measurements at the last time steps of each history, with solver steps between them."""
    columns, width = fitted.columns, fitted.width
    back = np.arange(width)[::-1]
    used = back <= np.minimum(origins.step, fitted.rows - 1)[:, None]
    step = np.maximum(origins.step[:, None] - np.minimum(back, fitted.rows - 1), 0)
    series = origins.series[:, None]
    times = panel.times[series, step]
    states = np.full((*step.shape, len(columns.channel)), np.nan)
    for i, channel in enumerate(columns.channel):
        if channel >= 0:
            states[..., i] = panel.values[series, step, channel]
    seen = ~np.isnan(states) & used[..., None]
    controls = panel.controls[series, step][..., list(columns.control)]
    longest = fitted.interface.median_gap / fitted.substeps
    steps = _steps(times, longest, 2 * (width - 1) * fitted.substeps)
    return Measurements(
        states=np.where(seen, states, 0),
        seen=seen.astype(float),
        length=steps.lengths,
        control=steps.zero_order_hold(controls),
        at=steps.reached,
        guess=states_at(panel, origins, times, columns, fitted.statistics.mean)[:, 0],
    )


def _with_unknowns(
    fitted: FittedLeastSquares, train: Panel, states: np.ndarray
) -> FittedLeastSquares:
    """The model with the unknowns that fit the whole training part best."""
    system, statistics = fitted.system, fitted.statistics
    theta, size = initial_unknowns(system, train, fitted.columns, statistics, states)
    raw = unconstrained(system, theta, size)
    statistics = statistics._replace(raw=raw, change=typical_changes(system, raw), size=size)
    origins, _ = rolling_origins(train, 1, _TOGETHER)
    number = len(origins.step)
    if not number:
        return replace(fitted, statistics=statistics)
    measured = _measured(train, origins, fitted)
    measured = _select(measured, np.minimum(np.arange(_TOGETHER), number - 1))
    # A part that only fills the block has no weight.
    weight = (np.arange(_TOGETHER) < number).astype(float)[:, None, None]
    measured = measured._replace(seen=measured.seen * weight)
    scales = _fit_scales(statistics, _RIDGE)
    with jax.enable_x64(True):
        shared = np.asarray(fit_together(system, measured, scales, _fit_range(statistics)))
    raw = statistics.raw + statistics.change * shared
    change = typical_changes(system, raw)
    return replace(fitted, statistics=statistics._replace(raw=raw, change=change))


@final
class LeastSquares(PhysicsBaseline):
    """The equations of a system with constants fitted to the last time steps."""

    name: ClassVar[str] = "least_squares"
    without_system: ClassVar[str] = (
        "least_squares fits the equations of a system, and none is given: name one, such as "
        "sir_conserving, or write a .phys file"
    )
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedLeastSquares

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Few time steps and long solver steps, for tests of the interface."""
        return {"rows": [6], "priors": [1e-3], "substeps": 1, "horizon": 4}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedLeastSquares:
        """Fit the training part as a whole, choose rows and prior, and fit the intervals."""
        parts = training_parts(train, validation, self.system, self.config.horizon, seed)
        fitted = self._without_choices(parts.train)
        validation = fitted.check(parts.validation)
        pairs = itertools.product(self.config.rows, self.config.priors)
        candidates = [replace(fitted, rows=rows, prior=prior) for rows, prior in pairs]

        def error(candidate: FittedLeastSquares) -> float:
            errors = squared_errors(candidate, validation, parts.horizon, _CHOICE_ORIGINS)
            return float(errors.mean())

        fitted = min(candidates, key=error) if len(candidates) > 1 else candidates[0]
        fitted = replace(fitted, width=fitted.rows)
        origins, _ = rolling_origins(validation, parts.horizon, _CHOICE_ORIGINS)
        _, clipped = fitted._continue(validation, origins)
        fitted = replace(fitted, clipped=int(clipped.sum()), validated=len(clipped))
        return with_intervals(fitted, parts.train, validation, parts.horizon)

    def _without_choices(self, train: Panel) -> FittedLeastSquares:
        """The model fitted to the training part, with the most time steps and no prior."""
        assert self.system is not None
        columns = find_columns(self.system, train.channels, train.control_names)
        fields = common_fields(train)
        scales = fields["channel_scales"]
        statistics, states = training_statistics(
            self.system, train, columns, scales.mean, scales.scale
        )
        fitted = FittedLeastSquares(
            **fields,
            system=self.system,
            columns=columns,
            rows=max(self.config.rows),
            width=max(self.config.rows),
            prior=0.0,
            substeps=self.config.substeps,
            statistics=statistics,
            clipped=0,
            validated=0,
        )
        return _with_unknowns(fitted, train, states)


MODEL = LeastSquares
