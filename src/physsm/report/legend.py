"""Legends of figures as HTML, so that they never cover data and wrap on a phone."""

from __future__ import annotations

from collections.abc import Mapping

from physsm._palette import BAND_OPACITY, FORECAST, INK, TRUTH_DASH, LineStyle
from physsm.report.markup import escape


def forecast_legend(styles: Mapping[str, LineStyle], coverage: str) -> str:
    """Legend of `forecast_figure`; `coverage` is the nominal share of an interval, as text."""
    entries = [
        _entry(_dot(INK), "measured, shown to the model"),
        _entry(_dot("white"), "measured, held out"),
        _entry(_line(FORECAST, 2.0), "forecast"),
        _entry(_band(), f"{coverage} interval"),
        *(_entry(_line(s.colour, 1.5, s.dash), name) for name, s in styles.items()),
    ]
    return _list(entries)


def unknowns_legend(coverage: str, has_truth: bool) -> str:
    """Legend of `unknowns_figure`."""
    entries = [_entry(_line(FORECAST, 2.0), "learned"), _entry(_band(), f"{coverage} interval")]
    truth = [_entry(_line(INK, 1.5, TRUTH_DASH), "true value")] if has_truth else []
    return _list(entries + truth)


def _list(entries: list[str]) -> str:
    return f"<ul class=legend>{''.join(entries)}</ul>"


def _entry(mark: str, label: str) -> str:
    swatch = f'<svg viewBox="0 0 22 10" width="22" height="10" aria-hidden="true">{mark}</svg>'
    return f"<li>{swatch} {escape(label)}</li>"


def _dot(face: str) -> str:
    return f'<circle cx="11" cy="5" r="2.4" fill="{face}" stroke="{INK}" stroke-width="0.9"/>'


def _band() -> str:
    return f'<rect width="22" height="10" fill="{FORECAST}" fill-opacity="{BAND_OPACITY}"/>'


def _line(colour: str, width: float, dash: tuple[float, ...] = ()) -> str:
    dashes = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
    return f'<path d="M0 5H22" stroke="{colour}" stroke-width="{width}"{dashes}/>'
