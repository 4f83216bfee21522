"""`physsm data`: data sets, their files, and descriptions of tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from physsm.cli.columns import ChannelColumns, SeriesColumn, TimeColumn, TimeUnit
from physsm.cli.options import INTERRUPTED, Debug, Json
from physsm.cli.output import show, show_error, show_json, show_plain

if TYPE_CHECKING:
    from physsm._values import Panel
    from physsm.datasets._dataset import Dataset
    from physsm.datasets._sources import Source

data = typer.Typer(
    name="data",
    help="List, fetch and describe data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder to search first, and to download to."),
]


@data.command("list")
def list_data(data_dir: DataDir = None, json: Json = False, debug: Debug = False) -> None:
    """List the data sets with their licences, and whether their files are present."""
    from physsm._registry import names_in
    from physsm.cli.data_tables import dataset_row, dataset_table

    rows = [dataset_row(_dataset(name), data_dir) for name in names_in("datasets")]
    if json:
        show_json(rows)
        return
    show(dataset_table(rows))
    if any(row["files_here"] < row["files"] for row in rows):
        show_plain("`physsm data get NAME` downloads the missing files.")
    if by_hand := [row["name"] for row in rows if row["files_without_address"]]:
        show_plain(
            f"Files of {', '.join(by_hand)} have no public address: `physsm data get NAME` says "
            "where to obtain them."
        )


@data.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A data set, or one of its sources.")],
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Download the files of a data set. Present files are checked, not fetched again."""
    from physsm._errors import DataError
    from physsm.cli.data_tables import fetched_row
    from physsm.cli.download_bar import download_bar
    from physsm.datasets._fetch import fetch_source

    sources = _sources(name)
    rows: list[dict[str, Any]] = []
    try:
        for source in sources:
            if not json:
                _show_terms(source)
            with download_bar(source.name) as report:
                result = fetch_source(source, data_dir, report=report)
            row = fetched_row(source, result, data_dir)
            rows.append(row)
            if not json:
                _show_result(row)
    except KeyboardInterrupt:
        show_error("interrupted; the same command continues the download")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        show_json(rows)
    elif not sources:
        show_plain(f"{name} is simulated: there is nothing to download.")
    unavailable = [
        f"{row['source']}/{file['path']}"
        for row in rows
        for file in row["without_address"]
        if not file["optional"]
    ]
    if unavailable:
        raise DataError(
            f"{name} is not complete: {', '.join(unavailable)} cannot be downloaded",
            hint="put the file into the folder yourself, name the folder that has it with "
            "--data-dir or PHYSSM_DATA, or set PHYSSM_MIRROR to a server that has it",
        )


@data.command("scene")
def scene(
    name: Annotated[str, typer.Argument(help="A scene of nuScenes, such as scene-0103.")],
    plot: Annotated[Path, typer.Option(help="The picture: .png or .svg.")],
    track: Annotated[
        str | None, typer.Option(help="A target; by default the one that moves most.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw a target of nuScenes from above: context, future, other agents and the map."""
    from physsm.datasets._nuscenes_view import view_scene
    from physsm.report.overview_plot import write_figure
    from physsm.report.scene_plot import plot_scene

    _check_plot(plot, name)
    view = view_scene(name, track, data_dir)
    figure = plot_scene(
        view.context, view.future, others=view.others, map_lines=view.map_lines, title=view.title
    )
    write_figure(figure, plot)
    if json:
        show_json({"title": view.title, "plot": str(plot), "map_lines": len(view.map_lines)})
        return
    show_plain(f"{view.title}: the plot is in {plot}.")
    if not view.map_lines:
        show_plain("The files of the map are missing, or do not cover this scene.")


@data.command("describe")
def describe(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME[:PROTOCOL]|TABLE", help="A data set, or a CSV or Parquet file."
        ),
    ],
    time: TimeColumn = None,
    series: SeriesColumn = None,
    channels: ChannelColumns = None,
    controls: Annotated[str | None, typer.Option(help="Control columns: a,b.")] = None,
    time_unit: TimeUnit = None,
    data_dir: DataDir = None,
    plot: Annotated[Path | None, typer.Option(help="Draw some series: .png or .svg.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Describe a table or a data set: times, gaps, missing values, ranges."""
    from rich.console import Console

    from physsm.benchmark.named_data import named_data, units_of
    from physsm.cli.columns import refuse_columns
    from physsm.cli.data_tables import describe_panel, describe_split

    if plot is not None:
        _check_plot(plot, what)
    columns = {"time": time, "series": series, "channels": channels, "controls": controls}
    columns["time-unit"] = time_unit
    if (named := named_data(what)) is not None:
        name, protocol = named.dataset.name, named.protocol
        refuse_columns(columns, name)
        with Console(stderr=True).status(f"making the {protocol} split of {name}"):
            split = named.split(data_dir)
            content, page = describe_split(named.dataset, protocol, split)
        panel, units = split.train.panel, units_of(named.dataset)
        title = f"{name}, {protocol} protocol: training part"
    else:
        panel, units = _read(what, columns), {}
        content, page = describe_panel(panel)
        title = Path(what).name
    if plot is not None:
        from physsm.report.overview_plot import write_overview

        write_overview(panel, plot, title=title, units=units)
        content["plot"] = str(plot)
    if json:
        show_json(content)
        return
    show(page)
    show_plain(
        f"The plot is in {plot}." if plot is not None else "--plot FILE.png draws some series."
    )


def _dataset(name: str) -> Dataset:
    from physsm._registry import find

    return find("datasets", name, "DATASET")


def _sources(name: str) -> list[Source]:
    """The sources of a data set, or the one of this name."""
    from physsm._errors import ConfigError, did_you_mean
    from physsm._registry import names_in
    from physsm.datasets._sources import read_source, source_names

    datasets, sources = names_in("datasets"), source_names()
    if name in datasets:
        return [read_source(source) for source in _dataset(name).sources]
    if name in sources:
        return [read_source(name)]
    known = [*datasets, *(source for source in sources if source not in datasets)]
    hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
    raise ConfigError(f"there is no data set or source called {name!r}: {hint}")


def _read(what: str, columns: dict[str, str | None]) -> Panel:
    from physsm._errors import ConfigError, did_you_mean
    from physsm._registry import names_in
    from physsm.cli.columns import read_columns

    path = Path(what)
    if not path.suffix and not path.exists():
        known = names_in("datasets")
        hint = did_you_mean(what.partition(":")[0], known) or f"data sets are {', '.join(known)}"
        raise ConfigError(f"there is no data set and no file called {what!r}: {hint}")
    return read_columns(path, columns)


def _check_plot(plot: Path, what: str) -> None:
    """Refuse a plot that cannot be written, before anything is read."""
    from physsm._errors import ConfigError
    from physsm.cli.paths import keep_inputs

    keep_inputs(plot, Path(what))
    if plot.suffix.lower() not in (".png", ".svg"):
        raise ConfigError(f"a plot cannot be written to {plot}: choose .png or .svg")


def _show_terms(source: Source) -> None:
    show_plain(f"{source.name}: {source.title}")
    show_plain(f"  licence  {source.licence}")
    if source.terms:
        show_plain(f"  terms    {source.terms}")
    show_plain(f"  from     {source.origin}")
    show_plain(f"  cite     {source.citation}")


def _show_result(row: dict[str, Any]) -> None:
    before = f"{row['here_before']} present before"
    if row["folders_before"]:
        before += f", in {', '.join(row['folders_before'])}"
    if row["fetched"]:
        files = "1 file" if row["fetched"] == 1 else f"{row['fetched']} files"
        show_plain(f"  {files} fetched into {row['folder']}, {before}")
    else:
        show_plain(f"  nothing fetched, {before}")
    for file in row["without_address"]:
        needed = "no protocol needs it" if file["optional"] else "needed"
        show_plain(f"  no public address ({needed}): {file['path']}. {file['how']}")
