"""Logs that a Crazyflie quadrotor writes to its memory card.

All numbers are little-endian and nothing is padded:

    0xBC, version (uint16), number of event types (uint16)
    per event type: id (uint16), name, number of variables (uint16), each as "name(T)"
    records: event id (uint16), time, the variables of that event
    CRC-32 of everything before (uint32)

Names end with a zero byte; T is a letter as in Python's struct module. The time is in microseconds
(uint64) in version 2 and in milliseconds (uint32) in version 1.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError

_MAGIC = 0xBC
_TIMES = {1: ("<u4", 1e3), 2: ("<u8", 1e6)}  # type, and ticks in a second
_TYPES = {
    letter: f"<{code}"
    for letter, code in zip(
        "bBhHiIqQefd",
        ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"),
        strict=True,
    )
}
_VARIABLE = re.compile(r"(.+)\((.)\)")
_MOST_NAMES = 10_000  # of events or variables: a log has fewer


@dataclass(frozen=True, eq=False)
class Event:
    """Records of one event: seconds since the start of the machine, and variables by name."""

    times: Float[np.ndarray, " records"]
    variables: dict[str, np.ndarray]


@dataclass(frozen=True)
class _Kind:
    """Layout of the records of one event, after its id."""

    name: str
    record: np.dtype


def read_log(path: Path) -> dict[str, Event]:
    """Events of a log by name. A truncated or damaged file is an error."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) < 9 or content[0] != _MAGIC:
        raise DataError(
            f"{path} is not a Crazyflie log: its first byte is wrong",
            hint="use the raw files of the memory card, not tables made from them",
        )
    if zlib.crc32(content[:-4]) != int.from_bytes(content[-4:], "little"):
        raise DataError(
            f"{path} is damaged or truncated: its checksum is wrong", hint="copy it again"
        )
    header = _Header(path, content[:-4])
    kinds = header.kinds()
    return _records(path, header.content, header.offset, kinds, header.ticks)


class _Header:
    """Reader of the header; `offset` is the position of the next byte."""

    def __init__(self, path: Path, content: bytes):
        self.path, self.content, self.offset = path, content, 1
        version = self.number()
        if version not in _TIMES:
            self.fail(f"has the format version {version}; versions 1 and 2 are known")
        self.time_type, self.ticks = _TIMES[version]

    def fail(self, what: str) -> NoReturn:
        raise DataError(f"{self.path} {what}")

    def number(self) -> int:
        if self.offset + 2 > len(self.content):
            self.fail("ends inside its header")
        (value,) = struct.unpack_from("<H", self.content, self.offset)
        self.offset += 2
        return value

    def text(self) -> str:
        end = self.content.find(b"\0", self.offset)
        if end < 0:
            self.fail("ends inside a name of its header")
        raw, self.offset = self.content[self.offset : end], end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.fail(f"has a name in its header that is not text: {raw!r}")

    def count(self) -> int:
        count = self.number()
        if not 1 <= count <= _MOST_NAMES:
            self.fail(f"announces {count} events or variables")
        return count

    def kinds(self) -> dict[int, _Kind]:
        """Event types by id."""
        kinds: dict[int, _Kind] = {}
        for _ in range(self.count()):
            identity, name = self.number(), self.text()
            fields = [("event", "<u2"), ("time", self.time_type)]
            for _ in range(self.count()):
                written = self.text()
                match = _VARIABLE.fullmatch(written)
                if match is None or match[2] not in _TYPES:
                    self.fail(f"has the variable {written!r} of an unknown type")
                fields.append((f"variable {match[1]}", _TYPES[match[2]]))
            known = identity in kinds or name in {kind.name for kind in kinds.values()}
            if known or len({field for field, _ in fields}) < len(fields):
                self.fail(f"names an event or one of its variables twice: {name}")
            kinds[identity] = _Kind(name, np.dtype(fields))
        return kinds


def _records(
    path: Path, content: bytes, start: int, kinds: dict[int, _Kind], ticks: float
) -> dict[str, Event]:
    if len(kinds) == 1:  # all records have one size: no loop over records
        ((identity, kind),) = kinds.items()
        if (len(content) - start) % kind.record.itemsize:
            raise DataError(f"{path} ends inside a record")
        rows = np.frombuffer(content, kind.record, offset=start)
        if (rows["event"] != identity).any():
            raise DataError(f"{path} has a record of an event that its header does not name")
        return {kind.name: _event(rows, ticks)}
    starts: dict[int, list[int]] = {identity: [] for identity in kinds}
    while start < len(content):
        identity = int.from_bytes(content[start : start + 2], "little")
        if identity not in kinds:
            raise DataError(f"{path} has a record of an event that its header does not name")
        starts[identity].append(start)
        start += kinds[identity].record.itemsize
    if start != len(content):
        raise DataError(f"{path} ends inside a record")
    everything = np.frombuffer(content, np.uint8)
    events = {}
    for identity, kind in kinds.items():
        indices = np.array(starts[identity], np.int64)[:, None] + np.arange(kind.record.itemsize)
        events[kind.name] = _event(everything[indices].reshape(-1).view(kind.record), ticks)
    return events


def _event(rows: np.ndarray, ticks: float) -> Event:
    prefix = "variable "
    names = [name for name in rows.dtype.names or () if name.startswith(prefix)]
    return Event(
        rows["time"] / ticks, {name.removeprefix(prefix): np.array(rows[name]) for name in names}
    )
