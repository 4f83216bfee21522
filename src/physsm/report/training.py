"""Sections on the training and the settings of a run."""

from __future__ import annotations

from physsm._json import to_json
from physsm.report.contents import Contents, TrainingPart
from physsm.report.figure import training_figure
from physsm.report.markup import NOTHING, Column, count, duration, escape, is_finite, table


def training_section(training: TrainingPart | None) -> str:
    """Section of the losses over the steps and the time of the training."""
    return f"<section id=training>\n<h2>Training</h2>\n{_training_body(training)}\n</section>"


def _training_body(training: TrainingPart | None) -> str:
    if training is None:
        return "<p>This model was not trained step by step.</p>"
    text = f"Trained in {duration(training['seconds'])}"
    text += f", after {duration(training['compile_seconds'])} to compile"
    text += f"; the weights of step {training['best_step']} were used."
    if skipped := training["skipped_steps"]:
        steps = count(skipped, "step was", "steps were")
        text += f" {steps} skipped, because a loss or gradient was not finite."
    if not training["curve"]:
        return f"<p>{text}</p>"
    drawing = training_figure(training, "training-curve")
    return f"<p>{text}</p>\n<figure>\n<div class=scroll>{drawing.svg}</div>\n</figure>"


def settings_section(contents: Contents) -> str:
    """Section of all settings, in a table that opens on a click, and the data fingerprint."""
    settings = contents["settings"]
    rows = [[f"<code>{escape(name)}</code>", escape(_text(v))] for name, v in settings.items()]
    fingerprint = escape(contents["data"]["fingerprint"])
    listed = table([Column("Setting"), Column("Value")], rows) if rows else ""
    return (
        "<section id=settings>\n<h2>Settings</h2>\n"
        f"<details class=settings>\n<summary>{count(len(rows), 'setting')}</summary>\n{listed}\n"
        f"</details>\n<p class=note>Fingerprint of the data: <code>{fingerprint}</code></p>\n"
        "</section>"
    )


def _text(value: object) -> str:
    """JSON value as text."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and not is_finite(value)):
        return NOTHING
    return to_json(value, ensure_ascii=False)
