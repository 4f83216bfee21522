"""Output of `physsm fit`: the run as JSON content, or as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from physsm.benchmark.run import Run
from physsm.cli.fit_source import Source
from physsm.cli.output import show, show_plain
from physsm.cli.tables import show_scores, stage_table, unknown_table
from physsm.report.physics import interval_note

_SHOWN_NAMES = 8


def content(run: Run) -> dict[str, Any]:
    """Scores, unknowns, remarks and training of a run as plain values."""
    return {
        "run": str(run.folder),
        "question": run.question,
        "warnings": run.warnings,
        "left_out": run.left_out,
        "rows": run.scores,
        "unknowns": _unknowns(run),
        "remarks": list(run.model.remarks()),
        "stages": run.report_data.get("stages", []),
        "training": run.report_data["training"],
    }


def show_run(run: Run, source: Source, model: str, *, seconds: float) -> None:
    """Print warnings, scores, unknowns and remarks, then how to read them."""
    for warning in run.warnings:
        show_plain(f"Warning: {warning}")
    if not run.is_new:
        show_plain(f"The run in {run.folder} is already finished; nothing was trained.")
    if run.question is not None:
        show_plain(run.question["sentence"])
    show_scores(run.scores)
    if stages := run.report_data.get("stages"):
        show(stage_table(stages))
    if unknowns := _unknowns(run):
        show(unknown_table(unknowns))
        show_plain(interval_note(unknowns))
    for sentence in (*run.left_out, *run.model.remarks(), *_notes(run, source, model)):
        show_plain(sentence)
    interface, sizes = run.model.interface, run.sizes
    show_plain(
        f"Channels: {_listed(interface.channels)}; controls: {_listed(interface.controls)}. "
        f"Errors are in {source.unit_of_errors}: one time step ahead (interp), and over a horizon "
        f"of {sizes.horizon} time steps after a context of at most {sizes.context} (extrap). They "
        "are measured on the validation part, which also served to choose settings or weights and "
        "to calibrate the intervals. The best extrapolation comes first. "
        f"It took {seconds:.0f} s. The run is in {run.folder}."
    )


def _unknowns(run: Run) -> list[Any]:
    return (run.report_data["physics"] or {}).get("unknowns", [])


def _notes(run: Run, source: Source, model: str) -> list[str]:
    """Sentences on skipped steps, and on the physics that was used."""
    notes = []
    if skipped := (run.report_data["training"] or {}).get("skipped_steps", 0):
        notes.append(f"{skipped} training steps were skipped: their loss was not a finite number.")
    uses_physics = run.model.system is not None
    if uses_physics and source.data_set is not None:
        notes.append(f"The physics is that of {source.physics}.")
    if not uses_physics and source.system is not None:
        notes.append(f"{model} uses no physics: it takes only the names of controls from the text.")
    return notes


def _listed(names: Sequence[str]) -> str:
    """Names of columns, at most the first few."""
    shown = ", ".join(names[:_SHOWN_NAMES]) or "none"
    return f"{shown}, ..." if len(names) > _SHOWN_NAMES else shown
