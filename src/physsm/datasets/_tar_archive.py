"""Reader of .tar.xz archives that unpacks one member at a time and writes nothing to disk."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from physsm._errors import DataError

_LARGEST = 1 << 28  # bytes, unpacked; published archives have 15 and 22 MB
_DICTIONARY = 1 << 27  # bytes of working memory; xz -9 needs 65 MB
_CHUNK = 1 << 16


def tar_members(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each plain file whose name ends in `suffix`, in the archive's order.

    Names are only labels, so a member called ../../x is harmless.
    """
    try:
        with path.open("rb") as packed:
            stream = _Unpacked(packed)
            unpacked = io.BufferedReader(stream)
            with tarfile.open(fileobj=unpacked, mode="r|") as archive:
                yield from _members(archive, suffix)
            while unpacked.read(_CHUNK):  # to the end, which has the checksum
                pass
            # tarfile treats a damaged header as the end, and a truncated file as complete.
            if not stream.ends_with_nothing_but_zeros(archive.offset):
                raise tarfile.ReadError("it ends too early, or a header is damaged")
    except (tarfile.TarError, lzma.LZMAError, OSError, ValueError, EOFError, MemoryError) as error:
        raise _damaged(path, error) from None


def _members(archive: tarfile.TarFile, suffix: str) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        # A sparse member may claim any size: its holes are filled with zeros.
        if member.issparse():
            raise tarfile.ReadError("a member is sparse")
        if member.isreg() and member.name.endswith(suffix):
            stream = archive.extractfile(member)
            content = stream.read() if stream else b""
            if len(content) != member.size:
                raise tarfile.ReadError("a member is cut off")
            yield member.name, content


class _Unpacked(io.RawIOBase):
    """Stream of the unpacked bytes of an .xz file, with limited memory.

    `lzma.open` would use as much memory as the file demands.
    """

    def __init__(self, packed: BinaryIO):
        super().__init__()
        self._packed, self._count, self._last_number = packed, 0, 0
        self._reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_DICTIONARY)

    def readable(self) -> bool:
        """True: the stream can only be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the start of a buffer. Returns the number of bytes, 0 at the end."""
        while not self._reader.eof:
            packed = self._packed.read(_CHUNK) if self._reader.needs_input else b""
            if self._reader.needs_input and not packed:
                raise EOFError("it ends too early")
            found = self._reader.decompress(packed, max_length=len(buffer))
            if numbers := len(found.rstrip(b"\0")):
                self._last_number = self._count + numbers
            self._count += len(found)
            if self._count > _LARGEST:
                raise ValueError(f"it unpacks to more than {_LARGEST} bytes")
            if found:
                buffer[: len(found)] = found
                return len(found)
        if self._reader.unused_data or self._packed.read(1):
            raise ValueError("there are bytes after its end")
        return 0

    def ends_with_nothing_but_zeros(self, start: int) -> bool:
        """Whether all bytes from `start` on are zeros, at least two blocks of them."""
        return self._last_number <= start and self._count - start >= 2 * tarfile.BLOCKSIZE


def _damaged(path: Path, reason: object) -> DataError:
    detail = str(reason).split("\n")[0]
    message = f"the archive cannot be read: {detail}"
    return DataError(message, path=str(path), hint="delete it, and download it or its files again")
