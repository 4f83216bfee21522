"""Where the files of data sets are: in a folder that was named, in `$PHYSSM_DATA`, in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from physsm._errors import DataError


def cache_folder() -> Path:
    """Where downloaded files are kept."""
    return Path(platformdirs.user_cache_dir("physsm")) / "data"


def places(data_dir: str | Path | None = None) -> list[Path]:
    """The folders that are searched, in this order; each holds one folder per source."""
    named = [Path(data_dir)] if data_dir is not None else []
    environment = os.environ.get("PHYSSM_DATA")
    return [*named, *([Path(environment)] if environment else []), cache_folder()]


def locate(source: str, file: str, data_dir: str | Path | None = None) -> Path:
    """A file of a source, from the first place that has it."""
    for place in places(data_dir):
        if (path := place / source / file).exists():
            return path
    looked = ", ".join(str(place / source) for place in places(data_dir))
    raise DataError(
        f"the file {file} was not found; looked in {looked}",
        hint=f"physsm data get {source} downloads it",
    )
