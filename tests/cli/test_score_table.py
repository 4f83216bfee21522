"""Scores in the terminal."""

import io

from rich.console import Console

from physsm.cli.tables import score_table

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
