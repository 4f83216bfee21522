"""The reader of raw logs: what is in a file comes out, and a file with a fault is refused."""

import struct
import zlib

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._crazyflie_log import read_log

LETTERS = "bBhHiIqQefd"
TIME = {1: "I", 2: "Q"}
FLIGHT = (65535, "fixedFrequency", ["acc.x(f)", "motor.m1(I)", "flag(B)"])
TOUCH = (7, "touch", ["pressure(h)"])


def signed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def log_header(version, kinds) -> bytes:
    content = struct.pack("<BHH", 0xBC, version, len(kinds))
    for identity, name, variables in kinds:
        content += struct.pack("<H", identity) + name.encode() + b"\0"
        content += struct.pack("<H", len(variables))
        content += b"".join(variable.encode() + b"\0" for variable in variables)
    return content


def log_bytes(version, kinds, records) -> bytes:
    """A log; each record is the place of its kind, its time in ticks, and its numbers."""
    content = log_header(version, kinds)
    for place, ticks, *numbers in records:
        identity, _, variables = kinds[place]
        code = "".join(variable[-2] for variable in variables)
        content += struct.pack(f"<H{TIME[version]}{code}", identity, ticks, *numbers)
    return signed(content)


def flight_records(count):
    return [(0, 1000 * i + 5, 0.5 * i, 100 + i, i % 3) for i in range(count)]


@pytest.fixture
def read(tmp_path):
    def from_bytes(content: bytes):
        path = tmp_path / "log"
        path.write_bytes(content)
        return read_log(path)

    return from_bytes


@pytest.mark.parametrize(("version", "ticks"), [(1, 1e3), (2, 1e6)])
def test_one_event_type(read, version, ticks):
    (event,) = read(log_bytes(version, [FLIGHT], flight_records(4))).values()
    np.testing.assert_array_equal(event.times, np.array([5, 1005, 2005, 3005]) / ticks)
    assert list(event.variables) == ["acc.x", "motor.m1", "flag"]
    np.testing.assert_array_equal(event.variables["acc.x"], [0, 0.5, 1, 1.5])
    np.testing.assert_array_equal(event.variables["motor.m1"], [100, 101, 102, 103])
    np.testing.assert_array_equal(event.variables["flag"], [0, 1, 2, 0])


@pytest.mark.parametrize("version", [1, 2])
def test_several_event_types_are_distinguished(read, version):
    never = (9, "never", ["nothing(d)"])
    records = [(0, 1, 0.25, 1, 2), (1, 2, -5), (1, 3, 6), (0, 4, 0.75, 3, 4)]
    events = read(log_bytes(version, [FLIGHT, TOUCH, never], records))
    assert list(events) == ["fixedFrequency", "touch", "never"]
    np.testing.assert_array_equal(events["fixedFrequency"].variables["acc.x"], [0.25, 0.75])
    np.testing.assert_array_equal(events["fixedFrequency"].variables["flag"], [2, 4])
    np.testing.assert_array_equal(events["touch"].variables["pressure"], [-5, 6])
    np.testing.assert_array_equal(events["touch"].times * (1e3, 1e6)[version - 1], [2, 3])
    assert len(events["never"].times) == len(events["never"].variables["nothing"]) == 0


def test_every_type_of_variable(read):
    """The extremes of the integers, and fractions that all floats hold."""
    numbers = []
    for letter in LETTERS:
        bits = 8 * struct.calcsize(f"<{letter}")
        signed_one = letter.islower()
        numbers.append(
            -0.375 if letter in "efd" else -(2 ** (bits - 1)) if signed_one else 2**bits - 1
        )
    kind = (1, "all", [f"the {letter}({letter})" for letter in LETTERS])
    event = read(log_bytes(2, [kind], [(0, 8, *numbers)]))["all"]
    for letter, number in zip(LETTERS, numbers, strict=True):
        assert event.variables[f"the {letter}"].tolist() == [number]


@pytest.mark.parametrize("kinds", [[FLIGHT], [FLIGHT, TOUCH]])
def test_a_log_without_records_has_events_without_rows(read, kinds):
    events = read(log_bytes(2, kinds, []))
    assert [len(event.times) for event in events.values()] == [0] * len(kinds)


def test_no_log_at_all(read, tmp_path):
    whole = log_bytes(2, [FLIGHT], flight_records(2))
    for content in (b"", b"\xbc", b"time,acc\n0,1\n", signed(b"\xbb" + whole[1:-4])):
        with pytest.raises(DataError, match="is not a Crazyflie log"):
            read(content)
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="cannot be read"):
            read_log(path)


@pytest.mark.parametrize("version", [0, 3, 512])
def test_another_version_is_named(read, version):
    body = log_bytes(2, [FLIGHT], flight_records(2))[:-4]
    body = body[:1] + struct.pack("<H", version) + body[3:]
    with pytest.raises(DataError, match=f"has the format version {version}; versions 1 and 2"):
        read(signed(body))


@pytest.mark.parametrize("kinds", [[FLIGHT], [FLIGHT, TOUCH]])
def test_a_file_cut_off_anywhere_is_refused(read, kinds):
    whole = log_bytes(2, kinds, flight_records(5))
    for length in range(len(whole)):
        with pytest.raises(DataError):
            read(whole[:length])


def test_a_flipped_bit_anywhere_is_refused(read):
    whole = log_bytes(1, [FLIGHT, TOUCH], [*flight_records(3), (1, 9000, 4)])
    for place in range(8 * len(whole)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        with pytest.raises(DataError):
            read(bytes(content))


@pytest.mark.parametrize("kinds", [[FLIGHT], [FLIGHT, TOUCH]])
def test_cut_off_and_signed_again_only_whole_records_are_read(read, kinds):
    records = 6
    body = log_bytes(2, kinds, flight_records(records))[:-4]
    start = len(log_header(2, kinds))
    size = (len(body) - start) // records
    for length in range(len(body)):
        count, rest = divmod(length - start, size)
        if length >= start and not rest:
            event = read(signed(body[:length]))["fixedFrequency"]
            np.testing.assert_array_equal(event.variables["acc.x"], 0.5 * np.arange(count))
        else:
            with pytest.raises(DataError):
                read(signed(body[:length]))


def test_damage_that_is_signed_again_is_refused_or_makes_whole_events(read):
    """No other exception, no columns of different lengths, no record that is lost."""
    random = np.random.default_rng(0)
    kinds = [FLIGHT, TOUCH]
    records = [*flight_records(6), (1, 9000, 4)]
    body = log_bytes(2, kinds, records)[:-4]
    start = len(log_header(2, kinds))
    refused = 0
    for trial in range(600):
        content = bytearray(body)
        last = start if trial % 2 else len(content)  # half of the damage is in the header
        for place in random.integers(1, last, random.integers(1, 4)):
            content[place] = random.integers(256)
        if trial % 5 == 0:
            del content[random.integers(1, last)]
        try:
            events = read(signed(bytes(content)))
        except DataError:
            refused += 1
            continue
        for event in events.values():
            assert {len(event.times)} == {len(column) for column in event.variables.values()}
    assert 200 < refused < 600


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([FLIGHT, (65535, "again", ["x(f)"])], "names an event or one of its variables twice"),
        ([FLIGHT, (1, "fixedFrequency", ["x(f)"])], "names an event or one of its variables twice"),
        ([(1, "a", ["x(f)", "x(I)"])], "names an event or one of its variables twice"),
        ([(1, "a", ["x(z)"])], r"the variable 'x\(z\)' of an unknown type"),
        ([(1, "a", ["x"])], "the variable 'x' of an unknown type"),
        ([(1, "a", [])], "0 events or variables"),
        ([], "0 events or variables"),
    ],
)
def test_a_header_that_contradicts_itself(read, kinds, message):
    with pytest.raises(DataError, match=message):
        read(signed(log_header(2, kinds)))


@pytest.mark.parametrize("kinds", [[FLIGHT], [FLIGHT, TOUCH]])
def test_a_record_of_an_unknown_event(read, kinds):
    body = log_bytes(2, kinds, flight_records(2))[:-4]
    start = len(log_header(2, kinds))
    with pytest.raises(DataError, match="an event that its header does not name"):
        read(signed(body[:start] + b"\x08\x00" + body[start + 2 :]))


def test_a_name_that_is_no_text(read):
    body = log_bytes(2, [FLIGHT], flight_records(2))[:-4]
    with pytest.raises(DataError, match="that is not text"):
        read(signed(body.replace(b"acc.x", b"acc.\xff")))
