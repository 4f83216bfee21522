"""From a table to a forecast on the command line: runs, their folders, and what goes wrong."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from physsm.benchmark.evaluate import BASELINES
from physsm.benchmark.physics_baselines import PHYSICS_BASELINES
from tests.cli.command import COMMAND, physsm_here

pytestmark = pytest.mark.usefixtures("without_type_checks")  # a user has none of them

CONFIG = """\
context = 12
horizon = 6
stride = 4
unknown_hidden = 8
grey_box = false
samples = 8
correct = false
substeps = 1
encoder = {width = 8, states = 8, depth = 1}
unit = {width = 8, states = 8, depth = 1}
encoder_perceptron = {width = 8, layers = 1}
decoder_perceptron = {width = 8, layers = 1}
training = {epochs = 60, batch_size = 8, validations = 30}
"""
PHYSICS = "control force\nx' = v\nv' = -?k*x - ?c*v + force\nunknown ?k, ?c constant\nobserve x\n"


class Desk:
    """A folder with a table, physics and settings."""

    def __init__(self, folder: Path):
        self.folder = folder
        rng = np.random.default_rng(0)
        rows, future = [], []
        for series in range(6):
            times = np.cumsum(rng.uniform(0.1, 0.4, 46))
            phase = rng.uniform(0, 6)
            for i, t in enumerate(times):
                x = np.exp(-0.1 * t) * np.sin(2 * t + phase) + 0.02 * rng.standard_normal()
                row = {"flight": series, "t": t, "force": 0.1 * np.cos(t)}
                if i < 40:
                    rows.append({**row, "x": None if rng.random() < 0.1 else x})
                else:
                    future.append(row)
        pl.DataFrame(rows).write_csv(folder / "table.csv")
        pl.DataFrame(future).write_csv(folder / "future.csv")
        (folder / "my.phys").write_text(PHYSICS)
        (folder / "config.toml").write_text(CONFIG)

    def start(self, *arguments: str) -> subprocess.Popen:
        cache = str(self.folder / "cache")
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_CACHE_HOME": cache},
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def fit_arguments(self, out: str, *more: str) -> list[str]:
        arguments = "fit table.csv --physics my.phys --series flight --config config.toml"
        return [*arguments.split(), "--out", out, *more]

    def refused(self, *arguments: str) -> str:
        """In this process, which is faster: an error that is no message would come through."""
        result = physsm_here(*arguments, cwd=self.folder)
        assert result.returncode == 2, result.stderr
        assert result.stderr.startswith("error: ") or "Usage" in result.stderr
        return result.stderr


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="module")
def run(desk) -> Path:
    result = desk.run(*desk.fit_arguments("run", "--json"))
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("fitting phy_ssm ")]
    assert len(lines) == 11  # the first step, and each tenth
    assert "loss" in lines[-1]
    content = json.loads(result.stdout)
    names = [row["model"] for row in content["rows"]]
    assert names == ["phy_ssm", *BASELINES, *PHYSICS_BASELINES]
    assert content["question"]["given"] is True
    assert [row["name"] for row in content["unknowns"]] == ["k", "c"]
    return desk.folder / "run"


def test_a_run_folder_has_its_files(run):
    assert {"model.json", "model.safetensors", "metrics.jsonl", "evaluation.json"} <= {
        path.name for path in run.iterdir()
    }
    model = json.loads((run / "model.json").read_text())
    assert model["format"] == 2
    assert model["description"]["physics"] == PHYSICS
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 30


def test_forecast_has_the_columns_of_the_table(desk, run):
    result = desk.run(
        *["forecast", "run", "table.csv", "--times", "future.csv", "--out", "pred.csv"]
    )
    assert result.returncode == 0, result.stderr
    frame = pl.read_csv(desk.folder / "pred.csv")
    assert frame.columns == ["flight", "t", "x", "x_lower", "x_upper"]
    future = pl.read_csv(desk.folder / "future.csv")
    assert frame["flight"].to_list() == future["flight"].to_list()
    np.testing.assert_allclose(frame["t"], future["t"], rtol=1e-12)
    assert (frame["x_lower"] <= frame["x"]).all()
    assert (frame["x"] <= frame["x_upper"]).all()


def test_evaluate_and_report(desk, run):
    result = desk.run("evaluate", "run", "table.csv")
    assert result.returncode == 0, result.stderr
    assert all(name in result.stdout for name in ("phy_ssm", *BASELINES, *PHYSICS_BASELINES))
    assert "table of the fit" in " ".join(result.stdout.split())
    result = desk.run("report", "run", "--out", "page.html")
    assert result.returncode == 0, result.stderr
    page = (desk.folder / "page.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "x&#x27;" in page or "x'" in page


def test_a_folder_is_not_used_twice(desk, run):
    before = (run / "model.safetensors").read_bytes()
    assert "already holds a run" in desk.refused(*desk.fit_arguments("run"))
    other_seed = desk.fit_arguments("run", "--resume", "--seed", "5")
    assert "differs in seed" in desk.refused(*other_seed)
    assert (run / "model.safetensors").read_bytes() == before
    (desk.folder / "full").mkdir(exist_ok=True)
    (desk.folder / "full" / "precious.txt").write_text("mine")
    assert "is not empty" in desk.refused(*desk.fit_arguments("full"))
    assert "no run to continue" in desk.refused(*desk.fit_arguments("new", "--resume"))
    assert "is a file" in desk.refused(*desk.fit_arguments("table.csv"))


def test_a_finished_run_is_not_trained_again(desk, run):
    model = run / "model.safetensors"
    before = model.read_bytes(), model.stat().st_mtime_ns
    result = desk.run(*desk.fit_arguments("run", "--resume", "--json"))
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rows"][0]["model"] == "phy_ssm"
    assert (model.read_bytes(), model.stat().st_mtime_ns) == before
    report_data = (run / "evaluation.json").read_bytes()
    try:
        for damaged in ("{}", "[]", None):
            (run / "evaluation.json").unlink()
            if damaged is not None:
                (run / "evaluation.json").write_text(damaged)
            says = desk.refused(*desk.fit_arguments("run", "--resume"))
            assert "evaluation.json is missing or damaged" in " ".join(says.split())
            (run / "evaluation.json").touch()
    finally:
        (run / "evaluation.json").write_bytes(report_data)


def test_the_question_and_the_validation_table_of_a_baseline(desk, run):
    """In this process, which is faster."""
    arguments = "fit table.csv --series flight --controls force --model arx --horizon 8 --context 1"
    more = ["--validation", "table.csv", "--out", "q"]
    result = physsm_here(*arguments.split(), *more, cwd=desk.folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Asked: the next 8 time steps from a context of 2.\n")
    note = json.loads((desk.folder / "q" / "run.json").read_text())
    assert note["request"]["validation"] == note["request"]["fingerprint"]
    assert note["question"] == {
        "context": 2,
        "horizon": 8,
        "given": True,
        "sentence": "Asked: the next 8 time steps from a context of 2.",
    }


def test_a_run_that_was_stopped_twice_continues_with_the_same_bits(desk, run):
    position = desk.folder / "stopped" / "checkpoints" / "position.json"
    before, arguments = b"", desk.fit_arguments("stopped")
    for how, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = desk.start(*arguments)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if position.exists() and position.read_bytes() != before:
                break
            time.sleep(0.005)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
        assert process.returncode == code
        assert how == signal.SIGKILL or "--resume" in err
        assert not (desk.folder / "stopped" / "model.json").exists()
        before, arguments = position.read_bytes(), desk.fit_arguments("stopped", "--resume")
    result = desk.run(*arguments)
    assert result.returncode == 0, result.stderr
    for file in ("model.safetensors", "metrics.jsonl"):
        assert (desk.folder / "stopped" / file).read_bytes() == (run / file).read_bytes()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("flight,t,x,force\n0,0,1,0\n0,0,2,0\n", ["row 3", "column t"]),
        ("flight,t,x,force\n0,0,1,0\n0,1,abc,0\n", ["row 3", "column x", "abc"]),
        ("flight,t,x,force\n0,0,inf,0\n0,1,1,0\n", ["row 2", "column x"]),
        ("flight,t,x,force\n0,0,1,0\n0,1,1,\n", ["row 3", "column force"]),
        ("flight,t,x\n0,0,1\n0,1,1\n", ["force"]),
        ("", ["empty"]),
        ("flight,t,x,force\n0,0,1,0\n0,1,1,0\n", ["too few to train on"]),
    ],
)
def test_bad_tables_are_named_by_row_and_column(desk, table, says):
    (desk.folder / "bad.csv").write_text(table)
    arguments = ["fit", "bad.csv", "--physics", "my.phys", "--series", "flight", "--out", "bad-run"]
    message = desk.refused(*arguments)
    assert all(part in message for part in says), message
    assert not (desk.folder / "bad-run").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("fit none.csv --physics my.phys --out r1", "none.csv"),
        ("fit table.csv --physics none.phys --out r1", "none.phys"),
        ("fit table.csv --physics my.phys --series flight --out r1 --model phy_sm", "phy_ssm"),
        ("fit table.csv --physics my.phys --series flight --out r1 --config no.toml", "no.toml"),
        ("fit table.csv --physics my.phys --out r1 --channels y", "y"),
        ("fit table.csv --series flight --out r1", "physics"),
        ("fit table.csv --series flight --out r1 --model arx --hold mean", "these models have it"),
        ("fit table.csv --series flight --out r1 --model arx --no-refit", "refit"),
        ("fit table.csv --series flight --out r1 --model arx --horizon 39", "long enough"),
        ("fit table.csv --series flight --out r1 --model arx --validation no.csv", "no.csv"),
        ("fit table.csv --series flight --out r1 --model arx --validation future.csv", "x"),
        ("fit pendulum:states --out r1 --model line --horizon 9", "protocol"),
        ("forecast none table.csv --horizon 3 --out p.csv", "none"),
        ("forecast run table.csv --horizon 3 --out p.csv", "force"),
        ("forecast run table.csv --times table.csv --out p.csv", "not after the history"),
        ("forecast run table.csv --times future.csv --out p.xlsx", "xlsx"),
        ("forecast run table.csv --times future.csv --out p.csv --coverage 3", "coverage"),
        ("evaluate run none.csv", "none.csv"),
        ("evaluate run table.csv --horizon 500", "long enough"),
        ("report none", "none"),
        ("forecast run table.csv --times future.csv --out table.csv", "would be replaced"),
        ("forecast run table.csv --times future.csv --out ./future.csv", "would be replaced"),
        ("report run --out run/model.json", ".html"),
    ],
)
def test_wrong_calls_are_one_clear_sentence(desk, run, arguments, says):
    assert says in desk.refused(*arguments.split())
    assert not (desk.folder / "p.csv").exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("lamda = 3", "lambda"),
        ("context = -1", "context"),
        ("training = {steps = 'x'}", "training.steps"),
        ("training = {stepz = 3}", "did you mean steps"),
        ("preset = 'papr'", "papr"),
        ("a = [", "TOML"),
    ],
)
def test_wrong_settings_are_named(desk, setting, says):
    (desk.folder / "wrong.toml").write_text(setting)
    arguments = desk.fit_arguments("r2")
    arguments[arguments.index("config.toml")] = "wrong.toml"
    assert says in desk.refused(*arguments)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.json", b""),
        ("model.json", b"{"),
        ("model.json", b"[1]"),
        ("model.json", b'{"format": 99, "version": "9.0"}'),
        ("model.json", b'{"format": 1, "model": "os.system"}'),
        ("model.json", b'{"format": 1, "model": "phy_ssm"}'),
        ("model.safetensors", b""),
        ("model.safetensors", b"\xff" * 64),
        ("model.safetensors", None),
    ],
)
def test_hostile_model_files_are_refused(desk, run, file, content):
    copy = desk.folder / "copy"
    copy.mkdir(exist_ok=True)
    for name in ("model.json", "model.safetensors"):
        (copy / name).write_bytes((run / name).read_bytes())
    whole = (copy / file).read_bytes()
    (copy / file).write_bytes(whole[: len(whole) // 2] if content is None else content)
    message = desk.refused(
        *["forecast", "copy", "table.csv", "--times", "future.csv", "--out", "p.csv"]
    )
    assert str(file) in message or "copy" in message
    assert not (desk.folder / "p.csv").exists()
