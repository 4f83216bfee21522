"""The public files behind the data sets: what there is, under which licence, and where it is here.

A source is a folder of files from one origin. Its card, `sources/NAME.toml`, says where each file
is published and which digest it has. On this machine, files are looked for in a folder that was
named, then in `$PHYSSM_DATA`, then in the cache.
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
    """A file of a source; `path` is within the source's folder.

    - `sha256`: the digest; several where copies that differ without consequence are in use, and
      then `bytes` is the size of the largest.
    - `url`: where it is published; None for a file that has no public address. `how` then says
      how it is made.
    - `archive`: a file that, where it lies in the folder, stands for this one and others.
    - `optional`: no protocol reads it; models that look at maps do, or tests.
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
    """A folder of files from one origin; `terms` are conditions that a user must know of."""

    name: str
    title: str
    licence: str
    origin: str
    citation: str
    files: tuple[File, ...]
    terms: str | None = None

    @property
    def needed(self) -> tuple[File, ...]:
        """The files that protocols read."""
        return tuple(file for file in self.files if not file.optional)


def source_names() -> list[str]:
    """All sources, in alphabetical order."""
    return sorted(card.stem for card in _CARDS.glob("*.toml"))


@functools.cache
def read_source(name: str) -> Source:
    """The source of this name."""
    known = source_names()
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise ConfigError(f"there is no source called {name!r}: {hint}")
    card = tomllib.loads((_CARDS / f"{name}.toml").read_text(encoding="utf-8"))
    listed = [file for entry in card.pop("list", []) for file in _listed(**entry)]
    files = [_file(**entry) for entry in card.pop("file", [])]
    return Source(name=name, files=(*listed, *files), **card)


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
        f"the data {source} are not here: there is no {file} in {looked}",
        hint=_advice(source, file),
    )


def present(source: Source, data_dir: str | Path | None = None) -> dict[str, Path]:
    """Which files of a source exist, or an archive of them, each in the first place that has it.
    Their content is not looked at.
    """
    found = {}
    for file in source.files:
        names = [file.path, *([file.archive] if file.archive else [])]
        candidates = (place / source.name / name for place in places(data_dir) for name in names)
        path = next((path for path in candidates if path.exists()), None)
        if path is not None:
            found[file.path] = path
    return found


def _advice(source: str, path: str) -> str:
    """What to do about a file that is not here."""
    command = f"physsm data get {source}"
    if source in source_names():
        for file in read_source(source).files:
            if file.path == path and file.url is None:
                return f"it has no public address. {file.how} `{command}` takes it from a mirror"
    return f"`{command}` downloads it; --data-dir or PHYSSM_DATA name another folder to look in"


def _file(sha256: str | list[str], **entry: Any) -> File:
    return File(sha256=(sha256,) if isinstance(sha256, str) else tuple(sha256), **entry)


def _listed(name: str, url: str, archive: str) -> list[File]:
    """The files of a list with lines "digest size path"; `url` is the address of their folder."""
    lines = (_CARDS / name).read_text(encoding="utf-8").splitlines()
    rows = (line.split(maxsplit=2) for line in lines)
    return [
        File(path=path, bytes=int(size), sha256=(digest,), url=url + path, archive=archive)
        for digest, size, path in rows
    ]
