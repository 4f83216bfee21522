"""Downloads from a server that misbehaves in every way, on loopback."""

import hashlib
import os
import tarfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from physsm._errors import ConfigError, DataError, RunError
from physsm.datasets import _fetch
from physsm.datasets._fetch import Patience, _archive_digests, fetch_file, fetch_source
from physsm.datasets._sources import File, Source

CONTENT = bytes(range(256)) * 1200  # 307,200 bytes: several chunks
QUICK = Patience(silence=0.3, slowest=2000.0, pauses=(0.01, 0.01, 0.01))


@dataclass
class Server:
    """Files by path, how to answer the next requests (then: well), and what was asked and sent."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    moods: list = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        desk = self.server.desk  # type: ignore[attr-defined]
        wanted = self.headers.get("Range")
        desk.asked.append((self.path, wanted))
        mood = desk.moods.pop(0) if desk.moods else "well"
        content = desk.files.get(self.path)
        if mood == "silent":
            desk.over.wait(5)
            return
        if isinstance(mood, str) and mood.startswith("to "):
            self.answer(302, {"Location": mood[3:]})
            return
        if isinstance(mood, int) or content is None:
            self.answer(mood if isinstance(mood, int) else 404, {"Content-Length": "0"})
            return
        first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if mood == "without ranges":
            first = 0
        elif first >= len(content):
            self.answer(416, {"Content-Length": "0"})
            return
        body = content[first:]
        headers = {"Content-Length": str(len(body))}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        self.answer(206 if first else 200, headers)
        self.send(body, mood, desk)

    def send(self, body, mood, desk):
        if mood == "drop":
            body = body[: len(body) // 2]
        elif mood == "stall":
            self.wfile.write(body[:1000])
            desk.sent.append(1000)
            desk.over.wait(5)
            return
        elif mood == "trickle":
            while not desk.over.wait(0.02):
                self.wfile.write(body[:1])
            return
        self.wfile.write(body)
        desk.sent.append(len(body))

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def handle(self):
        try:
            super().handle()
        except OSError:  # the client has gone
            self.close_connection = True

    def log_message(self, format, *args):
        """Say nothing."""


class Listening(ThreadingHTTPServer):
    desk: Server


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("PHYSSM_DATA", raising=False)
    listening = Listening(("127.0.0.1", 0), Handler)
    listening.desk = Server(f"http://127.0.0.1:{listening.server_address[1]}")
    listening.desk.files["/a"] = CONTENT
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield listening.desk
    listening.desk.over.set()
    listening.shutdown()
    listening.server_close()
    thread.join()


def file_of(content: bytes, path: str = "a", **details) -> File:
    digest = hashlib.sha256(content).hexdigest()
    return File(path, len(content), (digest,), **details)


def source_of(*files: File) -> Source:
    return Source("toy", "a toy", "CC0-1.0", "here", "nobody", files)


def fetch(server: Server, folder, file: File | None = None, **details):
    return fetch_file(
        file or file_of(CONTENT), folder, f"{server.address}/a", patience=QUICK, **details
    )


def names(folder) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_whole_file(server, tmp_path):
    told = []
    path = fetch(server, tmp_path / "new" / "folder", report=told.append)
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["a"]
    assert told[0] == 0
    assert told[-1] == len(CONTENT)
    assert told == sorted(told)


def test_an_interrupted_download_continues(server, tmp_path):
    server.moods = ["drop"]
    path = fetch(server, tmp_path)
    assert path.read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert server.asked == [("/a", None), ("/a", f"bytes={half}-")]
    assert server.sent == [half, half]


def test_the_next_command_continues_what_an_earlier_one_left(server, tmp_path):
    server.moods = ["drop", 503, 503, 503]
    with pytest.raises(DataError, match=r"a could not be downloaded: .* answers 503"):
        fetch(server, tmp_path)
    assert names(tmp_path) == [".a.part"]
    server.asked.clear()
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [("/a", f"bytes={len(CONTENT) // 2}-")]
    assert names(tmp_path) == ["a"]


def test_ctrl_c_keeps_what_has_arrived(server, tmp_path):
    def interrupt(done):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server, tmp_path, report=interrupt)
    assert (tmp_path / ".a.part").stat().st_size > 100_000
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked[1][1] is not None


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.moods = ["drop", "without ranges"]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.sent == [len(CONTENT) // 2, len(CONTENT)]


def test_a_partial_file_of_something_else_is_dropped(server, tmp_path):
    (tmp_path / ".a.part").write_bytes(b"x" * 1000)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == ["bytes=1000-", None]


@pytest.mark.parametrize("size", [len(CONTENT), len(CONTENT) + 5])
def test_a_partial_file_that_is_too_long_or_wrong_is_dropped(server, tmp_path, size):
    (tmp_path / ".a.part").write_bytes(b"x" * size)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [("/a", None)]


def test_a_file_that_became_shorter_is_refused(server, tmp_path):
    server.files["/a"] = b"short"
    (tmp_path / ".a.part").write_bytes(CONTENT[:1000])
    with pytest.raises(DataError, match="is not the file a that was expected"):
        fetch(server, tmp_path)
    assert [wanted for _, wanted in server.asked] == ["bytes=1000-", None]
    assert names(tmp_path) == []


def test_a_complete_partial_file_needs_no_server(server, tmp_path):
    (tmp_path / ".a.part").write_bytes(CONTENT)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == []


def test_a_corrupted_file_is_refused(server, tmp_path):
    server.files["/a"] = wrong = CONTENT[:-1] + b"!"
    with pytest.raises(DataError) as caught:
        fetch(server, tmp_path)
    for part in (
        f"{server.address}/a",
        hashlib.sha256(wrong).hexdigest(),
        *file_of(CONTENT).sha256,
    ):
        assert part in str(caught.value)
    assert names(tmp_path) == []
    assert len(server.asked) == 1


def test_a_longer_file_is_refused_before_it_fills_the_disk(server, tmp_path):
    with pytest.raises(DataError, match="longer than 10 bytes"):
        fetch(server, tmp_path, file_of(b"0123456789"))
    assert names(tmp_path) == []


def test_a_missing_file_is_named_and_not_asked_for_again(server, tmp_path):
    del server.files["/a"]
    with pytest.raises(DataError, match=rf"{server.address}/a cannot be downloaded.*404"):
        fetch(server, tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_server_error_may_pass(server, tmp_path):
    server.moods = [503, 500, 429]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 4


@pytest.mark.timeout(30)  # it ends by itself after less than a second
@pytest.mark.parametrize("mood", ["silent", "stall", "trickle"])
def test_a_slow_server_ends_in_an_error(server, tmp_path, mood):
    server.moods = [mood] * 2
    with pytest.raises(DataError, match=r"sent almost nothing for 0\.3 s"):
        fetch_file(
            file_of(CONTENT),
            tmp_path,
            f"{server.address}/a",
            patience=Patience(silence=0.3, slowest=2000.0, pauses=(0.01,)),
        )
    assert len(server.asked) == 2


def test_nobody_at_the_address(server, tmp_path):
    with pytest.raises(DataError, match="cannot be reached"):
        fetch_file(file_of(CONTENT), tmp_path, "http://127.0.0.1:1/a", patience=QUICK)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/a", "file:///etc/hosts", "a", ""])
def test_only_web_addresses(tmp_path, address):
    with pytest.raises(ConfigError, match="only http and https"):
        fetch_file(file_of(CONTENT), tmp_path, address)
    with pytest.raises(ConfigError, match="not an address"):
        fetch_file(file_of(CONTENT), tmp_path, "http://127.0.0.1:port/a")


@pytest.mark.parametrize("target", ["file:///etc/hosts", "ftp://127.0.0.1/a"])
def test_no_redirection_leads_off_the_web(server, tmp_path, target):
    server.moods = [f"to {target}"] * 4
    with pytest.raises(DataError):
        fetch(server, tmp_path)
    assert names(tmp_path) == []


def test_redirections_are_followed(server, tmp_path):
    server.files["/b"] = CONTENT
    server.moods = [f"to {server.address}/b"]
    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RunError, match=r"cannot be written.*--data-dir"):
        fetch(server, tmp_path / "file")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(RunError, match="Permission denied"):
        fetch(server, closed)


def test_a_full_disk(server, tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_fetch.os, "fsync", full)
    with pytest.raises(RunError, match=r"No space left on device; free some space"):
        fetch(server, tmp_path)
    assert "a" not in names(tmp_path)


def test_two_programs_do_not_write_one_file(server, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / ".a.part").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RunError, match="another program"):
            fetch(server, tmp_path)


@pytest.fixture
def toy(server):
    """Two public files, one without an address."""
    server.files |= {"/one": b"first", "/deep/two": b"second"}
    return source_of(
        file_of(b"first", "one", url=f"{server.address}/one"),
        file_of(b"second", "deep/two", url=f"{server.address}/deep/two"),
        file_of(b"third", "derived", how="It is made."),
    )


def test_a_source_of_several_files(server, toy, tmp_path):
    told = []
    result = fetch_source(
        toy, tmp_path, report=lambda done, total: told.append((done, total)), patience=QUICK
    )
    assert [file.path for file in result.fetched] == ["one", "deep/two"]
    assert [file.path for file in result.without_address] == ["derived"]
    assert (tmp_path / "toy" / "deep" / "two").read_bytes() == b"second"
    assert told[-1] == (11, 11)
    again = fetch_source(toy, tmp_path, patience=QUICK)
    assert not again.fetched
    assert [file.path for file in again.before] == ["one", "deep/two"]
    assert len(server.asked) == 2


def test_a_damaged_file_is_fetched_anew(server, toy, tmp_path):
    fetch_source(toy, tmp_path, patience=QUICK)
    (tmp_path / "toy" / "one").write_bytes(b"f1rst")
    result = fetch_source(toy, tmp_path, patience=QUICK)
    assert [file.path for file in result.fetched] == ["one"]
    assert (tmp_path / "toy" / "one").read_bytes() == b"first"


def test_files_in_other_places_count(server, toy, tmp_path, monkeypatch):
    fetch_source(toy, tmp_path / "shared", patience=QUICK)
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path / "shared"))
    assert len(fetch_source(toy, tmp_path / "mine", patience=QUICK).before) == 2
    assert not (tmp_path / "mine").exists()


def test_an_archive_stands_for_its_files(server, tmp_path):
    source = source_of(file_of(b"x", "inside", url=f"{server.address}/no", archive="all.tar"))
    (tmp_path / "toy").mkdir()
    archive = tmp_path / "toy" / "all.tar"
    archive.write_bytes(b"")
    with pytest.raises(DataError, match=r"all\.tar"):
        fetch_source(source, tmp_path, patience=QUICK)
    (tmp_path / "inside").write_bytes(b"x")
    archive = archive.rename(tmp_path / "other")
    with tarfile.open(tmp_path / "toy" / "all.tar", "w:xz") as whole:
        whole.add(tmp_path / "inside", "deep/inside")
    _archive_digests.cache_clear()
    assert fetch_source(source, tmp_path, patience=QUICK).before == source.files


def test_a_mirror_replaces_all_addresses(server, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_MIRROR", f"{server.address}/mirror/")
    server.files = {"/mirror/toy/one": b"first", "/mirror/toy/deep/two": b"second"}
    result = fetch_source(toy, tmp_path, patience=QUICK)
    assert len(result.fetched) == 2
    assert [file.path for file in result.without_address] == ["derived"]
    server.files["/mirror/toy/derived"] = b"third"
    assert [file.path for file in fetch_source(toy, tmp_path).fetched] == ["derived"]
    del server.files["/mirror/toy/one"]
    with pytest.raises(DataError, match="/mirror/toy/one cannot be downloaded"):
        fetch_source(toy, tmp_path / "other", patience=QUICK)


def test_a_mirror_must_be_on_the_web(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_MIRROR", "/home/mirror")
    with pytest.raises(ConfigError, match="PHYSSM_MIRROR must start with http"):
        fetch_source(toy, tmp_path)
