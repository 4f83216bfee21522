"""`physsm fit`: a run on a table or a data set."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from physsm._registry import names_in
from physsm.cli.columns import ChannelColumns, ControlColumns, SeriesColumn, TimeColumn, TimeUnit
from physsm.cli.fit_options import (
    ConfigFile,
    Context,
    Hold,
    Horizon,
    NoRefit,
    Physics,
    Source,
    ValidationTable,
    with_options,
)
from physsm.cli.options import INTERRUPTED, DataDir, Debug, Json, Seed
from physsm.cli.output import show_error, show_json

_MODELS = f"A forecaster: {', '.join(names_in('models'))}."


def fit(
    table: Source,
    out: Annotated[Path, typer.Option("--out", help="The folder of the run.")],
    physics: Physics = None,
    time: TimeColumn = None,
    series: SeriesColumn = None,
    channels: ChannelColumns = None,
    controls: ControlColumns = None,
    time_unit: TimeUnit = None,
    config: ConfigFile = None,
    model: Annotated[str, typer.Option(help=_MODELS)] = "phy_ssm",
    horizon: Horizon = None,
    context: Context = None,
    validation: ValidationTable = None,
    hold: Hold = None,
    no_refit: NoRefit = False,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table or a data set, and compare it with baselines."""
    from physsm._compile_cache import prepare_command
    from physsm.benchmark.configurations import read_settings
    from physsm.benchmark.run import Request, fit_run
    from physsm.cli import fit_summary
    from physsm.cli.fit_source import read_source
    from physsm.cli.progress import training_bar

    columns = {"time": time, "series": series, "channels": channels, "controls": controls}
    source = read_source(table, physics, {**columns, "time-unit": time_unit}, data_dir)
    settings = {} if config is None else read_settings(config, model)
    request = Request(
        model=model,
        settings=with_options(settings, model, no_refit=no_refit, hold=hold),
        system=source.system,
        seed=seed,
        data=source.data_set,
        context=context,
        horizon=horizon,
        validation=None if validation is None else source.read_validation(validation),
    )
    prepare_command()
    began = perf_counter()
    try:
        with training_bar(f"fitting {model}") as report:
            reporting = {"report": report, "stage": report.stage}
            run = fit_run(request, source.data, out, title=source.title, resume=resume, **reporting)
    except KeyboardInterrupt:
        show_error(f"interrupted; the same command with --resume continues the run in {out}")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        return show_json(fit_summary.content(run))
    fit_summary.show_run(run, source, model, seconds=perf_counter() - began)
