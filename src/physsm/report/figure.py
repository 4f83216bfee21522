"""Figures of a page, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from physsm._palette import (
    BAND_OPACITY,
    BOUNDARY,
    FORECAST,
    INK,
    TRUTH_DASH,
    VALIDATION,
    LineStyle,
)
from physsm.report.axes import (
    LARGEST,
    Values,
    arrange,
    label_time,
    limit_times,
    new_stack,
    scale_losses,
    set_title,
    shorten_labels,
    view,
    write_above,
)
from physsm.report.contents import (
    ChannelExample,
    CurvePoint,
    Example,
    Number,
    TrainingPart,
    UnknownExample,
)
from physsm.report.markup import is_finite, printable
from physsm.report.svg import drawing, inline_svg

MAX_PANELS = 6
_MAX_POINTS = 1500  # about two for each pixel of a panel's width

_PANEL = 108.0  # its height in points


class Drawing(NamedTuple):
    """Figure as SVG, and the notes below it."""

    svg: str
    notes: list[str]


class _Line(NamedTuple):
    values: Values
    style: LineStyle


class _Panel(NamedTuple):
    """Panel of one channel or unknown. `dots` are times and values; all of `centre` is in view."""

    name: str
    unit: str | None
    times: Values
    mean: Values
    lower: Values
    upper: Values
    centre: Values
    lines: Sequence[_Line] = ()
    dark_dots: tuple[Values, Values] | None = None
    hollow_dots: tuple[Values, Values] | None = None


def forecast_figure(
    example: Example, time_label: str, styles: Mapping[str, LineStyle], name: str
) -> Drawing:
    """Figure of stacked channels: measurements, forecast with interval, other models."""
    channels = example["channels"]
    panels = [_channel_panel(channel, styles) for channel in channels[:MAX_PANELS]]
    names = ", ".join(panel.name for panel in panels)
    label = f"Measurements and forecast of series {example['series']}: {names}"
    notes = _panel_note(len(channels), "channels")
    return _stacked(panels, example["boundary"], time_label, name, label, notes)


def unknowns_figure(example: Example, time_label: str, name: str) -> Drawing:
    """Figure of stacked unknowns with their intervals and, if known, the true values."""
    unknowns = example["unknowns"]
    panels = [_unknown_panel(unknown) for unknown in unknowns[:MAX_PANELS]]
    names = ", ".join(panel.name for panel in panels)
    label = f"Unknown terms over time in series {example['series']}: {names}"
    notes = _panel_note(len(unknowns), "unknowns")
    return _stacked(panels, example["boundary"], time_label, name, label, notes)


def training_figure(training: TrainingPart, name: str) -> Drawing:
    """Figure of the training loss and the validation error over the steps, with the best step.

    The two are different quantities, so each has its own panel and scale.
    """
    curves = {
        "training loss": (_curve_values(training["curve"], "loss"), FORECAST),
        "validation error": (_curve_values(training["curve"], "validation"), VALIDATION),
    }
    best = _array([training["best_step"]])
    steps = np.concatenate([best, *(at for (at, _), _ in curves.values())])
    with drawing():
        figure, stack = new_stack(len(curves), _PANEL)
        for axes, (title, (curve, color)) in zip(stack, curves.items(), strict=True):
            _plot_line(axes, *curve, color=color, linewidth=1.3, marker="o", markersize=2.5)
            limit_times(axes, steps)
            power = scale_losses(axes, curve[1])
            label_time(axes, "training step" if axes is stack[-1] else "", whole=True)
            axes.tick_params(labelbottom=axes is stack[-1])
            if np.isfinite(best[0]):
                dashes = (0, (3, 2))
                axes.axvline(best[0], color=BOUNDARY, linewidth=0.8, linestyle=dashes, zorder=1)
            set_title(axes, title, None, power, above=best[0] if axes is stack[0] else math.nan)
        if np.isfinite(best[0]):
            left, right = stack[0].get_xlim()
            side = "right" if best[0] > (left + right) / 2 else "left"
            write_above(stack[0], best[0], f"best step: {training['best_step']}", side)
        arrange(stack, _PANEL)
        label = f"Training loss and validation error; the best step is {training['best_step']}"
        return Drawing(inline_svg(figure, name, label), [])


def _channel_panel(channel: ChannelExample, styles: Mapping[str, LineStyle]) -> _Panel:
    context = _array(channel["context_times"]), _array(channel["context_values"])
    target = _array(channel["target_times"]), _array(channel["target_values"])
    mean = _array(channel["mean"])
    measured = np.concatenate([context[1], target[1]])
    return _Panel(
        name=channel["name"],
        unit=channel["unit"],
        times=_array(channel["forecast_times"]),
        mean=mean,
        lower=_array(channel["lower"]),
        upper=_array(channel["upper"]),
        centre=measured if np.isfinite(measured).any() else mean,
        lines=[_Line(_array(row), styles[model]) for model, row in channel["others"].items()],
        dark_dots=context,
        hollow_dots=target,
    )


def _unknown_panel(unknown: UnknownExample) -> _Panel:
    mean = _array(unknown["mean"])
    truth = None if unknown["true"] is None else _array(unknown["true"])
    return _Panel(
        name=unknown["name"],
        unit=unknown["unit"],
        times=_array(unknown["times"]),
        mean=mean,
        lower=_array(unknown["lower"]),
        upper=_array(unknown["upper"]),
        centre=mean if truth is None else np.concatenate([mean, truth]),
        lines=[] if truth is None else [_Line(truth, LineStyle(INK, TRUTH_DASH))],
    )


def _panel_note(amount: int, plural: str) -> list[str]:
    return [f"{MAX_PANELS} of {amount} {plural} are shown."] if amount > MAX_PANELS else []


def _stacked(
    panels: Sequence[_Panel],
    boundary: Number,
    time_label: str,
    name: str,
    label: str,
    notes: list[str],
) -> Drawing:
    """Figure of stacked panels over one time axis, with a line at the end of the observations."""
    edge = _array([boundary])
    times = np.concatenate([edge, *(_all_times(panel) for panel in panels)])
    with drawing():
        figure, stack = new_stack(len(panels), _PANEL)
        left_view = [panel.name for a, panel in zip(stack, panels, strict=True) if _draw(a, panel)]
        for axes in stack:
            limit_times(axes, times)
            label_time(axes, "")
            axes.tick_params(labelbottom=axes is stack[-1])
            if np.isfinite(edge[0]):
                axes.axvline(edge[0], color=BOUNDARY, linewidth=0.9, zorder=1)
        if np.isfinite(edge[0]):
            write_above(stack[0], edge[0], "← observed", "right", -5.0)
            write_above(stack[0], edge[0], "forecast →", "left", 5.0)
        label_time(stack[-1], time_label)
        for i, (axes, panel) in enumerate(zip(stack, panels, strict=True)):
            power = shorten_labels(axes.yaxis)
            above = edge[0] if i == 0 else math.nan
            set_title(axes, panel.name, panel.unit, power, above)
        arrange(stack, _PANEL)
        svg = inline_svg(figure, name, printable(label))
    if left_view:
        notes = [*notes, f"Lines leave the panel in: {', '.join(left_view)}."]
    if any(len(row) > _MAX_POINTS for panel in panels for row in _rows(panel)):
        notes = [*notes, "Long series are evenly thinned for the figure."]
    return Drawing(svg, notes)


def _draw(axes: Axes, panel: _Panel) -> bool:
    """Draw a panel. Returns whether some lines leave it."""
    drawn = np.concatenate([panel.mean, panel.lower, panel.upper])
    low, high = view(panel.centre, drawn)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))

    def near(values: Values) -> Values:
        """Values clipped at some distance from the panel, so that their lines still leave it."""
        return np.clip(values, low - 10 * (high - low), high + 10 * (high - low))

    times = panel.times
    lower, upper = near(panel.lower), near(panel.upper)
    if len(times) == 1:
        axes.vlines(times, lower, upper, color=FORECAST, alpha=2 * BAND_OPACITY, linewidth=4)
    else:
        t, a, b = _thinned(times, lower, upper)
        axes.fill_between(t, a, b, color=FORECAST, alpha=BAND_OPACITY, linewidth=0, zorder=1.5)
    for line in panel.lines:
        style = {"color": line.style.colour, "linestyle": (0, line.style.dash), "linewidth": 1.1}
        _plot_line(axes, times, near(line.values), zorder=2.2, **style)
    _plot_line(axes, times, near(panel.mean), color=FORECAST, linewidth=1.6, zorder=2.4)
    if panel.dark_dots:
        _plot_dots(axes, *panel.dark_dots, face=INK)
    if panel.hollow_dots:
        _plot_dots(axes, *panel.hollow_dots, face="white")
    everything = np.concatenate([drawn, *(line.values for line in panel.lines)])
    return bool(np.any(everything < low) or np.any(everything > high))


def _plot_line(axes: Axes, times: Values, values: Values, **style: object) -> None:
    if np.isfinite(values).sum() == 1:  # a line of one point is invisible
        style = {**style, "marker": "o", "markersize": 4}
    axes.plot(*_thinned(times, values), **style)  # type: ignore[arg-type]


def _plot_dots(axes: Axes, times: Values, values: Values, face: str) -> None:
    measured = np.isfinite(times) & np.isfinite(values)
    axes.plot(
        *_thinned(times[measured], values[measured]),
        linestyle="none",
        marker="o",
        markersize=2.8,
        markerfacecolor=face,
        markeredgecolor=INK,
        markeredgewidth=0.6,
        zorder=3,
    )


def _curve_values(curve: Sequence[CurvePoint], key: str) -> tuple[Values, Values]:
    """Steps that have a loss, and their losses."""
    steps = _array([point["step"] for point in curve])
    losses = _array([point[key] for point in curve])
    present = np.isfinite(losses)
    return steps[present], losses[present]


def _all_times(panel: _Panel) -> Values:
    dots = [dots[0] for dots in (panel.dark_dots, panel.hollow_dots) if dots]
    return np.concatenate([panel.times, *dots])


def _rows(panel: _Panel) -> list[Values]:
    dots = [dots[1] for dots in (panel.dark_dots, panel.hollow_dots) if dots]
    return [panel.mean, *dots]


def _array(numbers: Sequence[Number]) -> Values:
    """Array with NaN for numbers that cannot be drawn."""
    return np.array(
        [
            float(x) if x is not None and is_finite(x) and abs(x) < LARGEST else math.nan
            for x in numbers
        ],
        float,
    )


def _thinned(*rows: Values) -> list[Values]:
    """Arrays of one length, evenly thinned if they are long."""
    length = len(rows[0])
    if length <= _MAX_POINTS:
        return list(rows)
    chosen = np.linspace(0, length - 1, _MAX_POINTS).round().astype(int)
    return [row[chosen] for row in rows]
