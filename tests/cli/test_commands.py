"""The command line: help, systems and `explain`, bad input, broken streams and encodings."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from physsm.physics.read import system_names
from tests.cli.command import COMMAND, physsm, physsm_here


def test_help_lists_the_commands():
    result = physsm("--help")
    assert result.returncode == 0
    assert "systems" in result.stdout
    assert "explain" in result.stdout
    assert physsm_here("explain", "--help").returncode == 0
    assert physsm_here().returncode == 2


def test_standard_input_and_module(tmp_path):
    (tmp_path / "pendulum").write_text("x' = nonsense")  # a file does not shadow a built-in name
    assert physsm("explain", "pendulum", cwd=tmp_path).returncode == 0
    result = subprocess.run(
        [sys.executable, "-m", "physsm", "explain", "-", "--json"],
        input="x' = ?rate*x\n0 <= ?rate <= 2",
        capture_output=True,
        text=True,
        timeout=60,
    )
    (unknown,) = json.loads(result.stdout)["unknowns"]
    assert (unknown["name"], unknown["lower"], unknown["upper"]) == ("rate", 0, 2)


def test_version():
    assert physsm("--version").stdout.startswith("physsm 0.")


def test_systems():
    table = physsm("systems").stdout
    rows = json.loads(physsm_here("systems", "--json").stdout)
    assert [row["name"] for row in rows] == system_names()
    assert all(row["name"] in table and row["summary"] in table for row in rows)
    narrow = physsm_here("systems", env={"COLUMNS": "60", "FORCE_COLOR": "1"}).stdout
    assert all(row["name"] in narrow for row in rows)
    quadrotor = next(row for row in rows if row["name"] == "quadrotor")
    assert quadrotor == quadrotor | {"states": 10, "extended": 11, "controls": 7, "unknowns": 50}


def test_explain_json_has_the_promised_keys():
    result = json.loads(physsm_here("explain", "sir_conserving", "--json").stdout)
    assert result["names"] == ["S", "I", "R"]
    assert result["controls"] == []
    assert result["mask_A"] == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert result["mask_B"] == [[], [], []]
    assert result["known_A"] == [["0"] * 3] * 3
    assert result["invariants"] == ["S + I + R"]
    assert result["warnings"] == []
    beta = result["unknowns"][0]
    assert beta["name"] == "beta"
    assert beta["kind"] == "varying"
    assert beta["constraint"] == "beta >= 0"
    assert beta["entries"][0] == {"matrix": "A", "row": "S", "column": "S", "factor": "-I"}


def test_explain_shows_everything(tmp_path):
    (tmp_path / "my.phys").write_text(
        "# mine\ncontrol u\nx' = v\nv' = -9.81*x + ?stiff*x + ?*v + ?gain*u + ?b*y*v\n"
        "y' = ?b*v\nz' = -?b*v\n?gain >= 0\nstate x >= -1\nobserve x\nunit x = m\n"
        "unknown ?gain per series\n"
    )
    result = physsm("explain", "my.phys", cwd=tmp_path)
    assert result.returncode == 0
    for part in (
        *("mine", "gain", "per series", "gain >= 0", "x >= -1", "measured directly: x", "x in m"),
        *("y + z is conserved", "warning: entry (v, x) of A", "B[v, u]"),
    ):
        assert part in result.stdout, part
    assert "\x1b" not in result.stdout  # no colours into a pipe


def test_explain_is_not_cut_to_a_terminal_in_a_pipe():
    result = physsm("explain", "quadrotor", env={"COLUMNS": "40"})
    row = next(line for line in result.stdout.split("\n") if line.split()[:1] == ["m4"])
    assert row.split() == ["m4", *["0", "0", "0", "0", "0", "0", "0", "0", "0", "?"], "rpm4*?"]


def test_explain_uses_marks_where_the_terminal_is_too_narrow():
    from rich.console import Console

    from physsm.physics.explain import render
    from physsm.physics.read import load_structure

    for width, row in ((70, "rpm4*?"), (50, "m4 10 0 0 0 0 0 0 0 0 0 ? ?")):
        console = Console(width=width, force_terminal=True, color_system=None)
        with console.capture() as captured:
            console.print(render(load_structure("quadrotor"), "quadrotor"))
        lines = captured.get().split("\n")
        assert any(row in " ".join(line.split()) for line in lines), width
        assert not any("…" in line or len(line) > width for line in lines)


def test_explain_colours_a_terminal():
    result = physsm_here("explain", "pendulum", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert re.search(r"\x1b\[1;33m *\?", result.stdout)  # learned
    assert re.search(r"\x1b\[36m *1", result.stdout)  # known
    assert re.search(r"\x1b\[90m *0", result.stdout)  # never


def test_explain_latex():
    result = physsm_here("explain", "pendulum", "--latex")
    assert result.stdout.count(r"\star") == 5
    assert r"\sin{\left(\theta \right)}" in result.stdout
    assert result.stdout.count(r"\left") == result.stdout.count(r"\right")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "pendulm"], "did you mean pendulum?"),
        (["explain", "missing.phys"], "missing.phys: there is no such file"),
        (["explain", "folder.phys"], "this is not a file"),
        (["explain", "wrong.phys"], "wrong.phys, line 1, column 6: unknown name 'y'"),
        (["explain", "binary.phys"], "not UTF-8 text"),
        (["explain", "x" * 5000], "there is no built-in system"),
        (["explain", "x" * 5000 + ".phys"], "the file cannot be read"),
        (["explain", "pendulum", "--latex", "--json"], "choose one of --latex and --json"),
        (["explain"], "Missing argument"),
        (["explian", "pendulum"], "No such command"),
        (["explain", "pendulum", "--jsn"], "No such option"),
    ],
)
def test_bad_input_ends_with_one_message_and_exit_code_2(tmp_path, arguments, message):
    (tmp_path / "wrong.phys").write_text("x' = y")
    (tmp_path / "binary.phys").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.phys").mkdir()
    result = physsm_here(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_bad_input_ends_the_process_with_exit_code_2():
    result = physsm("explain", "pendulm")
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean pendulum?" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [["--debug", "explain", "x"], ["explain", "x", "--debug"]])
def test_debug_shows_the_traceback(arguments):
    result = physsm(*arguments)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "PhysicsError" in result.stderr


def test_a_reader_that_leaves_early_is_no_error():
    process = subprocess.Popen(
        [*COMMAND, "explain", "quadrotor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert errors == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        ("explain pendulum > /dev/full", "the output cannot be written: No space left on device"),
        ("explain pendulum >&-", "the output cannot be written"),
        ("explain - <&-", "standard input"),
        ("explain - < /dev/null", "the physics text has no equation"),
        ("explain - < /bin/sh", "standard input is not UTF-8 text"),
        ("explain - < /dev/zero", "the physics text has 200,001 characters"),
    ],
)
def test_broken_streams_end_with_one_message(redirection, message):
    if "/dev/full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    command = f"{shlex.join(COMMAND)} {redirection}"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("form", [[], ["--json"], ["--latex"]])
def test_any_terminal_encoding_will_do(tmp_path, form):
    (tmp_path / "my.phys").write_text("# größer\nx' = -x\nunit x = °C", encoding="utf-8")
    result = physsm("explain", "my.phys", *form, cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
