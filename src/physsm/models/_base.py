"""Base classes of all models: a forecaster has settings and is fitted, a fitted model forecasts.

A model is one file in this folder that exports `MODEL`, a subclass of `AbstractForecaster`, which
implements `fit`. Its fitted form, a subclass of `AbstractFitted`, implements `_predict` (the
future), `_one_step` (each time step from those before it), and `describe`, `arrays` and `restore`
(its files). Checks, intervals and files are inherited.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel

from physsm._arguments import number
from physsm._errors import ConfigError, DataError, did_you_mean
from physsm._registry import find
from physsm._values import Forecast, Layout, Panel, Query, Unknowns
from physsm.data.columns import known_series_column
from physsm.data.parts import Parts, WindowSettings, make_parts
from physsm.data.query import make_query
from physsm.data.table import make_panel, to_panel, to_raw
from physsm.data.window import Part
from physsm.models._files import Interface, Stored, read_model, save_model
from physsm.models._interpolation import inside_times, linear_interpolation
from physsm.models._intervals import Calibration
from physsm.models._warnings import forecast_warnings
from physsm.physics.system import System
from physsm.training.loop import Result


class Prediction(NamedTuple):
    """A forecast without intervals: `spread` is the standard deviation that the model predicts.

    States and unknowns are None for models without physics.
    """

    mean: Float[np.ndarray, "series steps channels"]
    spread: Float[np.ndarray, "series steps channels"]
    states: Float[np.ndarray, "series steps states"] | None = None
    unknowns: Float[np.ndarray, "series steps unknowns"] | None = None
    warnings: tuple[str, ...] = ()


class AbstractForecaster(abc.ABC):
    """Settings of a model.

    The flags state what a model uses: irregular gaps, missing measurements, controls, physics.
    Every model accepts any panel.
    """

    name: ClassVar[str]
    irregular: ClassVar[bool]
    missing: ClassVar[bool]
    controls: ClassVar[bool]
    physics: ClassVar[bool]
    control_names: tuple[str, ...] = ()  # control columns of a table that is not yet a Panel
    uses_history: ClassVar[bool] = True  # False: a forecast does not depend on its history
    trains: ClassVar[bool] = False  # with a training loop: `fit` also has folder, resume, report
    refits: ClassVar[bool] = False  # to all rows after its choices: `fit` also has `whole`
    Config: ClassVar[type[BaseModel]]
    Fitted: ClassVar[type[AbstractFitted]]

    @classmethod
    @abc.abstractmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> AbstractForecaster:
        """A forecaster from settings as in a TOML file."""

    @property
    def window_settings(self) -> WindowSettings:
        """Window sizes that the model sets; by default the table decides."""
        return WindowSettings()

    @final
    def parts(self, train: Any, validation: Any = None, *, seed: int = 0) -> Parts:
        """Windows for training and validation that `fit` uses, of tables, Panels or Parts."""
        first = self._panel(train)
        second = None if validation is None else self._panel(validation)
        if second is not None:
            panel = first.panel if isinstance(first, Part) else first
            second = _with_columns_of(second, panel)
        return make_parts(first, second, self.window_settings, seed)

    def _panel(self, data: Any) -> Panel | Part:
        """A table read with the controls of the physics; a Panel or Part unchanged."""
        if isinstance(data, Panel | Part):
            return data
        return to_panel(data, controls=list(self.control_names))

    @abc.abstractmethod
    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> AbstractFitted:
        """Fit to a table, a Panel, or a Part with windows. Without `validation`, a part of `train`
        is split off.
        """


class AbstractFitted(abc.ABC):
    """A fitted model."""

    name: ClassVar[str]
    interface: Interface
    calibration: Calibration
    predicts_trajectory: ClassVar[bool] = False  # one for each window, from its whole context
    system: System | None = None  # its physics
    training: Result | None = None  # result of the training loop, right after `fit`
    before_refit: AbstractFitted | None = None  # right after `fit`: not yet fitted to validation

    @property
    def is_grey_box(self) -> bool:
        """Whether it is the physics with constant and per-series unknowns, and nothing else."""
        return False

    # What a model implements.

    @abc.abstractmethod
    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        """The future of each series at the query's times; those after its lengths are padding."""

    @abc.abstractmethod
    def _one_step(self, history: Panel) -> Prediction:
        """Each time step as predicted from the steps before it; NaN at the first."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Everything but the arrays that `restore` needs, as plain JSON values."""

    @abc.abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of the model by name."""

    @classmethod
    @abc.abstractmethod
    def restore(cls, stored: Stored) -> AbstractFitted:
        """The inverse of `describe` and `arrays`."""

    # What it inherits.

    def __repr__(self) -> str:
        """The class and the columns, in one line."""
        columns = [f"channels {', '.join(self.interface.channels[:8])}"]
        columns[0] += ", ..." if len(self.interface.channels) > 8 else ""
        controls = self.interface.controls
        columns += [f"controls {', '.join(controls)}"] if controls else []
        return f"{type(self).__name__}({'; '.join(columns)})"

    @final
    def forecast(
        self,
        history: Any,
        *,
        times: Any = None,
        horizon: int | None = None,
        controls: Any = None,
        coverage: float | None = 0.9,
    ) -> Forecast:
        """The future of each series of `history`.

        `times`: an array of times, shape (steps,) or (series, steps), with `controls` of shape
        (steps, m) or (series, steps, m); or a table with a time column and one for each control.
        `horizon`: instead of times, a number of time steps at the median gap. `coverage` None
        leaves out the intervals (they are NaN), which is faster.
        """
        check_coverage(coverage)
        panel = self.check(history)
        query = make_query(panel, times, horizon, controls)
        prediction = self._predict(panel, query, coverage is not None)
        return self._as_future(panel, query, prediction, coverage)

    @final
    def one_step(self, history: Any, coverage: float | None = 0.9) -> Forecast:
        """Each time step as predicted from the steps before it; the first is NaN."""
        check_coverage(coverage)
        panel = self.check(history)
        prediction = self._one_step(panel)
        return self._as_forecast(panel, panel.times, panel.lengths, prediction, coverage)

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history: by default linear interpolation between measurements, without
        intervals.

        `times` as in `forecast`, inside the history; by default the history's own times.
        """
        check_coverage(coverage)
        panel = self.check(history)
        wanted = inside_times(panel, times)
        mean = linear_interpolation(panel, wanted)
        lengths = panel.lengths if times is None else np.full(len(panel), wanted.shape[1])
        prediction = Prediction(mean=mean, spread=np.full_like(mean, np.nan))
        return self._as_forecast(panel, wanted, lengths, prediction, None)

    def unknowns(self, history: Any) -> Unknowns:
        """The unknowns of the physics at each time step of the history."""
        raise ConfigError(f"{self.name} has no physics, so it has no unknowns")

    def remarks(self) -> Sequence[str]:
        """Remarks on the fit for the user, a sentence each."""
        return ()

    @final
    def check(self, history: Any) -> Panel:
        """The history as a panel with the channels and controls of the model, in their order.

        A table without the series column of the fit is one series.
        """
        fitted = self.interface
        if isinstance(history, Panel):
            panel = with_columns(history, fitted.channels, fitted.controls)
        else:
            table = to_raw(history)
            panel = make_panel(
                table,
                time=fitted.layout.time,
                series=known_series_column(table, fitted.layout, fitted.channels, fitted.controls),
                channels=list(fitted.channels),
                controls=list(fitted.controls),
                time_unit=fitted.layout.time_unit,
                may_be_unmeasured=True,
            )
        check_clock(panel.layout, fitted.layout)
        return panel

    def save(self, folder: Any) -> None:
        """Write the model into a folder, for `physsm.load`."""
        save_model(self, folder)

    @property
    def fitted_horizon(self) -> int | None:
        """Time steps ahead that the model was fitted for; None where there is no such number."""
        return self.interface.horizon

    def _as_future(
        self, history: Panel, query: Query, prediction: Prediction, coverage: float | None
    ) -> Forecast:
        """A prediction of the future with intervals and warnings."""
        future = self._as_forecast(history, query.times, query.lengths, prediction, coverage)
        more = forecast_warnings(future, history, self.fitted_horizon, self.interface.median_gap)
        return replace(future, warnings=(*future.warnings, *more))

    def _as_forecast(
        self,
        panel: Panel,
        times: np.ndarray,
        lengths: np.ndarray,
        prediction: Prediction,
        coverage: float | None,
        calibration: Calibration | None = None,
    ) -> Forecast:
        """A prediction with intervals, by `calibration` (by default the model's own)."""
        used = calibration or self.calibration
        half_width = np.full_like(prediction.mean, np.nan)
        if coverage is not None:
            half_width = used.factor(coverage) * prediction.spread
        state_names, unknown_names = self._physics_names()
        lower, upper = self._limits()
        return Forecast(
            ids=panel.ids,
            times=times,
            lengths=np.asarray(lengths, np.int64),
            channels=panel.channels,
            mean=np.clip(prediction.mean, lower, upper),
            lower=np.clip(prediction.mean - half_width, lower, upper),
            upper=np.clip(prediction.mean + half_width, lower, upper),
            coverage=coverage if coverage is not None else float("nan"),
            layout=panel.layout,
            state_names=state_names if prediction.states is not None else (),
            states=prediction.states,
            unknown_names=unknown_names if prediction.unknowns is not None else (),
            unknowns=prediction.unknowns,
            warnings=prediction.warnings,
            spread=None if coverage is None else prediction.spread,
            distances=used.quantiles,
            limits=(lower, upper),
        )

    def _physics_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of states and unknowns; none without physics."""
        return (), ()

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of the channels, by the physics."""
        channels = len(self.interface.channels)
        return np.full(channels, -np.inf), np.full(channels, np.inf)


def _with_columns_of(given: Panel | Part, like: Panel) -> Panel | Part:
    """A validation part with the columns of the training part."""
    panel = given.panel if isinstance(given, Part) else given
    same = with_columns(panel, like.channels, like.control_names)
    return Part(same, given.windows) if isinstance(given, Part) else same


def load(folder: Any) -> AbstractFitted:
    """Read a fitted model from its folder."""

    def restore(name: str, stored: Stored) -> AbstractFitted:
        return find("models", name, "MODEL").Fitted.restore(stored)

    return read_model(folder, restore)


def check_clock(here: Layout, there: Layout) -> None:
    """Fail where times have another kind or unit than in the table of the fit."""
    kinds = ["dates" if layout.origin else "numbers" for layout in (here, there)]
    if kinds[0] != kinds[1]:
        raise DataError(f"the times are {kinds[0]}, and were {kinds[1]} in the table of the fit")
    if here.origin and here.time_unit != there.time_unit:
        raise DataError(
            f"the time unit is {here.time_unit}, and was {there.time_unit} in the table of the fit",
            hint=f"read the table with time_unit={there.time_unit!r}",
        )


def check_coverage(coverage: float | None) -> None:
    """Fail where a coverage is not between 0 and 1; None means no intervals."""
    if coverage is not None and not 0 < number(coverage, "coverage") < 1:
        raise ConfigError(f"the coverage is {coverage} and must be between 0 and 1")


def with_columns(panel: Panel, channels: Sequence[str], controls: Sequence[str]) -> Panel:
    """The panel with these columns, in this order."""
    for kind, wanted, known in (
        ("channel", channels, panel.channels),
        ("control", controls, panel.control_names),
    ):
        if missing := [name for name in wanted if name not in known]:
            hint = did_you_mean(missing[0], known) or f"it has {', '.join(known) or 'none'}"
            raise DataError(f"the table has no {kind} {missing[0]}", hint=hint)
    order = [panel.control_names.index(name) for name in controls]
    return replace(
        panel.only(channels), controls=panel.controls[:, :, order], control_names=tuple(controls)
    )
