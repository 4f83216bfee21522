"""Axes of the figures of a page: position, range, ticks and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from physsm._palette import INK
from physsm.report.markup import power_of_ten, printable

LARGEST = 1e100  # larger numbers overflow inside Matplotlib

# In points, which are the units of the SVG; at the full width of a page a point is 4/3 pixels.
_WIDTH = 684.0
_GAP, _TOP, _BOTTOM, _RIGHT = 36.0, 32.0, 40.0, 10.0
_CHARACTER = 5.6  # of a label

Values = Float[np.ndarray, " _"]


def new_stack(panels: int, panel_height: float) -> tuple[Figure, list[Axes]]:
    """Figure and axes of stacked panels; `arrange` sets their positions."""
    figure = Figure(figsize=(_WIDTH / 72, _height(panels, panel_height) / 72))
    return figure, [figure.add_axes((0, 0, 1, 1)) for _ in range(panels)]


def view(centre: Values, drawn: Values) -> tuple[float, float]:
    """Range of a panel: all of `centre`, and the drawn values near it.

    A diverging forecast therefore does not flatten the measurements to a line.
    """
    centre, drawn = centre[np.isfinite(centre)], drawn[np.isfinite(drawn)]
    if not centre.size:
        return 0.0, 1.0
    low, high = _widened(float(centre.min()), float(centre.max()))
    span = high - low
    low, high = (
        max(min(low, float(drawn.min(initial=low))), low - span),
        min(max(high, float(drawn.max(initial=high))), high + span),
    )
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _widened(low: float, high: float) -> tuple[float, float]:
    """Interval widened around its centre, if needed, to have ticks."""
    least = max(1e-9 * max(abs(low), abs(high)), 1 / LARGEST)
    if high - low >= least:
        return low, high
    half = max(0.05 * max(abs(low), abs(high)), least)
    if low == high == 0:
        half = 1.0
    return low - half, high + half


def limit_times(axes: Axes, times: Values) -> None:
    """Set the range of times, with a small margin."""
    finite = times[np.isfinite(times)]
    low, high = _widened(float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    margin = 0.015 * (high - low)
    axes.set_xlim(low - margin, high + margin)


def scale_losses(axes: Axes, losses: Values) -> str:
    """Set a logarithmic scale, unless a loss is not positive or all are equal.

    Returns the power of ten that multiplies the labels, or "".
    """
    finite = losses[np.isfinite(losses)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    if low > 1 / LARGEST and high > 3 * low:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.15, high * 1.15)
        narrow = high < 1000 * low
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,), numticks=8))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{loss:g}"))
        return ""
    axes.set_ylim(*view(finite, finite))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    return shorten_labels(axes.yaxis)


def set_title(axes: Axes, name: str, unit: str | None, power: str, above: float) -> None:
    """Write the name above the axis, with its unit and the power of ten of the labels.

    The title moves one line up if it would overlap the text of `write_above` at `above` (NaN: no
    text).
    """
    units = " ".join(part for part in (power, _short(unit or "", 40)) if part)
    text = f"{_short(name, 80)} ({units})" if units else _short(name, 80)
    low, high = axes.get_xlim()
    room = (above - low) / (high - low) * (_WIDTH - 60) - 70
    is_tight = _CHARACTER * len(text) > room  # false for NaN
    axes.set_title(text, loc="left", pad=18 if is_tight else 6, color=INK, parse_math=False)


def label_time(axes: Axes, label: str, whole: bool = False) -> None:
    """Set the ticks of the time axis and, if there is one, its label."""
    steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=steps, integer=whole))
    power = shorten_labels(axes.xaxis)
    text = _short(label, 80)
    shown = f"{text} ({power})" if power and text else text
    axes.set_xlabel(shown, color=INK, parse_math=False)


def shorten_labels(axis: Axis) -> str:
    """Shorten the tick labels. Returns the power of ten that multiplies them, or ""."""
    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-4, 6))
    axis.set_major_formatter(formatter)
    axis.offsetText.set_visible(False)
    formatter.format_ticks(list(axis.get_majorticklocs()))
    offset = formatter.get_offset().replace("−", "-")  # as "1e-6"
    return f"×{power_of_ten(int(offset.removeprefix('1e')))}" if offset else ""


def write_above(axes: Axes, time: float, text: str, side: str, distance: float = 0.0) -> None:
    """Write small text above the axes at a time, or `distance` points beside it."""
    axes.annotate(
        text,
        (time, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(distance, 3),
        textcoords="offset points",
        horizontalalignment=side,
        fontsize=8,
        color="#666666",
        annotation_clip=False,
    )


def arrange(stack: Sequence[Axes], panel_height: float) -> None:
    """Stack the axes, with as much room at the left as their labels need."""
    longest = max(
        (
            len(text)
            for axes in stack
            for text in axes.yaxis.get_major_formatter().format_ticks(
                list(axes.yaxis.get_majorticklocs())
            )
        ),
        default=0,
    )
    left = 10 + _CHARACTER * max(4, longest)
    height = _height(len(stack), panel_height)
    for i, axes in enumerate(stack):
        bottom = height - _TOP - (i + 1) * panel_height - i * _GAP
        width = _WIDTH - left - _RIGHT
        axes.set_position((left / _WIDTH, bottom / height, width / _WIDTH, panel_height / height))


def _height(panels: int, panel_height: float) -> float:
    return _TOP + panels * panel_height + (panels - 1) * _GAP + _BOTTOM


def _short(text: str, length: int) -> str:
    """Text on one line, truncated to `length`."""
    line = " ".join(printable(text).split())
    return line if len(line) <= length else f"{line[:length]}…"
