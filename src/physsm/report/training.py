"""The section about the training."""

from __future__ import annotations

from physsm.report.contents import TrainingPart
from physsm.report.figure import training_figure
from physsm.report.markup import count, duration


def training_section(training: TrainingPart | None) -> str:
    """The losses over the steps, and what the training took."""
    return f"<section id=training>\n<h2>Training</h2>\n{_body(training)}\n</section>"


def _body(training: TrainingPart | None) -> str:
    if training is None:
        return "<p>This model was not trained step by step.</p>"
    text = f"Trained in {duration(training['seconds'])}"
    text += f", after {duration(training['compile_seconds'])} to compile"
    text += f"; the weights of step {training['best_step']} were kept."
    if skipped := training["skipped_steps"]:
        steps = count(skipped, "step was", "steps were")
        text += f" {steps} skipped, because a loss or gradient was not finite."
    if not training["curve"]:
        return f"<p>{text}</p>"
    drawing = training_figure(training, "training-curve")
    return f"<p>{text}</p>\n<figure>\n<div class=scroll>{drawing.svg}</div>\n</figure>"
