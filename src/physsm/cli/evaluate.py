from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from physsm._errors import ConfigError, DataError
from physsm.cli.options import Debug, Json
from physsm.cli.output import show, show_json, show_plain

if TYPE_CHECKING:
    from physsm.cli.named_data import NamedData


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|NAME[:PROTOCOL]",
            help="Series to score on: a table like that of the fit, or a data set's test part.",
        ),
    ],
    context: Annotated[int | None, typer.Option(help="Rows seen before a target.", min=2)] = None,
    horizon: Annotated[int | None, typer.Option(help="Rows of a target.", min=1)] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to look for a data set's files first.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a run on a table, or on the test part of a data set, beside classical forecasts."""
    from physsm._compile_cache import use_compile_cache
    from physsm.cli.named_data import named_data
    from physsm.cli.tables import score_table

    use_compile_cache()
    named = named_data(table)
    if named is not None:
        if context or horizon:
            raise ConfigError("--context and --horizon are those of the data set's protocol")
        content, words = _on_data_set(run, named, data_dir)
    else:
        content, words = _on_table(run, Path(table), context, horizon)
    if json:
        show_json(content)
        return
    show(score_table(content["rows"]))
    for line in words:
        show_plain(line)


def _on_data_set(
    run: Path, named: NamedData, data_dir: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Scores on the test windows of a split, and what to say of them."""
    from physsm.benchmark.evaluate import beside, score_all
    from physsm.benchmark.run import data_of, load_classical
    from physsm.benchmark.story import plain
    from physsm.benchmark.trial import split_trial
    from physsm.models._base import load

    fitted = load(run)
    asked, known = f"{named.dataset.name}:{named.protocol}", data_of(run)
    if known is not None and known != asked and known.split(":")[0] == named.dataset.name:
        raise ConfigError(
            f"the run was fitted to {known}, whose training part may hold test samples of {asked}: "
            f"fit to that with physsm fit {asked} --out RUN"
        )
    split = named.split(data_dir)
    if fitted.interface.channels != split.test.panel.channels:
        raise DataError(
            f"{named.dataset.name} has other channels than the table of the fit",
            hint=f"fit to it: physsm fit {named.dataset.name}:{named.protocol} --out RUN",
        )
    trial = split_trial(split)
    rows = score_all(beside(fitted, load_classical(run)), trial)
    content = {
        "rows": plain(rows),
        "dataset": named.dataset.name,
        "protocol": named.protocol,
        "context": split.sizes.context,
        "horizon": split.sizes.horizon,
        "test_windows": len(trial.history),
        "unit_of_errors": split.unit_words,
        "notes": list(split.notes),
    }
    words = (
        f"{len(trial.history)} test windows of {named.dataset.name}, {named.protocol} protocol: "
        f"one row ahead (interp), and {split.sizes.horizon} rows ahead after "
        f"{split.sizes.context} (extrap). Errors are in units of {split.unit_words}."
    )
    lines = [words]
    if split.tracks:
        reach = split.in_domain or split.sizes.horizon
        late = "" if reach == split.sizes.horizon else ", the late ones of the rows after these"
        lines.append(f"ADE and FDE, in m, are of positions in the first {reach} rows{late}.")
    return content, [*lines, *split.notes]


def _on_table(
    run: Path, table: Path, context: int | None, horizon: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Scores on windows of a table, and what to say of them."""
    from dataclasses import replace

    from physsm.benchmark.evaluate import evaluate as evaluate_models
    from physsm.benchmark.run import is_table_of, load_classical, run_sizes
    from physsm.benchmark.story import plain
    from physsm.models._base import load

    fitted = load(run)
    sizes = run_sizes(run)
    sizes = replace(sizes, context=context or sizes.context, horizon=horizon or sizes.horizon)
    panel = fitted.check(table)
    rows = evaluate_models(fitted, load_classical(run), panel, sizes)
    trained_on = is_table_of(run, panel)
    content = {
        "rows": plain(rows),
        "context": sizes.context,
        "horizon": sizes.horizon,
        "is_table_of_the_fit": trained_on,
    }
    words = [
        "Errors are in standard deviations of the training data: one row ahead (interp), and "
        f"{sizes.horizon} rows ahead after at most {sizes.context} (extrap)."
    ]
    if trained_on:
        words.append(
            "This is the table of the fit, on most of which the model was trained: errors on other "
            "series will be larger. The run's own report shows the part that was set aside."
        )
    return content, words
