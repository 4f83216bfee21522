"""Progress of a fit: lines in a file, a bar in a terminal."""

import io

import pytest
from rich.console import Console

from physsm.cli import progress
from physsm.cli.progress import training_bar
from physsm.training.loop import Progress


@pytest.fixture
def console(monkeypatch):
    def make(is_terminal: bool) -> io.StringIO:
        page = io.StringIO()
        monkeypatch.setattr(
            progress,
            "Console",
            lambda stderr: Console(file=page, force_terminal=is_terminal, width=160),
        )
        return page

    return make


def a_fit(report) -> None:
    """Two training steps, of which early stopping leaves out the rest, and two stages."""
    report(Progress(steps=10))
    for step in (1, 2):
        report(Progress(step=step, steps=10, loss=0.5, seconds=1.0))
    report(Progress(step=2, steps=10, loss=0.5, seconds=1.0, is_over=True))
    report.stage("fitting the baselines")
    report.stage("scoring arx")


def test_a_file_has_a_line_for_each_long_stage(console, monkeypatch):
    clock = iter([0.0, 1.0, 1.0, 4.0, 4.0, 5.0, 5.0, 15.0, 15.0])
    monkeypatch.setattr(progress, "perf_counter", lambda: next(clock))
    page = console(is_terminal=False)
    with training_bar("fitting s5") as report:
        a_fit(report)
    lines = page.getvalue().splitlines()
    assert lines[0] == "fitting s5: compiling"
    assert [line.split("  ")[0] for line in lines[1:3]] == ["fitting s5 1/10", "fitting s5 2/10"]
    assert lines[3:] == [
        "fitting s5: fitting the intervals took 3 s",
        "fitting s5: scoring arx took 10 s",
    ]


def test_a_terminal_shows_each_stage_on_the_bar(console):
    page = console(is_terminal=True)
    with training_bar("fitting s5") as report:
        report(Progress(steps=10))
        bar = report._bar  # pyright: ignore[reportAttributeAccessIssue]
        report(Progress(step=1, steps=10, loss=0.5, seconds=1.0))
        assert bar.tasks[0].fields["state"].startswith("1/10  loss 0.5")
        report(Progress(step=2, steps=10, loss=0.5, seconds=1.0, is_over=True))
        assert bar.tasks[0].fields["state"] == "fitting the intervals"
        report.stage("scoring arx")
        assert bar.tasks[0].fields["state"] == "scoring arx"
        assert bar.tasks[0].completed == 10
    assert page.getvalue()
