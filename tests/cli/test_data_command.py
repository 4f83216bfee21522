"""`physsm data`: lists, downloads from a server on loopback, descriptions of tables and sets."""

import hashlib
import json
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from physsm._errors import PhyssmError
from physsm._registry import names_in
from physsm.cli.data import data
from physsm.cli.data_tables import size
from physsm.datasets import _sources
from physsm.datasets._sources import File, Source
from tests.cli.command import physsm

TABLE = """series,time,level,[flow],pump
a,0,1.0,,1
a,1,2.0,10,1
a,4,3.0,20,0
b,0,,30,0
b,0.5,6.0,,0
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No data of this machine, no proxy: what a test does not make is not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PHYSSM_MIRROR", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    (tmp_path / "tank.csv").write_text(TABLE)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        """Say nothing."""


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """The folder that a server shows, which PHYSSM_MIRROR names."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("PHYSSM_MIRROR", f"http://127.0.0.1:{server.server_address[1]}")
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def toy(mirror, monkeypatch):
    """A source of two files, of which the mirror has the first."""

    def file(path: str, content: bytes, **details) -> File:
        return File(path, len(content), (hashlib.sha256(content).hexdigest(),), **details)

    source = Source(
        name="toy",
        title="A toy",
        licence="CC BY-NC 4.0",
        origin="nowhere",
        citation="nobody",
        files=(
            file("one", b"first", url="https://nowhere.invalid/one"),
            file("two", b"second", how="Make it."),
        ),
        terms="Play only.",
    )
    (mirror / "toy").mkdir()
    (mirror / "toy" / "one").write_bytes(b"first")
    monkeypatch.setattr(_sources, "source_names", lambda: ["toy"])
    monkeypatch.setattr(_sources, "read_source", lambda name: source)
    return source


def inside(*arguments: str):
    """Within this program, where a test can replace parts; with the error, if any."""
    return CliRunner().invoke(data, arguments)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from physsm.cli.main import app\n"
        "try: app(['data', sys.argv[1], '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'jax', 'polars', 'matplotlib', 'sympy', 'pooch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    for command in ("list", "get", "describe"):
        result = subprocess.run(
            [sys.executable, "-c", code, command], capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        assert "--json" in result.stdout
        assert "--debug" in result.stdout


def test_list(tmp_path):
    rows = json.loads(inside("list", "--json").stdout)
    assert [row["name"] for row in rows] == names_in("datasets")
    by_name = {row["name"]: row for row in rows}
    assert by_name["pendulum"]["sources"] == []
    assert by_name["drone"]["licences"] == ["MIT"]
    assert (by_name["drone"]["files"], by_name["drone"]["files_here"]) == (3, 0)
    folder = tmp_path / "data" / "drone_crazyflie"
    folder.mkdir(parents=True)
    (folder / "log10").write_text("")
    page = inside("list").stdout
    assert "1 of 3 present" in page
    assert f"drone: {folder}" in page
    assert "simulated" in page
    assert "physsm data get NAME" in page


def test_a_simulated_set_needs_no_files():
    result = inside("get", "pendulum")
    assert result.exit_code == 0
    assert result.stdout == "pendulum is simulated: there is nothing to download.\n"


def test_get_tells_the_terms_and_what_cannot_be_had(toy, tmp_path):
    result = inside("get", "toy", "--data-dir", str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "toy" / "one").read_bytes() == b"first"
    lines = result.stdout.splitlines()
    assert lines[0] == "toy: A toy"
    assert lines[1:3] == ["  licence  CC BY-NC 4.0", "  terms    Play only."]
    assert lines[-2] == f"  1 file fetched into {tmp_path / 'mine' / 'toy'}, 0 present before"
    assert lines[-1] == "  no public address (needed): two. Make it."
    assert isinstance(result.exception, PhyssmError)
    assert "toy is not complete: toy/two cannot be downloaded" in str(result.exception)


def test_get_again_fetches_only_what_is_lacking(toy, mirror, tmp_path):
    inside("get", "toy")
    (mirror / "toy" / "two").write_bytes(b"second")
    result = inside("get", "toy", "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)
    assert row == {
        "source": "toy",
        "licence": "CC BY-NC 4.0",
        "terms": "Play only.",
        "folder": str(tmp_path / "data" / "toy"),
        "fetched": 1,
        "here_before": 1,
        "folders_before": [str(tmp_path / "data" / "toy")],
        "without_address": [],
    }


def test_a_wrong_file_is_refused_with_exit_code_2(mirror, tmp_path):
    (mirror / "lynx_hare").mkdir()
    (mirror / "lynx_hare" / "hudson-bay-lynx-hare.csv").write_text("Year, Lynx, Hare\n")
    result = physsm("data", "get", "lynx_hare", cwd=tmp_path)
    assert result.returncode == 2
    assert "is not the file hudson-bay-lynx-hare.csv that was expected" in result.stderr
    assert "Traceback" not in result.stderr
    assert "licence  BSD-3-Clause" in result.stdout
    assert not list((tmp_path / "data" / "lynx_hare").iterdir())


def test_an_interrupted_download_says_how_to_go_on(toy, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("physsm.datasets._fetch.fetch_source", interrupt)
    result = inside("get", "toy")
    assert result.exit_code == 130
    assert "the same command continues the download" in result.stderr


def test_describe_a_table():
    result = inside("describe", "tank.csv", "--controls", "pump", "--json")
    content = json.loads(result.stdout)
    assert (content["series"], content["rows"]) == (2, 5)
    assert content["lengths"] == {"shortest": 2, "median": 2.5, "longest": 3}
    assert content["gaps"]["0.5"] == 1
    assert content["largest_gap"] == {"series": "a", "before": 1, "after": 4}
    level, flow = content["channels"]
    assert (level["missing"], level["minimum"], level["maximum"], level["mean"]) == (0.2, 1, 6, 3)
    assert flow["name"] == "[flow]"
    assert [control["name"] for control in content["controls"]] == ["pump"]
    page = inside("describe", "tank.csv", "--controls", "pump").stdout
    for part in ("[flow]", "40.0%", "largest gap", "in series a, from 1 to 4", "--plot FILE.png"):
        assert part in page, page


def test_describe_a_table_with_dates():
    Path("days.csv").write_text("day,x\n2024-01-01,1\n2024-01-02T06:00,2\n2024-01-05,\n")
    arguments = ("describe", "days.csv", "--time", "day", "--time-unit", "d")
    page = inside(*arguments).stdout
    assert "2024-01-01 to 2024-01-05" in page
    assert "2.75 d, from 2024-01-02 06:00:00 to 2024-01-05" in page
    assert json.loads(inside(*arguments, "--json").stdout)["time_unit"] == "d"


@pytest.mark.parametrize("name", ["look.png", "look.svg"])
def test_describe_draws_if_asked(name):
    result = inside("describe", "tank.csv", "--plot", name)
    assert f"The plot is in {name}." in result.stdout
    assert Path(name).stat().st_size > 5000


def test_describe_a_data_set(monkeypatch):
    def small(named, data_dir):
        return named.dataset.split(named.protocol, series=(3, 2, 2), rows=30)

    monkeypatch.setattr("physsm.benchmark.named_data.NamedData.split", small)
    content = json.loads(inside("describe", "pendulum:states", "--json").stdout)
    assert (content["dataset"], content["protocol"]) == ("pendulum", "states")
    assert set(content["parts"]) == {"train", "validation", "test"}
    test = content["parts"]["test"]
    assert (test["windows"], test["share_that_touches_training"]) == (2, 0)
    assert test["controls"][0]["name"] == "torque"
    page = inside("describe", "pendulum:states", "--plot", "look.svg").stdout
    assert "windows: a context of 20 time steps, a horizon of 10" in page
    assert "theta (rad)" in Path("look.svg").read_text()


def test_a_data_set_of_very_many_channels(monkeypatch):
    def small(named, data_dir):
        assert named.protocol == "strict"
        return named.dataset.split("strict", series=(1, 1, 1), steps=5)

    monkeypatch.setattr("physsm.benchmark.named_data.NamedData.split", small)
    page = inside("describe", "pendulum").stdout
    assert "… and 761 more: --json has all" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "pendulm"], "did you mean pendulum?"),
        (["get", "xyz"], "there is no data set or source called 'xyz'"),
        (["describe", "pendlum"], "did you mean pendulum?"),
        (["describe", "pendulum:strikt"], "did you mean strict?"),
        (["describe", "pendulum:states", "--time", "t"], "--time: only for a table"),
        (["describe", "none.csv"], "there is no such file"),
        (["describe", "tank.csv", "--channels", "levle"], "levle"),
        (["describe", "tank.csv", "--time-unit", "year"], "the time unit 'year' is unknown"),
        (["describe", "tank.csv", "--plot", "a.pdf"], "choose .png or .svg"),
        (["describe", "tank.csv", "--plot", "tank.csv"], "would be replaced"),
        (["describe", "tank.csv", "--plot", "none/a.png"], "cannot be written"),
        (["describe", "drone"], "physsm data get drone_crazyflie"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_message(arguments, message):
    result = inside(*arguments)
    assert isinstance(result.exception, PhyssmError)
    assert message in str(result.exception)
    assert result.stdout == ""


def test_sizes_for_people():
    assert [size(n) for n in (0, 999, 1500, 2_400_000, 3_000_000_000)] == [
        *("0 B", "999 B", "1.5 kB", "2.4 MB", "3.0 GB")
    ]


def shown(page: str, language: str) -> str:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    return text.split(f"```{language}\n")[1].split("```")[0]


def test_the_documentation_shows_what_is_printed():
    Path("pendulums.csv").write_text(shown("data.md", "csv"))
    command, _, expected = shown("datasets.md", "text").partition("\n")
    arguments = command.removeprefix("$ physsm data ").split()
    assert inside(*arguments).stdout == expected
