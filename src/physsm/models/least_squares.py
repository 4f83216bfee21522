"""The physics with constant unknowns, fitted to the last rows of each history by least squares.

For every forecast, the unknowns of the equations are taken as constants. They and the state some
rows back are chosen so that the solution comes closest to the measurements since then, and the
solution is continued:

    minimise  sum over rows, channels of ((z(t) - x)/scale)^2 + prior * sum of y^2

where y are the deviations of the unknowns from those of the whole training part, each relative to
its size there (of one with a bound about the logarithm of the ratio). Controls hold from their row
until the next.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, final

import jax
import numpy as np
from jaxtyping import Bool, Float
from pydantic import BaseModel, ConfigDict, Field

from physsm._values import Panel, Unknowns
from physsm.models._base import AbstractFitted
from physsm.models._baseline.first_guess import Learned, as_raw, changes, first_guess, learn_states
from physsm.models._baseline.forecaster import (
    AbstractBaseline,
    PhysicsBaseline,
    common_fields,
    squared_errors,
    training_parts,
    with_intervals,
)
from physsm.models._baseline.origins import Origins, rolling, steps_ahead
from physsm.models._baseline.state_columns import Columns, find_columns, rows_before, states_at
from physsm.models._baseline.trajectory_fit import (
    BLOCK,
    Measured,
    Range,
    Shot,
    Units,
    fit_block,
    fit_together,
    solve_block,
)
from physsm.models._files import Stored
from physsm.models._steps import Steps, cut_gaps
from physsm.physics.bounds import limits
from physsm.physics.system import System

_CHOICE_ORIGINS = 100  # forecasts that decide how many rows are used
_MOST_STEPS = 20_000
_TOGETHER = 12  # parts of the training series that are fitted with one set of unknowns
_RIDGE = 1e-6  # for unknowns of the training part that cannot be told apart
_SMALLEST = 0.01  # change of an unknown that counts, relative to one that moves a scale in a gap
_ROOM = 10.0  # widths of the training range that a solution may leave it by while it is fitted


class Config(BaseModel):
    """- `rows`: how many of the last rows the solution may be fitted to. The pair of rows and prior
      with the least squared error of forecasts in validation is taken.
    - `priors`: what may be the weight of the unknowns of the training part. 0 leaves each history
      to itself; then a few that do not determine their unknowns run away.
    - `substeps`: steps of the solver in a median gap.
    - `horizon`: rows ahead that count in validation and behind the intervals; by default a quarter
      of the median series (with fewer than five series a twelfth), at most 100.
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
    """Fitted to the last `rows` rows of a history, or to all if it has fewer.

    `width` is the number of rows that the program has room for: candidates that differ in `rows`
    share one. Forecasts stay inside the range of the training part, extended to the last value of
    the history where that lies outside, and widened by its own width on both sides. `held` of
    `tried` forecasts in validation had to be held there.
    """

    name: ClassVar[str] = "least_squares"
    system: System  # pyright: ignore[reportIncompatibleVariableOverride]
    columns: Columns
    rows: int
    width: int
    prior: float
    substeps: int
    learned: Learned
    held: int
    tried: int

    def _mean(self, panel: Panel, origins: Origins) -> Float[np.ndarray, "origins steps channels"]:
        return self._continue(panel, origins)[0]

    def _continue(
        self, panel: Panel, origins: Origins
    ) -> tuple[Float[np.ndarray, "origins steps channels"], Bool[np.ndarray, " origins"]]:
        """Forecasts, and which of them had to be held in the range."""
        shot = self._fit(panel, origins)
        now = panel.times[origins.series, origins.row][:, None]
        u = panel.controls[origins.series, origins.row][:, None]
        u = np.concatenate([u, origins.controls], 1)[..., list(self.columns.control)]
        times = np.concatenate([now, origins.times], 1)
        steps = _steps(times, self.interface.median_gap / self.substeps)
        controls, within = steps.held(u), self._range(panel, origins)
        nodes = np.empty((len(now), steps.lengths.shape[1] + 1, len(self.system.states)))
        held = np.zeros(nodes.shape[:2], bool)
        start = np.clip(shot.end, within.low, within.high)
        with jax.enable_x64(True):
            for part in _blocks(len(now)):
                found = solve_block(
                    self.system,
                    shot.theta[part],
                    start[part],
                    steps.lengths[part],
                    controls[part],
                    Range(*_of(within, part)),
                )
                nodes[part], held[part] = map(np.asarray, found)
        states = np.take_along_axis(nodes, steps.reached[:, 1:, None], axis=1)
        mean = np.empty((*origins.times.shape, len(panel.channels)))
        for i, channel in enumerate(self.columns.channel):
            if channel >= 0:
                mean[..., channel] = states[..., i]
        return mean, np.take_along_axis(held, steps.reached[:, -1:], axis=1)[:, 0]

    def _fit(self, panel: Panel, origins: Origins) -> Shot:
        """Unknowns and end states of all origins."""
        measured = _measured(panel, origins, self)
        n, k = len(self.system.states), len(self.system.unknowns)
        number = len(origins.row)
        found = Shot(np.empty((number, k)), np.empty((number, k)), np.empty((number, n)))
        units, within = _units(self.learned, self.prior), _room(self.learned)
        with jax.enable_x64(True):
            for part in _blocks(number):
                block = fit_block(self.system, Measured(*_of(measured, part)), units, within)
                for whole, piece in zip(found, block, strict=True):
                    whole[part] = np.asarray(piece)
        return found

    def _range(self, panel: Panel, origins: Origins) -> Range:
        """What the states of each forecast are held in."""
        learned = self.learned
        times = panel.times[origins.series[:, None], rows_before(origins, 3)]
        now = states_at(panel, origins, times, self.columns, learned.mean)[:, -1]
        margin = learned.high - learned.low
        least, most = limits(self.system.state_bounds)
        low = np.maximum(np.minimum(learned.low, now) - margin, least)
        return Range(low, np.minimum(np.maximum(learned.high, now) + margin, most))

    def unknowns(self, history: Any) -> Unknowns:
        """The fitted constants at each row, from the last rows up to it; NaN in the first rows,
        which have fewer behind them than the fit uses, unless the whole series has fewer.

        `std` follows from the misfit and the slopes of the solution; NaN where there are no more
        measurements than states and unknowns.
        """
        panel = self.check(history)
        valid = np.arange(panel.times.shape[1]) < panel.lengths[:, None]
        series, row = np.nonzero(valid)
        shot = self._fit(panel, steps_ahead(panel, series, row, 0))
        mean, std = np.full((2, *valid.shape, len(self.system.unknowns)), np.nan)
        mean[valid], std[valid] = shot.theta, shot.std
        enough = np.minimum(self.rows, panel.lengths)[:, None] - 1
        is_early = np.arange(panel.times.shape[1]) < enough
        mean[is_early], std[is_early] = np.nan, np.nan
        names = tuple(unknown.name for unknown in self.system.unknowns)
        return Unknowns(names, panel.ids, panel.times, panel.lengths, mean, std)

    def describe(self) -> dict[str, Any]:
        """The physics, what was chosen, and how many forecasts of the validation ran away."""
        return {
            "physics": self.system.text,
            "rows": self.rows,
            "prior": self.prior,
            "substeps": self.substeps,
            "held": self.held,
            "tried": self.tried,
        }

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {f"state_{name}": array for name, array in self.learned._asdict().items()}

    @classmethod
    def _own_fields(cls, stored: Stored) -> dict[str, Any]:
        said = stored.description
        system = System.parse(said["physics"])
        lists = {"rows": [said["rows"]], "priors": [said["prior"]]}
        config = Config.model_validate({**lists, "substeps": said["substeps"]})
        lengths = [(len(system.states),)] * 4 + [(len(system.unknowns),)] * 2
        names = [f"state_{name}" for name in Learned._fields]
        arrays = [stored.array(name, shape) for name, shape in zip(names, lengths, strict=True)]
        return {
            "system": system,
            "columns": find_columns(system, stored.interface.channels, stored.interface.controls),
            "rows": config.rows[0],
            "width": config.rows[0],
            "prior": config.priors[0],
            "substeps": config.substeps,
            "learned": Learned(*arrays),
            "held": int(said["held"]),
            "tried": int(said["tried"]),
        }


def _steps(times: np.ndarray, longest: float, usual: int = 1) -> Steps:
    """Steps of the solver, as many as a power of two of at least `usual`: few programs are compiled
    then. A time that needs more than the most steps lies so far ahead by mistake.
    """
    return cut_gaps(
        times, longest, _MOST_STEPS, lambda steps: 1 << (max(steps, usual) - 1).bit_length()
    )


def _blocks(number: int) -> list[np.ndarray]:
    """Places in blocks of one size; the last is filled up with its last place."""
    starts = range(0, number, BLOCK)
    return [np.minimum(np.arange(first, first + BLOCK), number - 1) for first in starts]


def _of(whole: tuple[Any, ...], part: np.ndarray) -> tuple[Any, ...]:
    return tuple(array[part] for array in whole)


def _units(learned: Learned, prior: float) -> Units:
    return Units(learned.scale, learned.raw, learned.change, np.array(prior))


def _room(learned: Learned) -> Range:
    """While it is fitted a solution may leave the range, but not lose all digits."""
    margin = _ROOM * np.maximum(learned.high - learned.low, learned.scale)
    return Range(learned.low - margin, learned.high + margin)


def _measured(panel: Panel, origins: Origins, fitted: FittedLeastSquares) -> Measured:
    """The last rows of each history, with steps between them."""
    columns, width = fitted.columns, fitted.width
    back = np.arange(width)[::-1]
    used = back <= np.minimum(origins.row, fitted.rows - 1)[:, None]
    row = np.maximum(origins.row[:, None] - np.minimum(back, fitted.rows - 1), 0)
    series = origins.series[:, None]
    times = panel.times[series, row]
    states = np.full((*row.shape, len(columns.channel)), np.nan)
    for i, channel in enumerate(columns.channel):
        if channel >= 0:
            states[..., i] = panel.values[series, row, channel]
    seen = ~np.isnan(states) & used[..., None]
    controls = panel.controls[series, row][..., list(columns.control)]
    longest = fitted.interface.median_gap / fitted.substeps
    steps = _steps(times, longest, 2 * (width - 1) * fitted.substeps)
    return Measured(
        states=np.where(seen, states, 0),
        seen=seen.astype(float),
        length=steps.lengths,
        control=steps.held(controls),
        at=steps.reached,
        guess=states_at(panel, origins, times, columns, fitted.learned.mean)[:, 0],
    )


def _with_unknowns(
    fitted: FittedLeastSquares, train: Panel, states: np.ndarray
) -> FittedLeastSquares:
    """With the unknowns that suit the whole training part best."""
    system, learned = fitted.system, fitted.learned
    theta, size = first_guess(system, train, fitted.columns, learned, states)
    raw = as_raw(system, theta, _SMALLEST * size)
    learned = learned._replace(raw=raw, change=changes(system, raw, _SMALLEST * size))
    origins, _ = rolling(train, 1, _TOGETHER)
    if not len(origins.row):
        return replace(fitted, learned=learned)
    measured = _measured(train, origins, fitted)
    place = np.minimum(np.arange(_TOGETHER), len(origins.row) - 1)
    # A part that fills up the block counts for nothing.
    counts = (np.arange(_TOGETHER) < len(origins.row)).astype(float)[:, None, None]
    measured = Measured(*_of(measured, place))
    measured = measured._replace(seen=measured.seen * counts)
    units = _units(learned, _RIDGE)
    with jax.enable_x64(True):
        shared = np.asarray(fit_together(system, measured, units, _room(learned)))
    raw = learned.raw + learned.change * shared
    change = changes(system, raw, _SMALLEST * size)
    return replace(fitted, learned=learned._replace(raw=raw, change=change))


@final
class LeastSquares(PhysicsBaseline):
    """The equations with constants of the last time steps."""

    name: ClassVar[str] = "least_squares"
    without_system: ClassVar[str] = (
        "least_squares fits the equations of a system, and none is given: name one, such as "
        "sir_conserving, or write a .phys file"
    )
    Config: ClassVar[type[BaseModel]] = Config
    Fitted: ClassVar[type[AbstractFitted]] = FittedLeastSquares

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Few rows and long steps, for tests of the interface."""
        return {"rows": [6], "priors": [1e-3], "substeps": 1, "horizon": 4}

    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> FittedLeastSquares:
        """Fit the training part as a whole, choose the number of rows, and measure the errors."""
        system, config = self.system, self.config
        assert system is not None
        parts = training_parts(train, validation, system, config.horizon, seed)
        panel = parts.train
        columns = find_columns(system, panel.channels, panel.control_names)
        fields = common_fields(panel)
        usual = fields["usual"]
        learned, states = learn_states(system, panel, columns, usual.mean, usual.scale)
        fitted = FittedLeastSquares(
            **fields,
            system=system,
            columns=columns,
            rows=max(config.rows),
            width=max(config.rows),
            prior=0.0,
            substeps=config.substeps,
            learned=learned,
            held=0,
            tried=0,
        )
        fitted = _with_unknowns(fitted, panel, states)
        held_out = fitted.check(parts.validation)
        pairs = itertools.product(config.rows, config.priors)
        candidates = [replace(fitted, rows=rows, prior=prior) for rows, prior in pairs]

        def error(candidate: FittedLeastSquares) -> float:
            errors = squared_errors(candidate, held_out, parts.horizon, _CHOICE_ORIGINS)
            return float(errors.mean())

        fitted = min(candidates, key=error) if len(candidates) > 1 else candidates[0]
        fitted = replace(fitted, width=fitted.rows)
        origins, _ = rolling(held_out, parts.horizon, _CHOICE_ORIGINS)
        _, held = fitted._continue(held_out, origins)
        fitted = replace(fitted, held=int(held.sum()), tried=len(held))
        return with_intervals(fitted, panel, held_out, parts.horizon)


MODEL = LeastSquares
