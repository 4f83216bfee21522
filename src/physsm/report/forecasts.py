"""Sections of figures: forecasts of example series, and unknowns over time."""

from __future__ import annotations

from physsm._palette import line_styles
from physsm.report.contents import Contents, Example
from physsm.report.figure import Drawing, forecast_figure, unknowns_figure
from physsm.report.legend import forecast_legend, unknowns_legend
from physsm.report.markup import escape, share


def forecasts_section(contents: Contents) -> str:
    """Section with one figure for each example."""
    examples = [example for example in contents["examples"] if example["channels"]]
    time_label, coverage = contents["data"]["time_label"], share(contents["coverage_wanted"])
    styles = line_styles(
        model
        for example in examples
        for channel in example["channels"]
        for model in channel["others"]
    )
    figures = [
        _figure(example, forecast_figure(example, time_label, styles, f"forecast-{i}"))
        for i, example in enumerate(examples, start=1)
    ]
    body = "\n".join([forecast_legend(styles, coverage), *figures])
    if not examples:
        body = "<p>There are no example forecasts.</p>"
    return f"<section id=forecasts>\n<h2>Forecasts</h2>\n{body}\n</section>"


def unknowns_section(contents: Contents) -> str:
    """Section with one figure for each example with unknowns; empty if none has unknowns."""
    examples = [example for example in contents["examples"] if example["unknowns"]]
    if not examples:
        return ""
    time_label, coverage = contents["data"]["time_label"], share(contents["coverage_wanted"])
    has_truth = any(u["true"] is not None for example in examples for u in example["unknowns"])
    figures = [
        _figure(example, unknowns_figure(example, time_label, f"unknowns-{i}"))
        for i, example in enumerate(examples, start=1)
    ]
    body = "\n".join([unknowns_legend(coverage, has_truth), *figures])
    return f"<section id=unknowns>\n<h2>Unknown terms over time</h2>\n{body}\n</section>"


def _figure(example: Example, drawing: Drawing) -> str:
    text = escape(" ".join(drawing.notes))
    notes = f"<figcaption>{text}</figcaption>\n" if text else ""
    return (
        f"<h3>Series {escape(example['series'])}</h3>\n"
        f"<figure>\n<div class=scroll>{drawing.svg}</div>\n{notes}</figure>"
    )
