"""Scores in the terminal."""

import io

from rich.console import Console

from physsm.cli.tables import score_table

POINTS = {"interp_mae": 0.1, "interp_mse": 0.01, "extrap_mae": 0.5, "extrap_mse": 0.3}


def shown(rows) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(score_table(rows))
    return console.export_text().splitlines()


def test_best_forecasts_come_first_and_missing_scores_are_dashes():
    worse = {"model": "b", **POINTS, "extrap_mae": 0.7, "interp_mae": None, "coverage": 0.9}
    lines = shown([worse, {"model": "a", **POINTS, "coverage": None}])
    headings = " ".join(lines[0].split())
    assert headings == "model interp mae interp mse extrap mae extrap mse in 90%"
    assert lines[1].split() == ["a", "0.1000", "0.0100", "0.5000", "0.3000"]
    assert lines[2].split() == ["b", "–", "0.0100", "0.7000", "0.3000", "90%"]


def test_displacements_are_shown_where_there_are_any():
    rows = [
        {"model": "a", **POINTS, "in_ade": 1.0, "in_fde": 2.0, "out_ade": 3.0, "out_fde": 4.0},
        {"model": "b", **POINTS, "extrap_mae": 0.7},
    ]
    lines = shown(rows)
    assert " ".join(lines[0].split()[9:]) == "ADE FDE late ADE late FDE in 90%"
    assert lines[1].split()[5:] == ["1.0000", "2.0000", "3.0000", "4.0000"]
    assert lines[2].split()[5:] == ["–"] * 4
