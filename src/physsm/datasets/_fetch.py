"""Downloads: resumed where they were cut off, checked before they get their name.

pooch, the usual choice, writes a whole body to a file and checks it. It cannot continue a partial
file: it does not tell a server that sends the rest from one that sends everything again. Nor does
it notice a server that sends a byte now and then for ever. Both need the response in hand, so this
is the standard library's client, whose `read1` gives bytes as they come.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import http.client
import io
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from physsm._errors import ConfigError, DataError, PhyssmError, RunError
from physsm._whole_files import try_lock
from physsm.datasets._sources import File, Source, places
from physsm.datasets._tar_archive import tar_members

Report = Callable[[int, int], None]

_CHUNK = 1 << 16
_PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers that may be others a moment later
_VARIABLE = "PHYSSM_MIRROR"


@dataclass(frozen=True)
class Patience:
    """How long a download waits, in s.

    - `silence`: for a connection, and for the next bytes.
    - `slowest`: bytes per s below which, over that time, a server counts as silent.
    - `pauses`: before each further try, when a try failed in a way that may pass.
    """

    silence: float = 30.0
    slowest: float = 100.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0)


PATIENT: Final = Patience()


@dataclass(frozen=True)
class Fetched:
    """What became of the files of a source: fetched now, here before, not to be had."""

    fetched: tuple[File, ...]
    before: tuple[File, ...]
    without_address: tuple[File, ...]


class _MissingError(DataError):
    """The server has no such file."""


class _PassingError(Exception):
    """A failure that may be gone at the next try; its text says what happened.

    `from_start`: what has arrived so far is of no use.
    """

    def __init__(self, message: str, *, from_start: bool = False):
        super().__init__(message)
        self.from_start = from_start


def _unreported(*numbers: int) -> None:
    """What a download reports to if nobody asks."""


def _mirror() -> str | None:
    """The mirror that `$PHYSSM_MIRROR` names: a server of folders like those of `places`."""
    mirror = os.environ.get(_VARIABLE, "").strip().rstrip("/")
    if not mirror:
        return None
    if not mirror.startswith(("http://", "https://")):
        raise ConfigError(f"{_VARIABLE} must start with http:// or https://, but is {mirror!r}")
    return mirror


def fetch_source(
    source: Source,
    data_dir: str | Path | None = None,
    *,
    report: Report = _unreported,
    patience: Patience = PATIENT,
) -> Fetched:
    """Fetch the files of a source that no place has in good order, into the first of `places`.

    A file that is there but damaged is fetched anew. `report` gets the bytes that are done and
    those of all files. Files without an address are only asked of a mirror.
    """
    mirror = _mirror()
    folder = places(data_dir)[0] / source.name
    here = {file: _is_here(source, file, data_dir) for file in source.files}
    wanted = [file for file in source.files if not here[file]]
    total = sum(file.bytes for file in wanted if file.url or mirror)
    fetched: list[File] = []
    without: list[File] = []
    done = 0
    for file in wanted:
        address = f"{mirror}/{source.name}/{file.path}" if mirror else file.url
        if address is None:
            without.append(file)
            continue
        start = done
        try:
            fetch_file(
                file,
                folder,
                address,
                report=lambda now, start=start: report(start + now, total),
                patience=patience,
            )
        except _MissingError:
            if file.url is not None:
                raise
            without.append(file)
            continue
        done += file.bytes
        fetched.append(file)
    before = (file for file in source.files if here[file])
    return Fetched(tuple(fetched), tuple(before), tuple(without))


def fetch_file(
    file: File,
    folder: Path,
    address: str,
    *,
    report: Callable[[int], None] = _unreported,
    patience: Patience = PATIENT,
) -> Path:
    """Download a file into a folder; it gets its name once its digest is right.

    What has arrived when a download fails is kept beside it, and the next one continues there.
    """
    if not address.startswith(("http://", "https://")):
        raise ConfigError(f"{address} cannot be fetched: only http and https addresses can")
    path = folder / file.path
    with _explained(path):
        with _partial(path) as stream:
            _try_often(file, stream, address, report, patience)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(stream.name, path)
    return path


def _try_often(
    file: File,
    stream: io.BufferedRandom,
    address: str,
    report: Callable[[int], None],
    patience: Patience,
) -> None:
    for pause in (*patience.pauses, None):
        try:
            return _complete(file, stream, address, report, patience)
        except _PassingError as failure:
            if failure.from_start:
                stream.truncate(0)
            if pause is None:
                raise DataError(
                    f"{file.path} could not be downloaded: {failure}",
                    hint="the same command continues where this one stopped; "
                    f"{_VARIABLE} can name another server",
                ) from failure
            time.sleep(pause)


def _complete(
    file: File,
    stream: io.BufferedRandom,
    address: str,
    report: Callable[[int], None],
    patience: Patience,
) -> None:
    """Bring a partial file to its end, and check it. A wrong one is emptied."""
    start = stream.seek(0, os.SEEK_END)
    if start < file.bytes or start == 0:
        start = _download(file, stream, address, report, patience)
    found = _digest(stream)
    if found in file.sha256:
        return
    if start:
        raise _PassingError(f"the rest from {address} is of another file", from_start=True)
    stream.truncate(0)
    expected = " or ".join(file.sha256)
    raise _other_file(file, address, f"its sha256 is {found}, and not {expected}")


def _download(
    file: File,
    stream: io.BufferedRandom,
    address: str,
    report: Callable[[int], None],
    patience: Patience,
) -> int:
    """Append what is missing; the number of bytes of the partial file that were kept."""
    start = stream.seek(0, os.SEEK_END)
    with _passing(address, patience), _open(address, start, patience) as response:
        if start and not _continues(response, start):
            start = 0
            stream.truncate(0)
        done = stream.seek(0, os.SEEK_END)
        report(done)
        for chunk in _chunks(response, patience):
            done += len(chunk)
            if done > file.bytes:
                stream.truncate(0)
                raise _other_file(file, address, f"it is longer than {file.bytes} bytes")
            stream.write(chunk)
            report(done)
        if response.length:  # what the server announced and did not send
            raise _PassingError(
                f"{address} broke off after {done} of {done + response.length} bytes"
            )
    return start


def _other_file(file: File, address: str, why: str) -> DataError:
    return DataError(
        f"{address} is not the file {file.path} that was expected: {why}",
        hint="it was not kept: the server may have answered with something else",
    )


def _continues(response: Any, start: int) -> bool:
    """Whether a server sends the rest of a file, and not all of it again."""
    given = response.headers.get("Content-Range", "")
    return response.status == http.client.PARTIAL_CONTENT and given.startswith(f"bytes {start}-")


def _chunks(response: Any, patience: Patience) -> Iterator[bytes]:
    """The body as it comes, as long as it comes fast enough."""
    since, arrived = time.monotonic(), 0
    while chunk := _read(response):
        yield chunk
        arrived += len(chunk)
        waited = time.monotonic() - since
        if waited >= patience.silence:
            if arrived < patience.slowest * waited:
                raise TimeoutError
            since, arrived = time.monotonic(), 0


def _read(response: Any) -> bytes:
    try:
        return response.read1(_CHUNK)
    except TimeoutError:
        raise
    except OSError as error:  # such as a network that went down; not to be taken for the disk's
        raise ConnectionError(error.strerror or str(error)) from error


def _open(address: str, start: int, patience: Patience) -> Any:
    # Packed bodies could not be continued, because ranges would count packed bytes.
    headers = {"User-Agent": "physsm", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)
    return _web_only().open(request, timeout=patience.silence)


def _web_only() -> urllib.request.OpenerDirector:
    """A client that a redirection cannot send to a local file or to FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


@contextlib.contextmanager
def _passing(address: str, patience: Patience) -> Iterator[None]:
    """Tell failures of the net that may pass from those that stay."""
    silence = f"{address} sent nothing, or next to nothing, for {patience.silence:g} s"
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _PASSING:
                raise _PassingError(f"{address} answers {error.code} ({error.reason})") from error
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                reason = f"{address} is shorter than what was there"
                raise _PassingError(reason, from_start=True) from error
            kind = _MissingError if error.code in (404, 410) else DataError
            raise kind(
                f"{address} cannot be fetched: the server answers {error.code} ({error.reason})",
                hint=f"the file may have moved: {_VARIABLE} can name another server, or "
                "put the file into the folder yourself",
            ) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _PassingError(silence) from error
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise DataError(
                f"{address} cannot be trusted: {error.reason.verify_message}",
                hint="SSL_CERT_FILE can name the certificates of your network",
            ) from error
        raise _PassingError(f"{address} cannot be reached ({error.reason})") from error
    except TimeoutError as error:
        raise _PassingError(silence) from error
    except (http.client.InvalidURL, ValueError) as error:
        raise ConfigError(f"{address} is not an address that can be fetched: {error}") from error
    except (ConnectionError, http.client.HTTPException, ssl.SSLError) as error:
        reason = str(error) or type(error).__name__
        raise _PassingError(f"the connection to {address} broke off ({reason})") from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Failures of the disk as one sentence."""
    try:
        yield
    except PhyssmError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
        hint = hint or "choose another folder with --data-dir"
        raise RunError(f"{path} cannot be written: {reason}; {hint}") from error


@contextlib.contextmanager
def _partial(path: Path) -> Iterator[io.BufferedRandom]:
    """What has arrived of a file, open at its end, for this program alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("a+b") as stream:
            _lock(stream, path)
            yield stream
    finally:
        with contextlib.suppress(OSError):
            if partial.stat().st_size == 0:
                partial.unlink()


def _lock(stream: io.BufferedRandom, path: Path) -> None:
    """Two programs that append to one file would spoil it."""
    is_ours = False
    with contextlib.suppress(FileNotFoundError):  # it may have got its name in between
        is_ours = try_lock(stream) and os.path.samestat(
            os.stat(stream.name), os.fstat(stream.fileno())
        )
    if not is_ours:
        raise RunError(f"{path} is being downloaded by another program: try again later")


def _is_here(source: Source, file: File, data_dir: str | Path | None) -> bool:
    """Whether a place has the file in good order, or an archive that stands for it."""
    for place in places(data_dir):
        folder = place / source.name
        archive = folder / file.archive if file.archive else None
        if archive and archive.is_file() and not _inside(archive).isdisjoint(file.sha256):
            return True
        with contextlib.suppress(OSError), (folder / file.path).open("rb") as stream:
            if _digest(stream) in file.sha256:
                return True
    return False


@functools.lru_cache(maxsize=2)
def _inside(archive: Path) -> frozenset[str]:
    """The digests of all files of an archive; a damaged one is an error that says so."""
    found = (content for _, content in tar_members(archive, ""))
    return frozenset(hashlib.sha256(content).hexdigest() for content in found)


def _digest(stream: io.BufferedReader | io.BufferedRandom) -> str:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()
