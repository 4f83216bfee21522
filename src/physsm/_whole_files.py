"""Atomic writes and locks of files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO


def try_lock(stream: IO[Any]) -> bool:
    """Lock an open file for this process until it is closed; False if another process holds it.

    A system without such locks (Windows) locks nothing.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Stream whose content replaces the file when the block ends; on an error the file stays.

    The content is flushed to the disk before the file is renamed, so that a crash or power cut
    never leaves a half-written file.
    """
    unfinished = path.parent / f".physsm-{secrets.token_hex(8)}.tmp"
    try:
        with unfinished.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
