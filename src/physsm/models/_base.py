"""What every forecaster is: settings that can be fitted, and a fitted model that can forecast.

A model is one file in this folder that exports `MODEL`, a subclass of `AbstractForecaster`. It
implements `fit`, and its fitted form, a subclass of `AbstractFitted`, implements `_predict` (the
future), `_one_step` (each row from those before it) and what is stored. Checks, intervals and files
are inherited.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ValidationError

from physsm._arguments import number
from physsm._errors import ConfigError, DataError, did_you_mean
from physsm._registry import find
from physsm._values import Forecast, Layout, Panel, Query, Unknowns
from physsm.data.parts import Parts, WindowSettings, make_parts
from physsm.data.query import make_query
from physsm.data.table import to_panel
from physsm.data.times import as_numbers
from physsm.data.window import Part
from physsm.models._files import Interface, Stored, read_model, save_model
from physsm.models._intervals import Calibration
from physsm.physics.system import System
from physsm.training.loop import Result


class Prediction(NamedTuple):
    """A forecast before its intervals: `spread` is one standard deviation by the model's own view.

    States and unknowns are None for models without physics.
    """

    mean: Float[np.ndarray, "series steps channels"]
    spread: Float[np.ndarray, "series steps channels"]
    states: Float[np.ndarray, "series steps states"] | None = None
    unknowns: Float[np.ndarray, "series steps unknowns"] | None = None
    warnings: tuple[str, ...] = ()


class AbstractForecaster(abc.ABC):
    """Settings of a model. Flags say what it can take into account; all accept any panel."""

    name: ClassVar[str]
    irregular: ClassVar[bool]
    missing: ClassVar[bool]
    controls: ClassVar[bool]
    physics: ClassVar[bool]
    control_names: tuple[str, ...] = ()  # control columns of a table that is not yet a Panel
    looks_back: ClassVar[bool] = True  # a forecast depends on its history
    trains: ClassVar[bool] = False  # by steps: then `fit` also takes folder, resume and report
    Config: ClassVar[type[BaseModel]]
    Fitted: ClassVar[type[AbstractFitted]]

    @classmethod
    @abc.abstractmethod
    def create(cls, system: System | None, settings: Mapping[str, Any]) -> AbstractForecaster:
        """A forecaster from settings as they stand in a TOML file."""

    @property
    def window_settings(self) -> WindowSettings:
        """Sizes of windows that the model asks for; by default those that suit the table."""
        return WindowSettings()

    @final
    def parts(self, train: Any, validation: Any = None, *, seed: int = 0) -> Parts:
        """The windows for training and validation that `fit` uses, of tables, Panels or Parts."""
        first = self._panel(train)
        second = None if validation is None else self._panel(validation)
        if second is not None:
            panel = first.panel if isinstance(first, Part) else first
            second = _with_columns_of(second, panel)
        return make_parts(first, second, self.window_settings, seed)

    def _panel(self, data: Any) -> Panel | Part:
        """A table read with the controls of the physics; a Panel or Part as it is."""
        if isinstance(data, Panel | Part):
            return data
        return to_panel(data, controls=list(self.control_names))

    @abc.abstractmethod
    def fit(self, train: Any, validation: Any = None, *, seed: int = 0) -> AbstractFitted:
        """Fit to a table, a Panel, or a Part with windows. Without `validation`, part of `train` is
        set aside.
        """


class AbstractFitted(abc.ABC):
    """A fitted model."""

    name: ClassVar[str]
    interface: Interface
    calibration: Calibration
    follows_path: ClassVar[bool] = False  # one path for a window, which it has seen as a whole
    system: System | None = None  # its physics
    training: Result | None = None  # how its training went, right after it

    # What a model implements.

    @abc.abstractmethod
    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        """The future of each series at the query's times. Rows after its lengths are ignored."""

    @abc.abstractmethod
    def _one_step(self, history: Panel) -> Prediction:
        """Each row as predicted from the rows before it; NaN in the first row."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """All that is needed to make the model again besides its arrays, as plain JSON values."""

    @abc.abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name."""

    @classmethod
    @abc.abstractmethod
    def restore(cls, stored: Stored) -> AbstractFitted:
        """The inverse of `describe` and `arrays`."""

    # What it inherits.

    def __repr__(self) -> str:
        """In one line: what it is, and of which columns."""
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
        `horizon`: so many rows at the median gap instead. `coverage` None leaves the intervals
        out (they are NaN), which is faster.
        """
        check_coverage(coverage)
        panel = self.check(history)
        query = make_query(panel, times, horizon, controls)
        prediction = self._predict(panel, query, coverage is not None)
        return self._as_forecast(panel, query.times, query.lengths, prediction, coverage)

    @final
    def one_step(self, history: Any, coverage: float | None = 0.9) -> Forecast:
        """Each row as predicted from the rows before it; the first row is NaN."""
        check_coverage(coverage)
        panel = self.check(history)
        prediction = self._one_step(panel)
        return self._as_forecast(panel, panel.times, panel.lengths, prediction, coverage)

    def interpolate(
        self, history: Any, *, times: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """Values inside the history: here along straight lines between measurements, without
        intervals.

        `times` as in `forecast`, inside the history; by default the history's own rows.
        """
        check_coverage(coverage)
        panel = self.check(history)
        wanted = inside_times(panel, times)
        mean = straight_lines(panel, wanted)
        lengths = panel.lengths if times is None else np.full(len(panel), wanted.shape[1])
        prediction = Prediction(mean, np.full_like(mean, np.nan))
        return self._as_forecast(panel, wanted, lengths, prediction, None)

    def unknowns(self, history: Any) -> Unknowns:
        """The learned terms of the physics at each row of the history."""
        raise ConfigError(f"{self.name} has no physics, so it has no unknowns")

    def remarks(self) -> Sequence[str]:
        """What a user should be told of the fit, a sentence each."""
        return ()

    @final
    def check(self, history: Any) -> Panel:
        """The history as a panel with the model's channels and controls, in its order."""
        asked = self.interface
        if isinstance(history, Panel):
            panel = with_columns(history, asked.channels, asked.controls)
        else:
            panel = to_panel(
                history,
                time=asked.layout.time,
                series=asked.layout.series,
                channels=list(asked.channels),
                controls=list(asked.controls),
                time_unit=asked.layout.time_unit,
                may_be_unmeasured=True,
            )
        _check_clock(panel.layout, asked.layout)
        return panel

    def save(self, folder: Any) -> None:
        """Write the model into a folder, from where `physsm.load` reads it."""
        save_model(self, folder)

    def _as_forecast(
        self,
        panel: Panel,
        times: np.ndarray,
        lengths: np.ndarray,
        prediction: Prediction,
        coverage: float | None,
        calibration: Calibration | None = None,
    ) -> Forecast:
        """With the calibration of forecasts, or another one."""
        used = calibration or self.calibration
        reach = np.full_like(prediction.mean, np.nan)
        if coverage is not None:
            reach = used.factor(coverage) * prediction.spread
        state_names, unknown_names = self._physics_names()
        lower, upper = self._limits()
        return Forecast(
            ids=panel.ids,
            times=times,
            lengths=np.asarray(lengths, np.int64),
            channels=panel.channels,
            mean=np.clip(prediction.mean, lower, upper),
            lower=np.clip(prediction.mean - reach, lower, upper),
            upper=np.clip(prediction.mean + reach, lower, upper),
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
        """Bounds of the channels, by the physics."""
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


def _check_clock(here: Layout, there: Layout) -> None:
    """Fail where times do not mean what they meant in the table of the fit."""
    kinds = ["dates" if layout.origin else "numbers" for layout in (here, there)]
    if kinds[0] != kinds[1]:
        raise DataError(f"the times are {kinds[0]}, and were {kinds[1]} in the table of the fit")
    if here.origin and here.time_unit != there.time_unit:
        raise DataError(
            f"the time unit is {here.time_unit}, and was {there.time_unit} in the table of the fit",
            hint=f"read the table with time_unit={there.time_unit!r}",
        )


def check_coverage(coverage: float | None) -> None:
    """A coverage is a share; None asks for no intervals."""
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


def inside_times(panel: Panel, times: Any) -> Float[np.ndarray, "series steps"]:
    """Times inside each series' history, checked; its own rows if none are given."""
    if times is None:
        return panel.times
    wanted = as_numbers(times, panel.layout)
    if wanted.ndim not in (1, 2) or (wanted.ndim == 2 and len(wanted) != len(panel)):
        raise DataError(
            f"the times have the shape {wanted.shape}; they must be (steps,), or "
            f"({len(panel)}, steps) for the series of the history"
        )
    wanted = np.broadcast_to(wanted, (len(panel), wanted.shape[-1])).copy()
    first, last = panel.times[:, :1], panel.times[np.arange(len(panel)), panel.lengths - 1][:, None]
    outside = ~((first <= wanted) & (wanted <= last))
    if outside.any():
        series, step = np.argwhere(outside)[0]
        raise DataError(
            f"the time {wanted[series, step]:g} lies outside of the history of series "
            f"{panel.ids[series]}, {first[series, 0]:g} to {last[series, 0]:g}",
            hint="interpolate inside the history, and forecast after it",
        )
    return wanted


def straight_lines(
    panel: Panel, wanted: Float[np.ndarray, "series steps"]
) -> Float[np.ndarray, "series steps channels"]:
    """Channels at times inside each series, along straight lines between its measurements; NaN for
    one that was never measured.
    """
    found = np.full((*wanted.shape, len(panel.channels)), np.nan)
    for i, one in enumerate(panel):
        for channel in range(len(panel.channels)):
            seen = ~np.isnan(one.values[:, channel])
            if seen.any():
                found[i, :, channel] = np.interp(
                    wanted[i], one.times[seen], one.values[seen, channel]
                )
    return found


def read_config(kind: type[BaseModel], settings: Mapping[str, Any], model: str) -> Any:
    """Settings checked; an error names the setting, what was wrong with it, and a near name."""
    try:
        return kind.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = _setting_names(kind, first["loc"][:-1])
            hint = did_you_mean(place.split(".")[-1], known) or f"there are {', '.join(known)}"
            raise ConfigError(f"{model} has no setting {place}: {hint}") from None
        what = f"the setting {place} of {model} is" if place else f"the settings of {model} are"
        raise ConfigError(f"{what} {first['input']!r}: {first['msg']}") from None


def _setting_names(kind: type[BaseModel], inside: Sequence[int | str]) -> list[str]:
    """The names of all settings, or of those inside one of them."""
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    if not inside:
        return list(fields)
    inner = fields[str(inside[0])].annotation
    return _setting_names(inner, inside[1:]) if isinstance(inner, type) else list(fields)
