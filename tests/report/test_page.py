import copy
import html
import json
import math
import re
import stat
import unicodedata
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physsm._errors import RunError
from physsm.report.contents import Contents, check_contents
from physsm.report.markup import escape
from physsm.report.page import render_page, write_page
from tests.report.parsed import ParsedPage
from tests.report.sample import sample_contents, with_channels

HOSTILE = [
    "<b>x</b>",
    "</title></style></svg><script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "$\\frac{a}{b}$ & 100 % -- -->",
    "größe 漢字 😀 \u202eright to left",
    "line\nbreak\ttab\x00null\x1bescape\ud800lone",
    "x" * 5000,
    "",
]


def is_allowed(character: str) -> bool:
    try:
        ElementTree.fromstring(f"<a>{html.escape(character)}</a>".encode())
    except (ElementTree.ParseError, UnicodeEncodeError):
        return False
    return unicodedata.category(character) != "Cc"


def rename_everything(contents: Contents, name: str) -> Contents:
    """The contents with `name` for every text that a user can choose."""
    contents = copy.deepcopy(contents)
    contents["title"] = contents["model"] = contents["version"] = contents["created"] = name
    assert contents["physics"]
    contents["physics"]["text"] = name
    for equation in contents["physics"]["equations"]:
        equation["written"] = equation["learned"] = name
    contents["data"]["channels"] = contents["data"]["controls"] = [name]
    contents["data"]["time_label"] = contents["data"]["fingerprint"] = name
    contents["scores"][0]["model"] = name
    for example in contents["examples"]:
        example["series"] = name
        for part in (*example["channels"], *example["unknowns"]):
            part["name"] = part["unit"] = name
        for channel in example["channels"]:
            channel["others"] = {name: channel["mean"]}
    for unknown in contents["physics"]["unknowns"]:
        unknown["name"] = unknown["unit"] = name
    contents["settings"] = {name: name, f"{name}s": [name, {name: name}]}
    contents["warnings"] = [name]
    return contents


@cache
def sample_page() -> str:
    return render_page(sample_contents())


@cache
def page_with_names(name: str) -> str:
    return render_page(rename_everything(sample_contents(), name))


def test_sections_come_in_order():
    parsed = ParsedPage(sample_page())
    assert [attrs["id"] for tag, attrs in parsed.elements if tag == "section"] == [
        *("physics", "forecasts", "unknowns", "scores", "training", "settings", "warnings")
    ]


def test_the_summary_names_model_series_and_best_row():
    page = sample_page()
    summary = "phy_ssm on held-out measurements of 24 series; best extrap MAE: phy_ssm, 0.0987;"
    assert summary in page


def test_every_score_is_in_its_cell():
    contents = sample_contents()
    parsed = ParsedPage(render_page(contents))
    for score in contents["scores"]:
        keys = ("interp_mae", "interp_mse", "extrap_mae", "extrap_mse")
        shown = [float(cell) for cell in parsed.row(score["model"])[1:5]]
        assert shown == pytest.approx([score[key] for key in keys], rel=5e-4)
        coverage = score["coverage"]
        cell = parsed.row(score["model"])[5]
        assert cell == ("–" if coverage is None else f"{100 * coverage:.3g}\u00a0%")


def test_scores_are_sorted_and_the_best_are_bold():
    page = sample_page()
    names = ["phy_ssm", "arx", "repeat_last", "linear_trend"]
    rows = [row[0] for row in ParsedPage(page).cells]
    assert [row for row in rows if row in names] == names
    assert set(re.findall(r"<strong>(.*?)</strong>", page)) == {
        *("0.09870", "0.01634", "0.04680", "0.003980", "88.3\u00a0%")
    }
    assert page.count("class=ours") == 1
    assert "<tr class=ours><th scope=row>phy_ssm</th>" in page


def test_a_row_that_beats_the_model_is_named():
    parsed = ParsedPage(sample_page())
    assert (
        "phy_ssm is not the best in every column: arx has the better interp MAE (0.0468 "
        "against 0.0514) and interp MSE (0.00398 against 0.00421)." in parsed.text
    )


def test_a_model_without_a_score_is_beaten():
    contents = sample_contents()
    contents["scores"][1]["extrap_mae"] = math.nan
    text = ParsedPage(render_page(contents)).text
    assert "0.00421) and extrap MAE (0.2214 against –)" in text
    assert "best extrap MAE: arx" in text


def test_a_model_that_wins_is_said_to():
    contents = sample_contents()
    ours = contents["scores"][1]
    ours["interp_mae"], ours["interp_mse"] = 0.0468, 0.00398  # equal is not beaten
    text = ParsedPage(render_page(contents)).text
    assert "No other model has a better error than phy_ssm in any column." in text
    assert "is not the best" not in text


def test_unknowns_have_their_relative_error():
    parsed = ParsedPage(sample_page())
    assert parsed.row("g")[1:] == [
        *("constant", "−9.764", "−9.910 to −9.610", "1/s²", "−9.810", "0.469\u00a0%")
    ]
    assert parsed.row("k")[5:] == ["–", "–"]


def test_a_constant_on_its_bound_is_named():
    contents = copy.deepcopy(sample_contents())
    assert contents["physics"] is not None
    contents["physics"]["unknowns"][1]["bound"] = 0.0
    assert "c may lie on its bound 0: the intervals of the other" in render_page(contents)
    assert "may lie on its bound" not in render_page(sample_contents())


def test_truth_has_no_column_where_it_is_not_known():
    contents = sample_contents()
    assert contents["physics"]
    for unknown in contents["physics"]["unknowns"]:
        unknown["true"] = None
    assert "True value" not in render_page(contents)


def test_figures_are_labelled_and_their_text_is_text():
    page = sample_page()
    parsed = ParsedPage(page)
    labels = parsed.values("aria-label")
    assert labels == [
        "Measurements and forecast of series s07: theta, omega",
        "Measurements and forecast of series s19: theta, omega",
        "Unknown terms over time in series s07: c",
        "Unknown terms over time in series s19: c",
        "Training loss and validation error; the best step is 800",
    ]
    for label in labels:
        assert f"<title>{label}</title>" in page
    for text in ("theta (rad)", "omega (rad/s)", "time (s)", "← observed", "forecast →"):
        assert f">{text}</text>" in page
    assert "font-family" not in "".join(parsed.values("style"))


@pytest.mark.parametrize("name", ["pendulum", *HOSTILE])
def test_nothing_is_loaded_or_run(name):
    page = page_with_names(name)
    parsed = ParsedPage(page)
    assert not parsed.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not [a for _, attrs in parsed.elements for a in attrs if a.startswith("on")]
    assert not parsed.values("src")
    assert all(value.startswith("#") for value in parsed.values("href"))
    css = page[page.index("<style>") : page.index("</style>")]
    assert "@import" not in css
    assert "url(" not in css
    inline = " ".join(parsed.values("style") + parsed.values("clip-path"))
    assert all(target.startswith("#") for target in re.findall(r"url\((.)", inline))
    if name == "pendulum":
        assert "http://" not in page
        assert "https://" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_they_are(name):
    parsed = ParsedPage(page_with_names(name))
    plain = " ".join(re.sub("[\x00\x1b\ud800]", "\ufffd", name).split())
    assert parsed.text.count(plain) >= 12
    assert "b" not in parsed.tags
    assert any(plain == " ".join(row[0].split()) for row in parsed.cells)


@pytest.mark.parametrize("name", ["pendulum", *HOSTILE])
def test_ids_are_unique_and_links_lead_somewhere(name):
    parsed = ParsedPage(page_with_names(name))
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    used = [v for v in parsed.values("href") if v.startswith("#")]
    used += [v[4:-1] for v in parsed.values("clip-path")]
    assert used
    assert {v.removeprefix("#") for v in used} <= set(ids)


@given(st.text(st.characters(), max_size=30))
def test_any_text_is_shown_as_it_is(text):
    # An XML parser refuses what a page may not hold; what it accepts must not have been changed.
    shown = ElementTree.fromstring(f"<p>{escape(text)}</p>".encode()).text or ""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert len(shown) == len(lines)
    for ours, theirs in zip(shown, lines, strict=True):
        assert ours == theirs or (ours == "\ufffd" and not is_allowed(theirs))


BAD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "null": None, "huge": 10**400}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_numbers_that_are_none_become_dashes(bad):
    contents = json.loads(json.dumps(sample_contents()), parse_float=lambda _: bad)
    parsed = ParsedPage(render_page(check_contents(contents)))
    assert parsed.row("phy_ssm")[1:] == ["–"] * 5
    assert parsed.row("g")[2:4] == ["–", "–"]
    assert not re.search(r"\b(nan|inf|None)\b", parsed.text, re.IGNORECASE)


def test_an_evaluation_of_almost_nothing_has_a_page():
    contents = sample_contents()
    contents["physics"] = contents["training"] = None
    contents["examples"], contents["scores"], contents["settings"] = [], [], {}
    contents["warnings"], contents["data"]["channels"], contents["data"]["controls"] = [], [], []
    text = ParsedPage(render_page(contents)).text
    assert "This model has no physics" in text
    assert "There are no example forecasts." in text
    assert "This run has no scores." in text
    assert "Warnings None." in text


def test_many_channels_are_limited_and_the_page_says_so():
    parsed = ParsedPage(render_page(with_channels(12)))
    assert "6 of 12 channels are shown." in parsed.text
    titles = re.findall(r"channel\d+ \(rad\)", parsed.text)
    assert titles == [f"channel{i} (rad)" for i in range(6)]


def test_all_settings_are_folded_away():
    contents = sample_contents()
    contents["settings"] = {f"setting_{i}": i / 7 for i in range(200)}
    page = render_page(contents)
    parsed = ParsedPage(page)
    folded = page[page.index("<details class=settings>") :]
    assert "<summary>200 settings</summary>" in folded
    for i in range(200):
        assert float(parsed.row(f"setting_{i}")[1]) == i / 7


def test_a_page_is_the_same_each_time():
    assert render_page(sample_contents()) == sample_page()


def test_rendering_leaves_the_contents_as_they_are():
    contents = sample_contents()
    render_page(contents)
    assert contents == sample_contents()


def test_written_page_is_the_rendered_one(tmp_path: Path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_page(sample_contents(), path)
    assert path.read_text(encoding="utf-8") == sample_page()
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("kind", ["no folder", "a folder", "a file as folder"])
def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path, kind):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    path = (
        tmp_path
        / {
            "no folder": "missing/report.html",
            "a folder": "taken",
            "a file as folder": "file/report.html",
        }[kind]
    )
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError, match="the report cannot be written: ") as caught:
        write_page(sample_contents(), path)
    assert str(path) in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_keeps_the_old_page(tmp_path: Path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(RunError, match="No space left on device"):
        write_page(sample_contents(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_page(sample_contents(), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_long_series_do_not_make_a_huge_page():
    contents = sample_contents()
    times = np.linspace(0, 1, 40_000).tolist()
    channel = contents["examples"][0]["channels"][0]
    for key in channel:
        if isinstance(channel[key], list):
            channel[key] = times
    channel["others"] = {"arx": times}
    page = render_page(contents)
    assert len(page) < 1_500_000
    assert "Long series are evenly thinned for the figure." in page


def test_errors_of_channels_have_their_units():
    contents = sample_contents()
    assert "in the units of the table" not in render_page(contents)  # of an older run
    for row in contents["scores"]:
        row["channel_errors"] = {
            "theta": {"mae": row["extrap_mae"] / 2, "rmse": None, "unit": "rad"},
            "<omega>": {"mae": 1.5, "rmse": 2.5, "unit": None},
        }
    rows = ParsedPage(render_page(check_contents(contents))).cells
    heading = rows.index(["Channel", "Unit", "phy_ssm MAE", "phy_ssm RMSE", "arx MAE", "arx RMSE"])
    assert rows[heading + 1] == ["theta", "rad", "0.04935", "–", "0.1107", "–"]
    assert rows[heading + 2] == ["<omega>", "–", "1.500", "2.500", "1.500", "2.500"]
