"""Overview of a panel: some of its series, one small plot for each column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from physsm._errors import ConfigError, DataError, RunError
from physsm._palette import FORECAST, INK, line_styles
from physsm._values import Panel, Series
from physsm._whole_files import whole_file
from physsm.report.svg import drawing

MAX_COLUMNS = 12
MAX_SERIES = 5
ENDINGS = (".png", ".svg")

_FOR_CONTROLS = 3  # plots reserved for controls, if there are as many
_WIDE = 9.0  # inches
_HIGH = 1.55  # of one plot
_BINS = 500  # bins; a line with more than two points per bin is drawn as its outline
_LARGEST = 1e150  # larger values overflow inside Matplotlib
_FEW = 150  # rows up to which each measurement has a dot


class _Column(NamedTuple):
    name: str
    is_control: bool
    number: int


def write_overview(
    panel: Panel, path: Path, *, title: str, units: Mapping[str, str] | None = None
) -> None:
    """Write the overview of a panel as PNG or SVG, by the ending of the path."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"a plot cannot be written to {path}: choose .png or .svg")
    for name, column in zip(panel.channels, np.moveaxis(panel.values, -1, 0), strict=True):
        if float(np.nanmax(np.abs(column), initial=0)) > _LARGEST:
            raise DataError(f"the values of {name} are too large to be drawn")
    with drawing():
        write_figure(plot_overview(panel, title=title, units=units), path)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by the ending of the path."""
    try:
        with whole_file(path) as stream:
            kind = path.suffix.lower().removeprefix(".")
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(stream, format=kind, dpi=150, facecolor="white", metadata=metadata)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error


def plot_overview(panel: Panel, *, title: str, units: Mapping[str, str] | None = None) -> Figure:
    """Figure of small multiples: channels first, then controls as far as there is room.

    `units` are the known units of columns. The title says what is left out.
    """
    for_controls = min(len(panel.control_names), _FOR_CONTROLS)
    channels = _spread(len(panel.channels), MAX_COLUMNS - for_controls)
    controls = _spread(len(panel.control_names), MAX_COLUMNS - len(channels))
    shown = [_Column(panel.channels[k], False, k) for k in channels]
    shown += [_Column(panel.control_names[k], True, k) for k in controls]
    series = [panel[i] for i in _spread(len(panel), MAX_SERIES)]
    across = 1 if len(shown) <= 3 else 2 if len(shown) <= 8 else 3
    down = math.ceil(len(shown) / across)
    figure = Figure(figsize=(_WIDE, 1.1 + _HIGH * down), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, squeeze=False)
    for axes, column in zip(grid.flat, shown, strict=False):
        _draw(axes, column, series, (units or {}).get(column.name))
    for axes in grid.flat[len(shown) :]:
        axes.remove()
    for axes in grid.flat[max(0, len(shown) - across) : len(shown)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(_time_label(panel, (units or {}).get(panel.layout.time)))
    note = _left_out(
        series=(len(series), len(panel)),
        channels=(len(channels), len(panel.channels)),
        controls=(len(controls), len(panel.control_names)),
    )
    heading = f"{title}. {note}" if note else title
    figure.suptitle(_as_text(heading), x=0.01, ha="left", fontsize=10, color=INK)
    if len(panel) > 1:
        handles = grid.flat[0].get_lines()
        figure.legend(
            handles,
            [_short(one.id) for one in series],
            loc="outside lower right",
            ncols=min(len(series), 3) if max(len(one.id) for one in series) > 16 else len(series),
            frameon=False,
            fontsize=8,
            handlelength=1.2,
            columnspacing=1.2,
        )
    return figure


def _spread(number: int, most: int) -> list[int]:
    """At most `most` integers below `number`, evenly spaced, with both ends if `most` > 1."""
    return np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(int)).tolist()


def _draw(axes: Axes, column: _Column, series: list[Series], unit: str | None) -> None:
    styles = line_styles(one.id for one in series)
    for i, one in enumerate(series):
        table = one.controls if column.is_control else one.values
        measured = ~np.isnan(table[:, column.number])
        times, values = _outline(one.times[measured], table[measured, column.number])
        # A control is held from its row until the next.
        axes.plot(
            times,
            values,
            color=FORECAST if i == 0 else styles[one.id].colour,
            lw=0.8 if len(times) <= _BINS else 0.6,
            marker="." if len(times) <= _FEW else "",
            ms=4,
            mew=0,
            drawstyle="steps-post" if column.is_control else "default",
        )
    name = f"{_short(column.name)} ({_as_text(unit)})" if unit else _short(column.name)
    axes.set_title(f"{name}, control" if column.is_control else name, loc="left", color=INK)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.margins(x=0.01)


def _outline(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Line with fewer points that looks the same: the minimum and maximum of each bin."""
    if len(times) <= 2 * _BINS:
        return times, values
    edges = np.linspace(0, len(times), _BINS + 1).astype(int)
    pairs = itertools.pairwise(edges.tolist())
    extremes = [(a + values[a:b].argmin(), a + values[a:b].argmax()) for a, b in pairs]
    chosen = np.unique(np.array([0, *np.ravel(extremes), len(times) - 1]))
    return times[chosen], values[chosen]


def _time_label(panel: Panel, unit: str | None) -> str:
    layout = panel.layout
    unit = f"{layout.time_unit} since {layout.origin}" if layout.origin else unit
    return f"{_short(layout.time)} ({_as_text(unit)})" if unit else _short(layout.time)


def _left_out(**drawn: tuple[int, int]) -> str:
    """Note on the drawn number of each kind, where that is not all."""
    parts = [f"{some} of {all_:,} {kind}" for kind, (some, all_) in drawn.items() if some < all_]
    return f"Drawn: {', '.join(parts)}." if parts else ""


def _short(name: str) -> str:
    """Name truncated to the width of a plot."""
    return _as_text(name if len(name) <= 24 else f"{name[:23]}…")


def _as_text(words: str) -> str:
    """Text with escaped dollars, which would start a formula in Matplotlib."""
    return words.replace("$", r"\$")
