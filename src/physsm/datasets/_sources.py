"""Public files of the data sets: their names, licences, digests and local paths.

A source is a folder of files from one origin. Its card, `sources/NAME.toml`, has the address and
digest of each file. Files are searched in the folder given by the user, then in `$PHYSSM_DATA`,
then in the cache.
"""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from physsm._errors import ConfigError, DataError, did_you_mean

_CARDS = Path(__file__).parent / "sources"


@dataclass(frozen=True)
class File:
    """File of a source; `path` is relative to the folder of the source.

    - `sha256`: the digest; several if equivalent copies are in use, and then `bytes` is the size
      of the largest.
    - `url`: the public address; None if there is none. `how` then says how to make or
      obtain the file.
    - `archive`: an archive in the same folder that contains this file.
    - `optional`: no protocol reads the file; models that use maps, or tests, do.
    """

    path: str
    bytes: int
    sha256: tuple[str, ...]
    url: str | None = None
    how: str | None = None
    archive: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Source:
    """Folder of files from one origin; `terms` are conditions that a user must know."""

    name: str
    title: str
    licence: str
    origin: str
    citation: str
    files: tuple[File, ...]
    terms: str | None = None

    @property
    def needed(self) -> tuple[File, ...]:
        """Files that protocols read."""
        return tuple(file for file in self.files if not file.optional)


def source_names() -> list[str]:
    """Names of all sources, sorted."""
    return sorted(card.stem for card in _CARDS.glob("*.toml"))


@functools.cache
def read_source(name: str) -> Source:
    """Source of this name."""
    known = source_names()
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no source called {name!r}: {hint}")
    card = tomllib.loads((_CARDS / f"{name}.toml").read_text(encoding="utf-8"))
    listed = [file for entry in card.pop("list", []) for file in _listed(**entry)]
    files = [_file(**entry) for entry in card.pop("file", [])]
    return Source(name=name, files=(*listed, *files), **card)


def cache_folder() -> Path:
    """Folder of downloaded files."""
    return Path(platformdirs.user_cache_dir("physsm")) / "data"


def data_folders(data_dir: str | Path | None = None) -> list[Path]:
    """Folders that are searched, in this order; each holds one folder per source."""
    named = [Path(data_dir)] if data_dir is not None else []
    environment = os.environ.get("PHYSSM_DATA")
    return [*named, *([Path(environment)] if environment else []), cache_folder()]


def locate(source: str, file: str, data_dir: str | Path | None = None) -> Path:
    """Path of a file of a source, in the first folder that has it."""
    for folder in data_folders(data_dir):
        if (path := folder / source / file).exists():
            return path
    searched = ", ".join(str(folder / source) for folder in data_folders(data_dir))
    raise DataError(
        f"the data {source} are not here: there is no {file} in {searched}",
        hint=_advice(source, file),
    )


def present(source: Source, data_dir: str | Path | None = None) -> dict[str, Path]:
    """Paths of the files of a source, or of their archives, in the first folder that has each.

    Their content is not checked.
    """
    paths = {}
    for file in source.files:
        names = [file.path, *([file.archive] if file.archive else [])]
        candidates = (
            folder / source.name / name for folder in data_folders(data_dir) for name in names
        )
        path = next((path for path in candidates if path.exists()), None)
        if path is not None:
            paths[file.path] = path
    return paths


def _advice(source: str, path: str) -> str:
    """Hint for a missing file."""
    command = f"physsm data get {source}"
    if source in source_names():
        for file in read_source(source).files:
            if file.path == path and file.url is None:
                return (
                    f"it has no public address. {file.how} --data-dir or PHYSSM_DATA name a folder "
                    f"to look in; `{command}` takes it from a mirror"
                )
    return f"`{command}` downloads it; --data-dir or PHYSSM_DATA name another folder to look in"


def _file(sha256: str | list[str], **entry: Any) -> File:
    return File(sha256=(sha256,) if isinstance(sha256, str) else tuple(sha256), **entry)


def _listed(name: str, url: str, archive: str) -> list[File]:
    """Files of a list with lines "digest size path"; `url` is the address of their folder."""
    lines = (_CARDS / name).read_text(encoding="utf-8").splitlines()
    rows = (line.split(maxsplit=2) for line in lines)
    return [
        File(path=path, bytes=int(size), sha256=(digest,), url=url + path, archive=archive)
        for digest, size, path in rows
    ]
