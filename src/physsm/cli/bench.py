"""`physsm bench`: tables of models on data sets, from jobs to pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from physsm.cli.options import INTERRUPTED, DataDir, Debug, Json
from physsm.cli.output import show, show_error, show_json, show_plain

if TYPE_CHECKING:
    from physsm.benchmark.store import Store

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
        str | None, typer.Argument(help="A table, to list its rows and their parameter counts.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tables, or the rows of one with their parameter counts."""
    from physsm.benchmark.experiment import experiment_names, read_experiment
    from physsm.cli.bench_table import experiment_grid

    if table is not None:
        _list_rows(table, json)
        return
    experiments = [
        {
            "name": name,
            "title": experiment.title,
            "data": [column.name for column in experiment.data],
            "models": [row.name for row in experiment.row],
            "seeds": experiment.seeds,
        }
        for name, experiment in map(read_experiment, experiment_names())
    ]
    if json:
        show_json(experiments)
        return
    show(experiment_grid(experiments))
    show_plain("physsm bench list TABLE shows its rows and their parameter counts.")


def _list_rows(table: str, json: bool) -> None:
    from physsm.benchmark.experiment import read_experiment
    from physsm.benchmark.parameters import row_parameters
    from physsm.cli.bench_table import parameter_grid

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
    show(parameter_grid(rows))
    counts = [row["parameters"] for row in rows if row["parameters"] is not None]
    if counts:
        excess = max(counts) / min(counts) - 1
        show_plain(f"The largest network has {excess:.1%} more parameters than the smallest.")


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
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the jobs that have no result yet; an interrupted one continues."""
    from physsm.benchmark.runner import Outcome, run_jobs
    from physsm.benchmark.store import Store
    from physsm.cli.bench_jobs import chosen_jobs
    from physsm.cli.bench_progress import watching

    name, asked = chosen_jobs(table, budget, seeds, models, data)
    store = Store(results / name)
    outcomes: list[Outcome] = []
    try:
        with watching(len(asked)) as (started, ended, report):
            outcomes = run_jobs(
                asked, store, data_dir=data_dir, started=started, ended=ended, report=report
            )
    except KeyboardInterrupt:
        show_error("interrupted; the same command continues")
        raise typer.Exit(INTERRUPTED) from None
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if json:
        show_json(
            [
                {"unit": outcome.job.name, "state": outcome.state, "error": outcome.error}
                for outcome in outcomes
            ]
        )
    else:
        done = sum(outcome.state == "done" for outcome in outcomes)
        known = sum(outcome.state == "known" for outcome in outcomes)
        show_plain(f"{done} run, {known} known before, {len(failed)} failed; see {store.folder}")
    for outcome in failed:
        show_error(f"{outcome.job.name}: {outcome.error}")
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
    from physsm.cli.bench_table import sheet_grid

    if json + markdown + latex > 1:
        raise ConfigError("choose one of --json, --markdown and --latex")
    name, experiment = read_experiment(table)
    store = Store(results / name)
    found, others = store.results(name, experiment)
    if others:
        show_error(f"{len(others)} results of other settings are left out: {others[0]} ...", "note")
    for budget in sorted({result["budget"] for result in found}):
        _show_missing(table, budget, store)
    sheets = summarise(found, experiment.published)
    if not sheets:
        raise RunError(
            f"{store.folder} has no results: physsm bench run {table} runs the jobs, and --results "
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
            show(sheet_grid(sheet), may_cut=False)
            show_plain(explanation(sheet))


def _show_missing(table: str, budget: str, store: Store) -> None:
    """Print how many jobs of a table have no result in this budget."""
    from physsm.cli.bench_jobs import chosen_jobs

    _, asked = chosen_jobs(table, budget, None, None, None)
    missing = [job.name for job in asked if not store.has(job)]
    command = table if budget == "cpu" else f"{table} --budget {budget}"
    if missing:
        show_error(
            f"{len(missing)} of {len(asked)} jobs of this table have no result yet, such as "
            f"{missing[0]}: physsm bench run {command} runs them",
            "note",
        )
