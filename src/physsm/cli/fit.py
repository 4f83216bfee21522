from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from physsm._registry import names_in
from physsm.cli.options import INTERRUPTED, Debug, Json
from physsm.cli.output import show, show_error, show_json, show_plain


def fit(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|NAME[:PROTOCOL]",
            help="A CSV or Parquet file, one row per time; or a data set (physsm data list).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder of the run.")],
    physics: Annotated[
        str | None,
        typer.Option("--physics", metavar="NAME|FILE", help="A built-in system or a .phys file."),
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column of times.")] = None,
    series: Annotated[str | None, typer.Option(help="The column that names the series.")] = None,
    channels: Annotated[str | None, typer.Option(help="Measured columns: a,b.")] = None,
    controls: Annotated[
        str | None, typer.Option(help="Control columns; by default those of the physics.")
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="Of datetimes: s (default), min, h or d.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with settings, or a named configuration, such as drone."),
    ] = None,
    model: Annotated[
        str, typer.Option(help=f"A forecaster: {', '.join(names_in('models'))}.")
    ] = "phy_ssm",
    seed: Annotated[int, typer.Option(help="For everything random.", min=0, max=2**31 - 1)] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to look for a data set's files first.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table, and compare it with classical forecasts."""
    from physsm._compile_cache import use_compile_cache
    from physsm.benchmark.run import Request, fit_run
    from physsm.cli.named_data import column_names, named_data, refuse_columns
    from physsm.cli.progress import training_bar
    from physsm.cli.tables import score_table, unknown_table
    from physsm.data.table import read_table
    from physsm.physics.read import find_structure
    from physsm.report.physics import interval_note

    split = None
    if (named := named_data(table)) is not None:
        columns = {"time": time, "series": series, "channels": channels, "controls": controls}
        refuse_columns({**columns, "time-unit": time_unit}, table)
        split = named.split(data_dir)
        panel = split.train.panel
        physics = physics or named.dataset.system
        structure = find_structure(physics)
    else:
        structure = None if physics is None else find_structure(physics)
        wanted_controls = column_names(controls)
        if wanted_controls is None and structure is not None:
            wanted_controls = list(structure.controls)
        panel = read_table(
            Path(table),
            time=time,
            series=series,
            channels=column_names(channels),
            controls=wanted_controls,
            time_unit=time_unit or "s",  # type: ignore[arg-type]
        )
    text = None if structure is None else structure.text
    name = None if named is None else f"{named.dataset.name}:{named.protocol}"
    request = Request(model, _settings(config, model), text, seed, name)
    use_compile_cache()
    began = perf_counter()
    try:
        with training_bar(f"fitting {model}") as report:
            run = fit_run(
                request,
                panel,
                out,
                split=split,
                title=table if named is not None else Path(table).stem,
                resume=resume,
                report=report,
            )
    except KeyboardInterrupt:
        show_error(f"interrupted; the same command with --resume continues the run in {out}")
        raise typer.Exit(INTERRUPTED) from None
    unknowns = (run.story["physics"] or {}).get("unknowns", [])
    remarks = list(run.model.remarks())
    if json:
        told = {"run": str(out), "rows": run.scores, "unknowns": unknowns, "remarks": remarks}
        show_json({**told, "training": run.story["training"]})
        return
    if not run.is_new:
        show_plain(f"The run in {out} was finished already; nothing was trained.")
    show(score_table(run.scores))
    if unknowns:
        show(unknown_table(unknowns))
        show_plain(interval_note(unknowns))
    for remark in remarks:
        show_plain(remark)
    skipped = (run.story["training"] or {}).get("skipped_steps", 0)
    if skipped:
        show_plain(f"{skipped} training steps were skipped: their loss was not a finite number.")
    if named is not None and run.model.system is not None:
        show_plain(f"The physics is that of {physics}.")
    if text is not None and run.model.system is None:
        show_plain(f"{model} uses no physics: of the text it knows the names of the controls.")
    interface = run.model.interface
    columns = f"Channels: {_some(interface.channels)}; controls: {_some(interface.controls)}."
    unit = "standard deviations" if split is None else f"units of {split.unit_words}"
    show_plain(
        f"{columns} Errors are in {unit}, one row ahead (interp) and {run.sizes.horizon} rows "
        f"ahead after at most {run.sizes.context} (extrap), on the part set aside for validation, "
        "which also chose the weights and set the intervals. The best extrapolation comes first. "
        f"It took {perf_counter() - began:.0f} s. The run is in {out}."
    )


def _some(names: Sequence[str]) -> str:
    """Names of columns, the first of many."""
    return (", ".join(names[:8]) or "none") + (", ..." if len(names) > 8 else "")


def _settings(config: Path | None, model: str) -> dict[str, Any]:
    import tomllib

    from physsm._errors import ConfigError
    from physsm.benchmark.configurations import configuration, configuration_names

    if config is None:
        return {}
    if str(config) in configuration_names() and not config.exists():
        return configuration(str(config), model)
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        named = ", ".join(configuration_names())
        raise ConfigError(
            f"there is no file {config}, and no configuration of that name: there are {named}"
        ) from error
    except OSError as error:
        raise ConfigError(f"{config} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not TOML: {error}") from error
