"""What docs/data.md shows is true."""

import re
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.data.table import read_table

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


def test_the_example_can_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pendulums.csv").write_text(block("csv"))
    scope: dict = {}
    exec(block("python"), scope)
    panel = scope["panel"]
    assert panel.ids == ("a", "b")
    assert panel.channels == ("theta", "omega")
    np.testing.assert_array_equal(panel.times[0], [0, 0.1, 0.25])
    np.testing.assert_array_equal(panel.observed[0], [[True, True], [True, False], [False, True]])


def test_the_shown_message_is_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pendulums.csv").write_text("series,time,x\na,0,1\na,0.25,1\na,0.1,1\nb,0,1\nb,1,1\n")
    with pytest.raises(DataError) as caught:
        read_table("pendulums.csv")
    assert f"{caught.value}\n" == block("text")


def test_every_shown_datetime_can_be_read(tmp_path):
    shown = re.findall(r"`(2024-[^`]+)`", PAGE)
    assert len(shown) == 3
    for text in shown:
        path = tmp_path / "table.csv"
        path.write_text(f"time,x\n2024-01-01,1\n{text},2\n")
        read_table(path)
