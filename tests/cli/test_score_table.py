"""Scores in the terminal."""

import io

from rich.console import Console

from physsm.cli.tables import channel_table, score_table

POINTS = {"interp_mae": 0.1, "interp_mse": 0.01, "extrap_mae": 0.5, "extrap_mse": 0.3}


def shown(rows) -> list[list[str]]:
    """The words of each line, with two spaces or more between them."""
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(score_table(rows))
    return [line.split("  ") for line in console.export_text().splitlines()]


def cells(line: list[str]) -> list[str]:
    return [cell.strip() for cell in line if cell.strip()]


def test_best_forecasts_come_first_and_missing_scores_are_dashes():
    worse = {"model": "b", **POINTS, "extrap_mae": 0.7, "interp_mae": None, "coverage": 0.9}
    heading, first, second = shown([worse, {"model": "a", **POINTS, "coverage": None}])
    assert cells(heading) == [
        *("model", "interp MAE", "interp MSE", "extrap MAE", "extrap MSE", "90 % coverage")
    ]
    assert cells(first) == ["a", "0.1000", "0.0100", "0.5000", "0.3000", "–"]
    assert cells(second) == ["b", "–", "0.0100", "0.7000", "0.3000", "90%"]


def test_displacements_have_their_unit_and_decide_the_order():
    displacements = {"in_ade": 1.0, "in_fde": 2.0, "out_ade": 3.0, "out_fde": 4.0}
    rows = [{"model": "b", **POINTS}, {"model": "a", **POINTS, "extrap_mae": 0.7, **displacements}]
    heading, first, second = shown(rows)
    assert cells(heading)[5:] == ["ADE (m)", "FDE (m)", "late ADE (m)", "late FDE (m)"]
    assert cells(first)[0] == "a"
    assert cells(first)[5:] == ["1.0000", "2.0000", "3.0000", "4.0000"]
    assert cells(second)[5:] == ["–"] * 4


def test_the_best_value_of_each_score_is_bold():
    table = score_table(
        [
            {"model": "a", "extrap_mae": 0.5, "coverage": 0.99},
            {"model": "b", "extrap_mae": 0.6, "coverage": 0.88},
        ]
    )
    assert [list(column.cells) for column in table.columns[1:]] == [
        ["[bold]0.5000[/bold]", "0.6000"],
        ["99%", "[bold]88%[/bold]"],  # nearest to 90 %, not the largest
    ]


def with_errors(model, extrap_mae, channels, error):
    errors = {name: {"mae": error, "rmse": 2 * error, "unit": unit} for name, unit in channels}
    return {"model": model, **POINTS, "extrap_mae": extrap_mae, "channel_errors": errors}


def lines(table) -> list[list[str]]:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return [cells(line.split("  ")) for line in console.export_text().splitlines()]


def test_errors_of_channels_stand_beside_the_best_other_model():
    channels = [("x", "cm"), ("[y]", None)]
    rows = [
        with_errors("ours", 0.5, channels, 1.0),
        with_errors("worse", 0.9, channels, 7.0),
        with_errors("best", 0.3, channels, 0.25),
    ]
    heading, first, second = lines(channel_table(rows))
    assert heading[1:] == ["ours MAE", "ours RMSE", "best MAE", "best RMSE"]
    assert first == ["x (cm)", "1", "2", "0.25", "0.5"]
    assert second == ["[y]", "1", "2", "0.25", "0.5"]
    assert lines(channel_table(rows[:1]))[1] == ["x (cm)", "1", "2"]


def test_at_most_eight_channels_are_shown():
    rows = [with_errors("ours", 0.5, [(f"c{i}", None) for i in range(9)], 1.0)]
    heading, *others = lines(channel_table(rows))
    assert "first 8 channels" in heading[0]
    assert len(others) == 8


def test_scores_of_older_runs_have_no_errors_of_channels():
    assert channel_table([{"model": "a", **POINTS}]) is None
