import copy
import json
from pathlib import Path

import pytest

from physsm._errors import RunError
from physsm.report.contents import check_contents, read_contents
from physsm.report.page import render_page
from tests.report.sample import sample_contents


def at(contents, *keys):
    for key in keys:
        contents = contents[key]
    return contents


def test_a_written_evaluation_is_read(tmp_path: Path):
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(sample_contents()))
    assert read_contents(path) == sample_contents()


def test_keys_of_later_versions_are_let_be():
    contents = {**sample_contents(), "extra": 1}
    assert check_contents(contents) is contents


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_named(tmp_path: Path, share):
    text = json.dumps(sample_contents())
    path = tmp_path / "evaluation.json"
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(RunError, match="truncated; fit again into another folder") as caught:
        read_contents(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"1" * 5000, b"\x89PNG"])
def test_what_is_no_json_is_named(tmp_path: Path, content):
    path = tmp_path / "evaluation.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"not valid JSON"):
        read_contents(path)


def test_a_missing_file_says_what_to_run(tmp_path: Path):
    with pytest.raises(RunError, match="`physsm fit` writes it"):
        read_contents(tmp_path / "evaluation.json")
    with pytest.raises(RunError, match="cannot be read"):
        read_contents(tmp_path)


@pytest.mark.parametrize(
    "content", [[], None, "x", {}, {"format": "1"}, {"format": 0}, {"format": True}]
)
def test_a_foreign_file_is_named(content):
    with pytest.raises(RunError, match="evaluation: this is not an evaluation that physsm wrote"):
        check_contents(content)


def test_a_newer_file_asks_for_an_update():
    with pytest.raises(RunError, match=r"format 2, but .* up to 1; update physsm"):
        check_contents({**sample_contents(), "format": 2})


@pytest.mark.parametrize(
    ("place", "key", "value", "message"),
    [
        ((), "title", 3, "title should be a text"),
        (("data",), "rows", 3.5, "data.rows should be a whole number"),
        (("data",), "rows", True, "data.rows should be a whole number"),
        (("data",), "channels", "theta", "data.channels should be a list"),
        (("data",), "channels", ["a", None], r"data.channels\[1\] should be a text"),
        (("scores", 2), "coverage", "high", r"scores\[2\].coverage should be a number"),
        ((), "training", [], "training should be an object"),
        ((), "settings", None, "settings should be an object"),
        (
            *(("physics", "unknowns", 0), "kind", "odd"),
            r"physics.unknowns\[0\].kind should be one of constant, per series, varying",
        ),
        (
            *(("examples", 0, "channels", 1), "mean", [1.0]),
            r"examples\[0\].channels\[1\].mean has 1 values for 240 times",
        ),
        (
            *(("examples", 0, "channels", 1, "others"), "arx", []),
            r"examples\[0\].channels\[1\].others.arx has 0 values for 240 times",
        ),
        (
            *(("examples", 1, "unknowns", 0), "true", [0.0]),
            r"examples\[1\].unknowns\[0\].true has 1 values for 200 times",
        ),
    ],
)
def test_a_damaged_value_is_named(place, key, value, message):
    contents = sample_contents()
    at(contents, *place)[key] = value
    with pytest.raises(RunError, match=f"{message}; the file is damaged"):
        check_contents(contents)


def objects_within(value, place=()):
    """The places of all objects with fixed keys."""
    if isinstance(value, dict) and place[-1:] not in (("settings",), ("others",)):
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items if isinstance(value, dict | list) else ():
        if isinstance(inner, dict | list):
            yield from objects_within(inner, (*place, key))


def test_each_missing_key_is_named():
    contents = sample_contents()
    contents["examples"] = contents["examples"][:1]
    for part in contents["examples"][0]["channels"] + contents["examples"][0]["unknowns"]:
        for key in [key for key, value in part.items() if isinstance(value, list)]:
            part[key] = []
    assert contents["training"]
    contents["training"]["curve"] = contents["training"]["curve"][:1]
    contents["scores"] = [{"model": "arx"}]  # scores may be missing: see below
    places = [(p, key) for p in objects_within(contents) for key in at(contents, *p)]
    assert len(places) > 55
    for place, key in places:
        if (place, key) == ((), "format"):
            continue
        damaged = copy.deepcopy(contents)
        del at(damaged, *place)[key]
        with pytest.raises(RunError, match=rf"{key} is missing; the file is damaged"):
            check_contents(damaged)


def test_an_evaluation_older_than_a_metric_is_read():
    contents = sample_contents()
    for row in contents["scores"]:
        del row["coverage"]
    assert check_contents(contents) is contents
    assert "coverage" not in render_page(contents).split("<table>")[-1]


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([], "channel_errors should be an object"),
        ({"theta": {"mae": 1.0, "rmse": 1.0}}, "channel_errors.theta.unit is missing"),
        ({"theta": {"mae": "1", "rmse": 1.0, "unit": None}}, "theta.mae should be a number"),
    ],
)
def test_damaged_errors_of_channels_are_named(errors, message):
    contents = sample_contents()
    contents["scores"][1]["channel_errors"] = errors
    with pytest.raises(RunError, match=message):
        check_contents(contents)
