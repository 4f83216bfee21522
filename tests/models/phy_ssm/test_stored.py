"""Numbers in a stored model that cannot be: refused when it is read."""

import json

import numpy as np
import pytest

import physsm
from physsm._errors import RunError
from tests.models.phy_ssm.make import random_panel, untrained


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    text, panel = "x' = -?k*x\nobserve x\nunknown ?k constant", random_panel(["x"])
    untrained(text, panel).save(folder / "whole")
    return folder


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("scales", "table", "time_scale"), -1.0),
        (("scales", "table", "time_scale"), 0.0),
        (("scales", "table", "channel_scale"), [0.0]),
        (("scales", "states", "state_scale"), [1e400]),
        (("scales", "states", "unknown_size"), [0.0]),
        (("scales", "table", "largest_gap"), -1.0),
        (("noise",), [-1.0]),
        (("noise",), [1e400]),
        (("constants_std",), [-1.0]),
        (("sizes", "horizon"), 0),
        (("config", "encoder", "width"), 10**9),
        (("config", "unit", "states"), 10**9),
    ],
)
def test_impossible_numbers_are_refused(stored, tmp_path, place, value):
    content = json.loads((stored / "whole" / "model.json").read_text())
    part = content["description"]
    for name in place[:-1]:
        part = part[name]
    assert place[-1] in part
    part[place[-1]] = value
    (tmp_path / "model.json").write_text(json.dumps(content))
    arrays = (stored / "whole" / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(arrays)
    with pytest.raises(RunError, match=r"model\.json"):
        physsm.load(tmp_path)


@pytest.mark.parametrize("wrong", [-1.0, 1e400, float("nan")])
def test_a_calibration_must_increase(stored, tmp_path, wrong):
    content = json.loads((stored / "whole" / "model.json").read_text())
    content["calibration"][0][5] = wrong
    (tmp_path / "model.json").write_text(json.dumps(content))
    arrays = (stored / "whole" / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(arrays)
    with pytest.raises(RunError, match="calibration"):
        physsm.load(tmp_path)


def test_what_was_stored_is_read(stored):
    panel = random_panel(["x"])
    first = physsm.load(stored / "whole").forecast(panel, horizon=5).mean
    assert np.isfinite(first).all()
