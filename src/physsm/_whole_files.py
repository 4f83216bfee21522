"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO


def try_lock(stream: IO[Any]) -> bool:
    """Lock an open file for this program until it is closed; False if another program has it.

    Where the system has no such locks (Windows), nothing is locked.
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
    """A stream whose content replaces the file once the block has ended; on any error the file
    stays as it was.

    The content reaches the disk before the name does, so that no moment of a crash or power cut
    leaves a file that is half written.
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
