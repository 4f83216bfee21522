"""Colours and dashes of all figures: the palette of Okabe and Ito, safe for the colour-blind.

At the root, because `Forecast.plot` and the report share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

INK = "#333333"
BOUNDARY = "#8a8a8a"
FORECAST = "#0072B2"
VALIDATION = "#D55E00"
BAND_OPACITY = 0.18
_LINE_COLOURS = ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_DASHES = ((5.0, 2.5), (1.5, 2.0), (7.0, 2.0, 1.5, 2.0))
TRUTH_DASH = (4.0, 2.0)


class LineStyle(NamedTuple):
    """Style of a thin dashed line; `dash` is on, off, on, off … in points."""

    colour: str
    dash: tuple[float, ...]


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Line style of each name, in their order; styles repeat after fifteen names."""
    return {
        name: LineStyle(_LINE_COLOURS[i % len(_LINE_COLOURS)], _DASHES[i % len(_DASHES)])
        for i, name in enumerate(dict.fromkeys(names))
    }
