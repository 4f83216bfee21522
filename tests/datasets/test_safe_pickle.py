"""Pickles of plain values are read as Python reads them; all others are refused unexecuted."""

import collections
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._safe_pickle import read_pickle


class ScenarioDescription(dict):
    pass


class Foreign:
    def __init__(self):
        self.state = 1

    def __setstate__(self, state):
        raise AssertionError("this must never run")


class Calls:
    """A pickle that calls something when it is read."""

    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


def plain():
    counts = collections.defaultdict(int)
    counts["VEHICLE"] = 3
    shared = np.arange(6.0)
    return {
        "id": "scene-0001",
        "none": None,
        "numbers": [1, -2, 300, 70000, 2**40, -(2**40), 1.5, float("inf"), True, False],
        "texts": ("", "ä", "x" * 300),
        "bytes": b"abc",
        "sets": {"a", "b"},
        "empty": [(), [], {}, set()],
        "counts": counts,
        "arrays": [
            np.arange(12.0).reshape(3, 4),
            np.asfortranarray(np.arange(12.0).reshape(3, 4)),
            np.arange(3, dtype=">i4"),
            np.ones((2, 0), np.float32),
            np.array([True, False]),
            np.array(2.0),
        ],
        "shared": [shared, shared],
        "scalars": [np.float64(2.5), np.int32(-3), np.bool_(True)],
    }


def assert_equal(one, other):
    if isinstance(other, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype.newbyteorder("=")
    elif isinstance(other, dict):
        assert list(one) == list(other)
        for key in other:
            assert_equal(one[key], other[key])
    elif isinstance(other, list | tuple):
        assert type(one) is type(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    else:
        assert one == other
        assert type(one) is type(other)


@pytest.mark.parametrize("protocol", [4, 5])
def test_plain_values_are_read_as_python_reads_them(protocol):
    content = pickle.dumps(plain(), protocol)
    made = read_pickle(content, "a.pkl")
    assert_equal(made, pickle.loads(content))
    assert type(made["counts"]) is dict


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_old_and_new_numpy_are_read(module):
    content = pickle.dumps(np.arange(3.0), 3)
    assert b"cnumpy._core.multiarray\n_reconstruct\n" in content or b"_codecs" in content
    content = content.replace(b"cnumpy._core.multiarray", b"c" + module)
    np.testing.assert_array_equal(read_pickle(content, "a.pkl"), np.arange(3.0))


def test_scenario_descriptions_are_dicts():
    made = read_pickle(pickle.dumps(ScenarioDescription(a=[1]), 4), "a.pkl")
    assert type(made) is dict
    assert made == {"a": [1]}


HOSTILE = {
    "os.system": (lambda file: Calls(os.system, f"touch {file}"), "system"),
    "eval": (lambda file: Calls(eval, f"open({str(file)!r}, 'w')"), "builtins.eval"),
    "getattr": (lambda _: Calls(getattr, {}, "clear"), "builtins.getattr"),
    "open": (lambda file: Calls(open, str(file), "w"), "open"),
    "numpy.zeros": (lambda _: Calls(np.zeros, (10**9,)), "zeros"),
    "numpy.save": (lambda file: Calls(np.save, str(file), 1), "save"),
    "int": (lambda _: Calls(int, "9" * 9), "builtins.int"),
    "foreign": (lambda _: Foreign(), "Foreign"),
    "type": (lambda _: os.path.join, "join"),
    "object array": (lambda _: np.array([None, {}]), "O8"),
    "text array": (lambda _: np.array(["a"]), "U1"),
    "complex": (lambda _: np.array([1j]), "c16"),
    "fields": (lambda _: np.zeros(2, [("a", "f8")]), "V8"),
}


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused_and_not_executed(name, protocol, tmp_path):
    make, word = HOSTILE[name]
    marker = tmp_path / "executed"
    content = pickle.dumps({"id": make(marker)}, protocol)
    with pytest.raises(DataError, match=word) as caught:
        read_pickle(content, "odd.pkl")
    assert caught.value.path == "odd.pkl"
    assert not marker.exists()


def test_a_known_name_in_a_foreign_module_is_refused():
    for content in (b"cos\n_reconstruct\n.", b"cposix\ndefaultdict\n.", b"cbuiltins\nset \n."):
        with pytest.raises(DataError, match="not allowed"):
            read_pickle(content, "a.pkl")


RAW = {
    "empty": b"",
    "no pickle": b"hello",
    "zeros": bytes(100),
    "no end": b"\x80\x04]",
    "nothing on the stack": b"\x80\x04.",
    "two on the stack": b"\x80\x04]].",
    "no mark": b"\x80\x04]e.",
    "tuple of nothing": b"\x80\x04\x87.",
    "item of a list": b"\x80\x04]K\x01K\x02s.",
    "list as a key": b"\x80\x04}]K\x02s.",
    "unknown memo": b"\x80\x04h\x07.",
    "build of a dict": b"\x80\x04}}b.",
    "build of nothing": b"\x80\x04b.",
    "call of a text": b"\x80\x04\x8c\x01a)R.",
    "call without arguments": b"cnumpy\ndtype\n)R.",
    "persistent": b"Pabc\n.",
    "extension": b"\x82\x01.",
    "instance": b"(ios\nsystem\n.",
    "pop": b"\x80\x04]0.",
    "huge text": b"\x80\x04X" + struct.pack("<I", 2**32 - 1) + b"a.",
    "huge bytes": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"a.",
    "huge number": b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"a.",
    "deep": b"\x80\x04" + b"]" * 10_000 + b"a" * 9_999,
    "deep key": b"\x80\x04})" + b"\x85" * 30_000 + b"K\x01s.",
    "deep member": b"\x80\x04\x8f()" + b"\x85" * 30_000 + b"\x90.",
}


@pytest.mark.parametrize("name", RAW)
def test_nonsense_is_a_data_error(name):
    with pytest.raises(DataError, match=r"a\.pkl"):
        read_pickle(RAW[name], "a.pkl")


def test_a_huge_memo_slot_or_shape_takes_no_memory():
    slot = b"\x80\x04K\x01r" + struct.pack("<I", 2**32 - 1) + b"."
    shape = pickle.dumps(np.zeros(3), 4).replace(b"K\x03\x85", b"\x8a\x05\x00\x00\x00\x00\x10\x85")
    assert shape != pickle.dumps(np.zeros(3), 4)
    tracemalloc.start()
    assert read_pickle(slot, "a.pkl") == 1
    with pytest.raises(DataError, match="24 bytes for an array of shape"):
        read_pickle(shape, "a.pkl")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


@pytest.mark.timeout(30)  # written out, there would be 10⁶⁰ of them
def test_lists_that_hold_each_other_many_times_stay_small():
    laughs = b"\x80\x04]\x94" + b"".join(
        b"](" + b"h" + bytes([i]) + (b"h" + bytes([i])) * 9 + b"e\x94" for i in range(60)
    )
    with pytest.raises(DataError):
        read_pickle(laughs + b".", "a.pkl")


def test_files_beyond_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr("physsm.datasets._safe_pickle._LARGEST", 10)
    with pytest.raises(DataError, match="more than 10"):
        read_pickle(pickle.dumps("x" * 20), "a.pkl")


def test_every_truncation_is_a_data_error():
    content = pickle.dumps(plain(), 4)
    for length in range(0, len(content), 7):
        with pytest.raises(DataError):
            read_pickle(content[:length], "a.pkl")


@pytest.mark.filterwarnings("error")
def test_flipped_bits_give_a_value_or_a_data_error():
    content = pickle.dumps(plain(), 4)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            damaged[place] ^= 1 << rng.integers(8)
        try:
            read_pickle(bytes(damaged), "a.pkl")
        except DataError:
            refused += 1
    assert 100 < refused < 400
