"""Metric: the declaration that every file of this folder exports, and the scores of all of them.

A metric file is the only place that knows its metric. It exports `METRIC`, which holds the
function, what the function needs, its unit and direction, and the columns it fills. Evaluation,
result files, terminal tables, the report and the benchmark pages read these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

from physsm._registry import find, names_in

# values      function(measured, predicted): arrays of one shape, in the scale of the errors
# interval    function(measured, lower, upper): the same, the bounds of the nominal interval
# quantiles   function(measured, quantiles, levels): quantiles (levels, *shape of measured);
#             blocks of windows are averaged, weighted by their number of measured values
# positions   function(measured, predicted): positions (windows, steps, 2) in m
# motion      function(measured, predicted, gap=..., smooth=...): the same, and the time step in s
Needs = Literal["values", "interval", "quantiles", "positions", "motion"]

# interp   one step ahead inside the context
# window   the context, by models that have seen it as a whole
# extrap   the target after the context
# in, out  positions of the target up to the longest lead time of the training, and after it
Part = Literal["interp", "window", "extrap", "in", "out"]

# plain     over all windows at once
# median    the median of the windows' own scores
# debiased  with the bias of the measurement removed from the forecast, where a data set knows it
# smooth    of a motion, after a moving average of the positions
Variant = Literal["plain", "median", "debiased", "smooth"]

# files       result files and JSON only
# benchmarks  the tables of benchmarks as well
# everywhere  the terminal tables of a run and its report as well
Shown = Literal["files", "benchmarks", "everywhere"]

NOMINAL_COVERAGE = 0.9  # of the intervals that are scored

_PARTS: dict[Needs, tuple[Part, ...]] = {
    "values": ("interp", "window", "extrap"),
    "interval": ("extrap",),
    "quantiles": ("extrap",),
    "positions": ("in", "out"),
    "motion": ("in", "out"),
}
_VARIANTS: dict[Needs, tuple[Variant, ...]] = {
    "values": ("plain", "median", "debiased"),
    "interval": ("plain",),
    "quantiles": ("plain",),
    "positions": ("plain", "median"),
    "motion": ("plain", "smooth"),
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One result of a metric: its key in files and JSON, and its heading in tables.

    Tables are sorted by the column with the highest `ranking` above 0 that they have.
    """

    key: str
    heading: str
    part: Part
    variant: Variant = "plain"
    shown: Shown = "everywhere"
    ranking: int = 0


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Declaration of a metric.

    `description` explains it in the report, in a few words. `unit` is None where the metric is in
    the scale of the errors or has no unit. `direction` says which values are better; a number means
    that values nearer to it are. `is_share` marks shares of one, which people read in percent.
    `is_mean` says that the score of all windows is the mean over batches of windows, weighted by
    their measured values. Among the columns of one part, lower `order` comes first.
    """

    function: Callable[..., float]
    description: str
    needs: Needs
    columns: tuple[Column, ...]
    unit: str | None = None
    direction: Literal["lower", "higher"] | float = "lower"
    is_share: bool = False
    is_mean: bool = True
    order: int = 1000

    def __post_init__(self) -> None:
        if self.needs == "quantiles" and not self.is_mean:
            raise ValueError(
                "a metric of quantiles is a mean: it is computed in batches of windows"
            )
        for column in self.columns:
            if column.part not in _PARTS[self.needs]:
                raise ValueError(f"{column.key}: no {self.needs} in the part {column.part}")
            if column.variant not in _VARIANTS[self.needs]:
                raise ValueError(f"{column.key}: {self.needs} have no variant {column.variant}")


@dataclass(frozen=True)
class Score:
    """A column together with its metric: all that a table or a file needs to know of it."""

    metric: Metric
    column: Column

    @property
    def key(self) -> str:
        """The name of the score in files and JSON."""
        return self.column.key

    @property
    def heading(self) -> str:
        """The heading of the score in tables, with its unit."""
        unit = self.metric.unit
        return self.column.heading if unit is None else f"{self.column.heading} ({unit})"

    @property
    def is_error(self) -> bool:
        """Whether the score has no wanted value: the lower, or the higher, the better."""
        return isinstance(self.metric.direction, str)

    def loss(self, value: float) -> float:
        """A number that is smaller for a better value of the score."""
        direction = self.metric.direction
        if direction == "lower":
            return value
        return -value if direction == "higher" else abs(value - direction)


def every_metric() -> list[Metric]:
    """The declarations of all metric files, in the order of their columns."""
    metrics: list[Metric] = [find("metrics", name, "METRIC") for name in names_in("metrics")]
    return sorted(metrics, key=lambda metric: metric.order)


def every_score() -> list[Score]:
    """The scores of all metrics, in the order of table columns."""
    scores = [Score(metric, column) for metric in every_metric() for column in metric.columns]
    parts = get_args(Part)
    return sorted(
        scores,
        key=lambda score: (
            parts.index(score.column.part),
            score.column.variant == "debiased",
        ),
    )


def shown_scores(place: Shown, keys: Collection[str]) -> list[Score]:
    """The scores among `keys` that an output shows, in the order of table columns."""
    places = get_args(Shown)
    return [
        score
        for score in every_score()
        if score.key in keys and places.index(score.column.shown) >= places.index(place)
    ]


def ranking_score(keys: Collection[str]) -> Score | None:
    """The score among `keys` that tables are sorted by, if there is one."""
    ranked = [score for score in every_score() if score.column.ranking and score.key in keys]
    return max(ranked, key=lambda score: score.column.ranking, default=None)
