"""`physsm evaluate`: scores of a run on a table or on the test part of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import DataDir, Debug, Json
from physsm.cli.output import show_json, show_plain


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|NAME[:PROTOCOL]",
            help="Series to score on: a table like that of the fit, or a data set's test part.",
        ),
    ],
    context: Annotated[
        int | None, typer.Option(help="Time steps of context before each target.", min=2)
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Time steps of each target.", min=1)] = None,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a run and its baselines on a table, or on the test part of a data set."""
    from physsm._compile_cache import prepare_command
    from physsm._errors import ConfigError
    from physsm.benchmark.evaluate_run import score_on_data_set, score_on_table
    from physsm.benchmark.named_data import named_data
    from physsm.cli import evaluation_summary
    from physsm.cli.tables import show_scores

    prepare_command()
    if (named := named_data(table)) is None:
        on_table = score_on_table(run, Path(table), context=context, horizon=horizon)
        content = evaluation_summary.table_content(on_table)
        sentences = evaluation_summary.table_sentences(on_table)
    else:
        if context or horizon:
            raise ConfigError("--context and --horizon are set by the data set's protocol")
        on_data_set = score_on_data_set(run, named, data_dir)
        content = evaluation_summary.data_set_content(named, on_data_set)
        sentences = evaluation_summary.data_set_sentences(named, on_data_set)
    if json:
        show_json(content)
        return
    for warning in content["warnings"]:
        show_plain(f"Warning: {warning}")
    show_scores(content["rows"])
    for sentence in sentences:
        show_plain(sentence)
