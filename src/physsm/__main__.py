"""`python -m physsm` is the `physsm` command."""

from physsm.cli.main import run

run()
