"""Archives that are damaged inside a sound .xz file, or have something behind their end."""

import io
import lzma
import tarfile

import pytest

from physsm._errors import DataError
from physsm.datasets._tar_archive import tar_members

NAMES = [f"label/{k}.txt" for k in range(6)]


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for k, name in enumerate(NAMES):
            content = bytes([65 + k]) * 700
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def members(tmp_path, packed: bytes) -> list[str]:
    path = tmp_path / "a.tar.xz"
    path.write_bytes(packed)
    return [name for name, _ in tar_members(path, ".txt")]


def test_a_sound_archive_gives_all_members(tmp_path):
    assert members(tmp_path, lzma.compress(tar())) == NAMES


def test_content_that_ends_in_zeros_is_no_end(tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("zeros.txt")
        member.size = 5000
        archive.addfile(member, io.BytesIO(bytes(5000)))
    assert members(tmp_path, lzma.compress(stream.getvalue())) == ["zeros.txt"]


@pytest.mark.parametrize("blocks", [1, 3, 4, 6, 9, 12, 18])
def test_a_tar_that_was_cut_before_it_was_packed_is_refused(tmp_path, blocks):
    with pytest.raises(DataError, match="cannot be read"):
        members(tmp_path, lzma.compress(tar()[: 512 * blocks]))


@pytest.mark.parametrize("member", range(6))
def test_a_damaged_header_is_no_end(tmp_path, member):
    content = bytearray(tar())
    content[3 * 512 * member + 3] ^= 1
    with pytest.raises(DataError, match="cannot be read"):
        members(tmp_path, lzma.compress(bytes(content)))


@pytest.mark.parametrize("behind", [b"hello", lzma.compress(b"more")])
def test_nothing_may_follow(tmp_path, behind):
    with pytest.raises(DataError, match="there are bytes after its end"):
        members(tmp_path, lzma.compress(tar()) + behind)


def test_a_second_stream_is_not_overlooked(tmp_path):
    content = tar()
    packed = lzma.compress(content[: 9 * 512]) + lzma.compress(content[9 * 512 :])
    with pytest.raises(DataError):
        members(tmp_path, packed)
