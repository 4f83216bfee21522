"""The colours of a page: those of Okabe and Ito, which the colour-blind can tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

INK = "#333333"
BOUNDARY = "#8a8a8a"
FORECAST = "#0072B2"
VALIDATION = "#D55E00"
BAND_OPACITY = 0.18
_OTHER_COLOURS = ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_DASHES = ((5.0, 2.5), (1.5, 2.0), (7.0, 2.0, 1.5, 2.0))
TRUTH_DASH = (4.0, 2.0)


class LineStyle(NamedTuple):
    """A thin dashed line; `dash` is on, off, on, off … in points."""

    colour: str
    dash: tuple[float, ...]


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """One style for each name, in their order: fifteen different ones before they repeat."""
    return {
        name: LineStyle(_OTHER_COLOURS[i % len(_OTHER_COLOURS)], _DASHES[i % len(_DASHES)])
        for i, name in enumerate(dict.fromkeys(names))
    }
