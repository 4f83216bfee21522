"""Matplotlib figure of a traffic scene seen from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from physsm._errors import DataError
from physsm._palette import FORECAST, INK, TRUTH_DASH, line_styles

_MAP = "#d4d4d4"
_OTHERS = "#8a8a8a"
_WIDEST = 7.0  # inches
_MARGIN = 8.0  # m around the track of the target


def plot_scene(
    context: Float[np.ndarray, "past 2"],
    future: Float[np.ndarray, "steps 2"],
    *,
    others: Sequence[Float[np.ndarray, "_ 2"]] = (),
    map_lines: Sequence[Float[np.ndarray, "_ 2"]] = (),
    forecasts: Mapping[str, Float[np.ndarray, "steps 2"]] | None = None,
    title: str = "",
    labels: tuple[str, str] = ("p, along the heading (m)", "y, to the left (m)"),
) -> Figure:
    """Figure of the target's past and future, the map's lines and other agents, in m, in one frame.

    Rows of NaN are not drawn. The view covers the target, its future and the forecasts, and the map
    and other agents within. The first forecast is a solid line, the others are dashed.
    """
    drawn = dict(forecasts or {})
    _check({"context": context, "future": future, **drawn}, others, map_lines)
    low, high = _view([context, future, *drawn.values()])
    width, height = high - low
    scale = _WIDEST / max(width, height)
    figure = Figure(
        figsize=(max(width * scale, 3.5) + 1, max(height * scale, 2) + 1.2), layout="constrained"
    )
    axes = figure.subplots()
    axes.add_collection(LineCollection(list(map_lines), colors=_MAP, linewidths=0.8, zorder=1))
    _draw_others(axes, others)
    axes.plot(*future.T, color=INK, lw=1.2, dashes=TRUTH_DASH, label="actual track", zorder=4)
    # With dots, because a row between two missing rows has no line.
    axes.plot(*context.T, ".-", color=INK, lw=2.0, ms=5, label="seen", zorder=5)
    _draw_forecasts(axes, drawn)
    now = context[np.isfinite(context).all(axis=1)][-1]
    axes.plot(*now, "o", color=INK, mec="white", mew=1.0, ms=8, label="now", zorder=6)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize="medium")
    figure.legend(frameon=False, loc="outside lower left", ncols=3, fontsize="small")
    return figure


def _draw_others(axes: Axes, others: Sequence[np.ndarray]) -> None:
    """Draw tracks as thin lines, with a dot at their end."""
    axes.add_collection(LineCollection(list(others), colors=_OTHERS, linewidths=1.4, zorder=2))
    last = [track[np.isfinite(track).all(axis=1)][-1:] for track in others]
    if last:
        ends = np.concatenate(last)
        axes.plot(*ends.T, ".", color=_OTHERS, ms=7, ls="none", label="other agents", zorder=3)


def _draw_forecasts(axes: Axes, forecasts: Mapping[str, np.ndarray]) -> None:
    names = list(forecasts)
    for name in names[:1]:
        axes.plot(*forecasts[name].T, color=FORECAST, lw=2.0, label=name, zorder=5)
    for name, style in line_styles(names[1:]).items():
        points = forecasts[name].T
        axes.plot(*points, color=style.colour, dashes=style.dash, lw=1.5, label=name, zorder=5)


def _view(shown: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a rectangle around all points, at most three times as long as wide."""
    points = np.concatenate(shown)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
    lacking = np.maximum((high - low).max() / 3 - (high - low), 0)
    return low - lacking / 2, high + lacking / 2


def _check(
    named: Mapping[str, np.ndarray], others: Sequence[np.ndarray], lines: Sequence[np.ndarray]
) -> None:
    every = {**named, **{f"others[{i}]": one for i, one in enumerate(others)}}
    every |= {f"map_lines[{i}]": one for i, one in enumerate(lines)}
    for name, points in every.items():
        if points.ndim != 2 or points.shape[1] != 2:
            raise DataError(f"{name} must have the shape (steps, 2), but has {points.shape}")
        if np.isinf(points).any():
            raise DataError(f"{name} holds an infinite coordinate")
    if not np.isfinite(named["context"]).all(axis=1).any():
        raise DataError("the context has no measured row")
