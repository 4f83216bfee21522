from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import Debug, Json
from physsm.cli.output import show, show_json, show_plain


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    table: Annotated[
        Path, typer.Argument(help="Series to score on: a table like that of the fit.")
    ],
    context: Annotated[int | None, typer.Option(help="Rows seen before a target.", min=2)] = None,
    horizon: Annotated[int | None, typer.Option(help="Rows of a target.", min=1)] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a run on a table, beside classical forecasts."""
    from dataclasses import replace

    from physsm._compile_cache import use_compile_cache
    from physsm.benchmark.evaluate import evaluate as evaluate_models
    from physsm.benchmark.run import is_table_of, load_classical, run_sizes
    from physsm.benchmark.story import plain
    from physsm.cli.tables import score_table
    from physsm.models._store import load

    use_compile_cache()
    fitted = load(run)
    sizes = run_sizes(run)
    sizes = replace(sizes, context=context or sizes.context, horizon=horizon or sizes.horizon)
    panel = fitted.check(table)
    rows = plain(evaluate_models(fitted, load_classical(run), panel, sizes))
    trained_on = is_table_of(run, panel)
    if json:
        show_json(
            {
                "rows": rows,
                "context": sizes.context,
                "horizon": sizes.horizon,
                "is_table_of_the_fit": trained_on,
            }
        )
        return
    show(score_table(rows))
    show_plain(
        "Errors are in standard deviations of the training data: one row ahead (interp), and "
        f"{sizes.horizon} rows ahead after at most {sizes.context} (extrap)."
    )
    if trained_on:
        show_plain(
            "This is the table of the fit, on most of which the model was trained: errors on other "
            "series will be larger. The run's own report shows the part that was set aside."
        )
