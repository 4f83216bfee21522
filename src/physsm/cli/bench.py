"""`physsm bench`: tables of models on data sets, from units of work to pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import INTERRUPTED, Debug, Json
from physsm.cli.output import show, show_error, show_json, show_plain

bench = typer.Typer(
    name="bench",
    help="Compare models on data sets, under the paper's protocol and a strict one.",
    no_args_is_help=True,
)

Table = Annotated[str, typer.Argument(help="A table's name (physsm bench list) or a TOML file.")]
Results = Annotated[Path, typer.Option(help="The folder of all results.")]
FAILED = 1


@bench.command("list")
def list_tables(
    table: Annotated[
        str | None, typer.Argument(help="A table, to list its rows and their parameters.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tables, or the rows of one with the number of their parameters."""
    from rich.table import Table as Grid

    from physsm.benchmark.experiment import experiment_names, read_experiment

    if table is not None:
        _list_rows(table, json)
        return
    rows = []
    for name in experiment_names():
        _, experiment = read_experiment(name)
        rows.append(
            {
                "name": name,
                "title": experiment.title,
                "data": [column.name for column in experiment.data],
                "models": [row.name for row in experiment.row],
                "seeds": experiment.seeds,
            }
        )
    if json:
        show_json(rows)
        return
    grid = Grid(box=None, header_style="bold")
    for head in ("table", "title", "data", "models"):
        grid.add_column(head, no_wrap=head == "table")
    for row in rows:
        grid.add_row(row["name"], row["title"], ", ".join(row["data"]), ", ".join(row["models"]))
    show(grid)
    show_plain("physsm bench list TABLE shows its rows and the number of their parameters.")


def _list_rows(table: str, json: bool) -> None:
    from rich.table import Table as Grid

    from physsm.benchmark.experiment import read_experiment
    from physsm.benchmark.parameters import row_parameters

    _, experiment = read_experiment(table)
    rows = [
        {
            "row": row.name,
            "model": row.model,
            "configuration": row.configuration,
            "parameters": row_parameters(row),
        }
        for row in experiment.row
    ]
    if json:
        show_json(rows)
        return
    grid = Grid(box=None, header_style="bold")
    for head in ("row", "model", "configuration", "parameters"):
        grid.add_column(head, no_wrap=True, justify="right" if head == "parameters" else "left")
    for row in rows:
        number = row["parameters"]
        shown = "" if number is None else f"{number:,}"
        grid.add_row(row["row"], row["model"], row["configuration"] or "", shown)
    show(grid)
    numbers = [row["parameters"] for row in rows if row["parameters"] is not None]
    if numbers:
        largest = max(numbers) / min(numbers) - 1
        show_plain(f"The largest of these has {largest:.1%} more parameters than the smallest.")


@bench.command()
def run(
    table: Table,
    budget: Annotated[str, typer.Option(help="smoke, cpu or paper.")] = "cpu",
    seeds: Annotated[
        int | None, typer.Option(help="Seeds 0, 1, ...; by default those of the table.", min=1)
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Rows to run, separated by commas; all by default.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Columns to run, such as drone:strict; all by default.")
    ] = None,
    results: Results = Path("results"),
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to look for data files first.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run what has no result yet. What was stopped goes on where it was."""
    from physsm.benchmark.runner import Outcome, run_units
    from physsm.benchmark.store import Store
    from physsm.cli.bench_progress import watching
    from physsm.cli.bench_units import chosen_units

    name, asked = chosen_units(table, budget, seeds, models, data)
    store = Store(results / name)
    outcomes: list[Outcome] = []
    try:
        with watching(len(asked)) as (started, ended, report):
            outcomes = run_units(
                asked, store, data_dir=data_dir, started=started, ended=ended, report=report
            )
    except KeyboardInterrupt:
        show_error("interrupted; the same command goes on where it was")
        raise typer.Exit(INTERRUPTED) from None
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if json:
        show_json(
            [
                {"unit": outcome.unit.name, "state": outcome.state, "error": outcome.error}
                for outcome in outcomes
            ]
        )
    else:
        done = sum(outcome.state == "done" for outcome in outcomes)
        known = sum(outcome.state == "known" for outcome in outcomes)
        show_plain(f"{done} run, {known} known before, {len(failed)} failed; see {store.folder}")
    for outcome in failed:
        show_error(f"{outcome.unit.name}: {outcome.error}")
    if failed:
        raise typer.Exit(FAILED)


@bench.command("table")
def show_table(
    table: Table,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
    results: Results = Path("results"),
    debug: Debug = False,
) -> None:
    """Show the results of a table: means over seeds, best first, the best of each column bold."""
    from dataclasses import asdict

    from physsm._errors import ConfigError, RunError
    from physsm.benchmark.experiment import read_experiment
    from physsm.benchmark.pages import explanation, title, to_latex, to_markdown
    from physsm.benchmark.store import Store
    from physsm.benchmark.summary import summarise
    from physsm.cli.bench_table import grid_of
    from physsm.cli.bench_units import chosen_units

    if json + markdown + latex > 1:
        raise ConfigError("choose one of --json, --markdown and --latex")
    name, experiment = read_experiment(table)
    store = Store(results / name)
    found, others = store.results(name, experiment)
    if others:
        show_error(f"{len(others)} results of other settings are left out: {others[0]} ...", "note")
    for budget in sorted({result["budget"] for result in found}):
        _, asked = chosen_units(table, budget, None, None, None)
        lacking = [unit.name for unit in asked if not store.has(unit)]
        how = table if budget == "cpu" else f"{table} --budget {budget}"
        if lacking:
            show_error(
                f"{len(lacking)} of {len(asked)} units of this table have no result yet, such as "
                f"{lacking[0]}: physsm bench run {how} makes them",
                "note",
            )
    sheets = summarise(found, experiment.published)
    if not sheets:
        raise RunError(
            f"{store.folder} has no results: physsm bench run {table} makes them, and --results "
            "names another folder"
        )
    if json:
        show_json([asdict(sheet) for sheet in sheets])
    elif markdown:
        show_plain(to_markdown(sheets).rstrip("\n"))
    elif latex:
        show_plain(to_latex(sheets).rstrip("\n"))
    else:
        for sheet in sheets:
            show_plain(f"\n{title(sheet)}")
            show(grid_of(sheet), may_cut=False)
            show_plain(explanation(sheet))
