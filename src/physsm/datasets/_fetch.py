"""Downloads that resume where they stopped and are verified before they get their final name.

pooch, the usual choice, writes a whole body to a file and verifies it. It cannot continue a partial
file, because it does not check whether the server sends the remainder or the whole file again, and
it does not time out on a server that sends a byte now and then. Both need access to the response,
so this module uses the standard library's client, whose `read1` returns bytes as they arrive.
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
from physsm.datasets._sources import File, Source, data_folders
from physsm.datasets._tar_archive import tar_members

Report = Callable[[int, int], None]

_CHUNK = 1 << 16
_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # status codes of temporary failures
_VARIABLE = "PHYSSM_MIRROR"


@dataclass(frozen=True)
class Patience:
    """Timeouts of a download, in s.

    - `silence`: timeout of a connection, and of the next bytes.
    - `slowest`: bytes per s; a server that is slower over that time counts as silent.
    - `pauses`: pause before each retry after a temporary failure.
    """

    silence: float = 30.0
    slowest: float = 100.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0)


PATIENT: Final = Patience()


@dataclass(frozen=True)
class Fetched:
    """Outcome for the files of a source: downloaded now, present before, not available."""

    fetched: tuple[File, ...]
    before: tuple[File, ...]
    without_address: tuple[File, ...]


class _MissingError(DataError):
    """Permanent failure: the server has no such file."""


class _TemporaryError(Exception):
    """Temporary failure, worth a retry; its text describes it.

    `from_start`: the partial file is useless.
    """

    def __init__(self, message: str, *, from_start: bool = False):
        super().__init__(message)
        self.from_start = from_start


def _no_report(*numbers: int) -> None:
    """Default progress callback, which does nothing."""


def _mirror() -> str | None:
    """Address of the mirror in `$PHYSSM_MIRROR`: a server of one folder per source."""
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
    report: Report = _no_report,
    patience: Patience = PATIENT,
) -> Fetched:
    """Download the missing or damaged files of a source into the first of `data_folders`.

    `report` is called with the bytes done and the bytes of all files. Files without an address are
    only requested from a mirror.
    """
    mirror = _mirror()
    folder = data_folders(data_dir)[0] / source.name
    here = {file: _is_present(source, file, data_dir) for file in source.files}
    missing_files = [file for file in source.files if not here[file]]
    total = sum(file.bytes for file in missing_files if file.url or mirror)
    fetched: list[File] = []
    without: list[File] = []
    done = 0
    for file in missing_files:
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
    report: Callable[[int], None] = _no_report,
    patience: Patience = PATIENT,
) -> Path:
    """Download a file into a folder; it gets its name once its digest is verified.

    After a failure the partial file stays in the folder, and the next download continues it.
    """
    if not address.startswith(("http://", "https://")):
        raise ConfigError(f"{address} cannot be downloaded: only http and https addresses can")
    path = folder / file.path
    with _disk_errors(path):
        with _partial(path) as stream:
            _retry(file, stream, address, report, patience)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(stream.name, path)
    return path


def _retry(
    file: File,
    stream: io.BufferedRandom,
    address: str,
    report: Callable[[int], None],
    patience: Patience,
) -> None:
    for pause in (*patience.pauses, None):
        try:
            return _complete(file, stream, address, report, patience)
        except _TemporaryError as failure:
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
    """Complete a partial file and verify it. A wrong one is emptied."""
    start = stream.seek(0, os.SEEK_END)
    if start < file.bytes or start == 0:
        start = _download(file, stream, address, report, patience)
    digest = _digest(stream)
    if digest in file.sha256:
        return
    if start:
        raise _TemporaryError(f"{address} continued with bytes of another file", from_start=True)
    stream.truncate(0)
    expected = " or ".join(file.sha256)
    raise _wrong_file(file, address, f"its sha256 is {digest}, and not {expected}")


def _download(
    file: File,
    stream: io.BufferedRandom,
    address: str,
    report: Callable[[int], None],
    patience: Patience,
) -> int:
    """Append the missing bytes. Returns the number of bytes that the partial file had."""
    start = stream.seek(0, os.SEEK_END)
    with _classified_errors(address, patience), _open(address, start, patience) as response:
        if start and not _continues(response, start):
            start = 0
            stream.truncate(0)
        done = stream.seek(0, os.SEEK_END)
        report(done)
        for chunk in _chunks(response, patience):
            done += len(chunk)
            if done > file.bytes:
                stream.truncate(0)
                raise _wrong_file(file, address, f"it is longer than {file.bytes} bytes")
            stream.write(chunk)
            report(done)
        if response.length:  # announced by the server, but not sent
            raise _TemporaryError(
                f"{address} broke off after {done} of {done + response.length} bytes"
            )
    return start


def _wrong_file(file: File, address: str, why: str) -> DataError:
    return DataError(
        f"{address} is not the file {file.path} that was expected: {why}",
        hint="it was deleted: the server may have sent another page instead",
    )


def _continues(response: Any, start: int) -> bool:
    """Whether a server sends the remainder of a file, and not the whole file again."""
    span = response.headers.get("Content-Range", "")
    return response.status == http.client.PARTIAL_CONTENT and span.startswith(f"bytes {start}-")


def _chunks(response: Any, patience: Patience) -> Iterator[bytes]:
    """Chunks of the body as they arrive; a server that is too slow is an error."""
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
    except OSError as error:  # such as a network failure; must not be reported as a disk error
        raise ConnectionError(error.strerror or str(error)) from error


def _open(address: str, start: int, patience: Patience) -> Any:
    # A compressed body could not be resumed: ranges would count compressed bytes.
    headers = {"User-Agent": "physsm", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)
    return _web_only().open(request, timeout=patience.silence)


def _web_only() -> urllib.request.OpenerDirector:
    """HTTP client that does not follow a redirect to a local file or to FTP."""
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
def _classified_errors(address: str, patience: Patience) -> Iterator[None]:
    """Context that converts network errors to temporary or permanent failures."""
    silence = f"{address} sent almost nothing for {patience.silence:g} s"
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _TEMPORARY:
                raise _TemporaryError(f"{address} answers {error.code} ({error.reason})") from error
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                reason = f"{address} is shorter than the partial file"
                raise _TemporaryError(reason, from_start=True) from error
            kind = _MissingError if error.code in (404, 410) else DataError
            raise kind(
                f"{address} cannot be downloaded: the server answers {error.code} ({error.reason})",
                hint=f"the file may have moved: {_VARIABLE} can name another server, or "
                "put the file into the folder yourself",
            ) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _TemporaryError(silence) from error
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise DataError(
                f"{address} cannot be trusted: {error.reason.verify_message}",
                hint="SSL_CERT_FILE can name the certificates of your network",
            ) from error
        raise _TemporaryError(f"{address} cannot be reached ({error.reason})") from error
    except TimeoutError as error:
        raise _TemporaryError(silence) from error
    except (http.client.InvalidURL, ValueError) as error:
        raise ConfigError(f"{address} is not an address that can be downloaded: {error}") from error
    except (ConnectionError, http.client.HTTPException, ssl.SSLError) as error:
        reason = str(error) or type(error).__name__
        raise _TemporaryError(f"the connection to {address} broke off ({reason})") from error


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Context that converts disk errors to one sentence."""
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
    """Partial file, open at its end and locked for this process."""
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
    """Lock a partial file: two processes that append to it would corrupt it."""
    is_ours = False
    with contextlib.suppress(FileNotFoundError):  # it may have been renamed in between
        is_ours = try_lock(stream) and os.path.samestat(
            os.stat(stream.name), os.fstat(stream.fileno())
        )
    if not is_ours:
        raise RunError(f"{path} is being downloaded by another program: try again later")


def _is_present(source: Source, file: File, data_dir: str | Path | None) -> bool:
    """Whether one of `data_folders` has the file undamaged, or an archive that contains it."""
    for parent in data_folders(data_dir):
        folder = parent / source.name
        archive = folder / file.archive if file.archive else None
        if archive and archive.is_file() and not _archive_digests(archive).isdisjoint(file.sha256):
            return True
        with contextlib.suppress(OSError), (folder / file.path).open("rb") as stream:
            if _digest(stream) in file.sha256:
                return True
    return False


@functools.lru_cache(maxsize=2)
def _archive_digests(archive: Path) -> frozenset[str]:
    """Digests of all files of an archive; a damaged archive is an error."""
    contents = (content for _, content in tar_members(archive, ""))
    return frozenset(hashlib.sha256(content).hexdigest() for content in contents)


def _digest(stream: io.BufferedReader | io.BufferedRandom) -> str:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()
