"""`physsm demo`: the whole method on a simulated pendulum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import Debug, Json, Seed
from physsm.cli.output import show, show_json, show_plain


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for report and model.")] = Path(
        "demo_run"
    ),
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Simulate a pendulum, fit Phy-SSM, compare it, learn the unknowns, write a report."""
    import contextlib
    import time

    began = time.perf_counter()
    from physsm._compile_cache import prepare_command
    from physsm.benchmark.demo import SIZES, run_demo
    from physsm.cli.progress import training_bar
    from physsm.cli.tables import show_scores, unknown_table
    from physsm.metrics._metric import shown_scores
    from physsm.report.page import write_page
    from physsm.report.physics import interval_note
    from physsm.training.checkpoint import make_folder, write_json

    make_folder(out)
    prepare_command()
    with contextlib.ExitStack() as bars:
        result = run_demo(
            seed, out, lambda name: bars.enter_context(training_bar(f"fitting {name}"))
        )
    write_json(out / "evaluation.json", result.report_data)
    page = out / "report.html"
    write_page(result.report_data, page)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    if json:
        scores = shown_scores("everywhere", set(result.scores[0]))
        keys = ("model", *(score.key for score in scores))
        show_json(
            {
                "rows": [{key: row[key] for key in keys} for row in result.scores],
                "unknowns": result.unknowns,
                "seconds": seconds,
                "report": str(page),
            }
        )
        return
    show_plain(
        "Errors in standard deviations: one time step ahead (interp), and over a horizon of "
        f"{SIZES.horizon} time steps (extrap)"
    )
    show_scores(result.scores)
    show_plain("")
    show(unknown_table(result.unknowns))
    show_plain(interval_note(result.unknowns))  # type: ignore[arg-type]
    show_plain("")
    show_plain(f"{seconds:.0f} s. The report with all plots: {page}")
