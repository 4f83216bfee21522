"""The command line in a process of its own, as a user meets it, or in this one, which is faster."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import jax

from physsm import _compile_cache
from physsm.cli.main import run
from physsm.cli.options import debugging

COMMAND = [sys.executable, "-c", "from physsm.cli.main import run; run()"]


def physsm(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )


def physsm_here(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, with the precision of a user and the compilation cache of the
    tests. An error that is no message comes through.
    """
    out, err = io.StringIO(), io.StringIO()
    code: str | int | None = 0
    with (
        jax.enable_x64(False),
        contextlib.chdir(cwd or "."),
        patch.dict(os.environ, env or {}),
        patch.object(sys, "argv", ["physsm", *arguments]),
        patch.object(_compile_cache, "prepare_command"),
        patch.object(debugging, "wanted", False),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int), code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
