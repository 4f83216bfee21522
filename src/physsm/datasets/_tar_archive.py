"""Members of a .tar.xz archive, read in memory: nothing is unpacked to disk."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path

from physsm._errors import DataError

_LARGEST = 1 << 28  # bytes, unpacked; those that are published have 15 and 22 MB
_DICTIONARY = 1 << 27  # bytes of working memory; xz -9 needs 65 MB


def tar_members(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each plain file whose name ends in `suffix`, in the archive's order.

    Names are only labels: a member called ../../x is as harmless as any other.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(_unpacked(path)), mode="r:") as archive:
            for member in archive:
                # A sparse member may claim any size: what it leaves out is filled with zeros.
                if member.issparse():
                    raise tarfile.ReadError("a member is sparse")
                if member.isreg() and member.name.endswith(suffix):
                    stream = archive.extractfile(member)
                    content = stream.read() if stream else b""
                    if len(content) != member.size:
                        raise tarfile.ReadError("a member is cut off")
                    yield member.name, content
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        raise _damaged(path, error) from None


def _unpacked(path: Path) -> bytes:
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_DICTIONARY)
        content = reader.decompress(path.read_bytes(), max_length=_LARGEST)
    except (lzma.LZMAError, OSError, EOFError, MemoryError) as error:
        raise _damaged(path, error) from None
    if not reader.eof:
        cut = len(content) < _LARGEST
        reason = "it ends too early" if cut else f"it unpacks to more than {_LARGEST} bytes"
        raise _damaged(path, reason)
    return content


def _damaged(path: Path, reason: object) -> DataError:
    detail = str(reason).split("\n")[0]
    message = f"the archive cannot be read: {detail}"
    return DataError(message, path=str(path), hint="remove it, and get it or its files again")
