"""Pelts of lynx and hare: the table, its faults, and what the page shows."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets.lynx_hare import DATASET, read_pelts

HEADER = "# from somewhere\n# on some day\nYear, Lynx, Hare\n"
ROWS = [f"{1900 + i}, {4 + i}.5, {30 + 2 * i}.0" for i in range(21)]
PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def write(folder, rows=ROWS, header=HEADER):
    path = folder / "lynx_hare" / "hudson-bay-lynx-hare.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(header + "\n".join(rows))
    return path


def test_comments_are_skipped_and_channels_are_those_of_the_system(tmp_path):
    panel = read_pelts(write(tmp_path))
    assert panel.channels == ("hare", "lynx")
    np.testing.assert_array_equal(panel.times, [np.arange(1900, 1921)])
    np.testing.assert_array_equal(panel.values[0, :, 0], 30 + 2 * np.arange(21))
    np.testing.assert_array_equal(panel.values[0, :, 1], 4.5 + np.arange(21))


def test_the_years_of_the_parts(tmp_path):
    write(tmp_path)
    split = DATASET.split("strict", data_dir=tmp_path)
    parts = (split.train, split.validation, split.test)
    years = [part.panel.times[0, [0, -1]].tolist() for part in parts]
    assert years == [[1900, 1910], [1911, 1915], [1916, 1920]]
    assert [part.windows.number for part in parts] == [7, 1, 1]
    assert [part.panel.ids for part in parts] == [("1900-1910",), ("1911-1915",), ("1916-1920",)]
    np.testing.assert_allclose(split.unit, split.train.panel.values[0].std(0))
    np.testing.assert_array_equal(split.test.panel.values[0, :, 0], 30 + 2 * np.arange(16, 21))


@pytest.mark.parametrize(
    ("row", "text", "message"),
    [
        (5, "1905, 4.0, many", 'row 9, column Hare: " many" is not a number'),
        (5, "1905, 4.0", "row 9: this row has 2 cells, the header has 3 cells"),
        (5, "1905, , 3.0", "row 9, column Lynx: a number of pelts must be positive"),
        (5, "1905, 4.0, -3.0", "row 9, column Hare: a number of pelts must be positive"),
        (5, "1904, 4.0, 3.0", "row 9, column Year: the time"),
        (20, "1921, 4.0, 3.0", "the years must be 1900 to 1920, each once"),
    ],
)
def test_faults_are_named_with_their_row(tmp_path, row, text, message):
    path = write(tmp_path, [*ROWS[:row], text, *ROWS[row + 1 :]])
    with pytest.raises(DataError, match=message) as caught:
        read_pelts(path)
    assert str(path) in str(caught.value)


def test_wrong_files(tmp_path):
    for rows, header in ((ROWS[:-1], HEADER), (ROWS, "Year, Lynx, Fox\n"), ([], HEADER), ([], "")):
        with pytest.raises(DataError):
            read_pelts(write(tmp_path, rows, header))
    with pytest.raises(DataError, match="cannot be read"):
        read_pelts(tmp_path)


def test_damage_is_refused_or_changes_numbers(tmp_path):
    path = write(tmp_path)
    whole = path.read_bytes()
    last_row = len(whole) - len(ROWS[-1])
    for length in range(0, last_row, 3):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_pelts(path)
    refused = 0
    for place in range(0, 8 * len(whole), 19):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(content))
        try:
            panel = read_pelts(path)
        except DataError:
            refused += 1
            continue
        assert panel.values.shape == (1, 21, 2)
        assert (panel.values > 0).all()
    assert refused > 50


def real_table() -> Path:
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    path = folder / "lynx_hare" / "hudson-bay-lynx-hare.csv"
    if not path.exists():
        pytest.skip("the table is not there: set PHYSSM_DATA to its folder")
    return path


def test_the_real_table():
    panel = read_pelts(real_table())
    np.testing.assert_array_equal(panel.values[0, [0, -1]], [[30.0, 4.0], [24.7, 8.6]])
    assert panel.times[0, panel.values[0].argmax(0)].tolist() == [1903, 1904]


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    shutil.copy(real_table(), tmp_path)
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").split("## Lynx and hare")[1]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    scope: dict = {}
    exec(code, scope)
    np.testing.assert_array_equal(scope["panel"].values, read_pelts(real_table()).values)
