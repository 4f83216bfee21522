"""The cards of the sources: complete, and true of the files where those are here."""

import hashlib
import io
import os
import re
import tarfile
from importlib import resources
from pathlib import Path

import pytest

from physsm._errors import ConfigError, DataError
from physsm._registry import find, names_in
from physsm.datasets._sources import (
    File,
    cache_folder,
    data_folders,
    locate,
    present,
    read_source,
    source_names,
)

DATA = os.environ.get("PHYSSM_DATA")
RAW = re.compile(r"https://raw\.githubusercontent\.com/[\w-]+/[\w.-]+/[0-9a-f]{40}/[\w./-]+")


@pytest.fixture(params=source_names())
def source(request):
    return read_source(request.param)


def test_every_card_is_complete(source):
    for text in (source.title, source.licence, source.origin, source.citation):
        assert text.strip() == text != ""
    assert source.files
    paths = [file.path for file in source.files]
    assert len(set(paths)) == len(paths)
    for file in source.files:
        assert file.bytes > 0
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in file.sha256)
        assert not Path(file.path).is_absolute()
        assert ".." not in Path(file.path).parts
        if file.url is None:
            assert file.how
            assert file.how.endswith(".")
        else:
            assert file.how is None
            assert RAW.fullmatch(file.url)
            assert file.url.endswith(Path(file.path).name)


def test_conditions_are_reported():
    for name in source_names():
        source = read_source(name)
        if "NC" in source.licence:
            assert "non-commercial" in (source.terms or "")
    assert {name for name in source_names() if "nuscenes" in name} == {
        "nuscenes_pred_2hz",
        "nuscenes_scenarionet",
    }


def test_all_labels_of_nuscenes_are_listed():
    paths = [file.path for file in read_source("nuscenes_pred_2hz").files if file.url]
    assert sum(path.startswith("label/train/scene-") for path in paths) == 475
    assert sum(path.startswith("label/val/scene-") for path in paths) == 138


def test_every_data_set_names_sources_that_exist():
    for name in names_in("datasets"):
        assert set(find("datasets", name, "DATASET").sources) <= set(source_names())


def test_cards_are_part_of_the_package():
    folder = resources.files("physsm.datasets").joinpath("sources")
    found = {entry.name for entry in folder.iterdir()}
    assert {f"{name}.toml" for name in source_names()} <= found
    assert "nuscenes_pred_2hz.txt" in found


def packed(archive: Path) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:xz") as members:
        return {
            member.name.removeprefix("./"): stream.read()
            for member in members
            if (stream := members.extractfile(member)) is not None
        }


@pytest.mark.skipif(not DATA, reason="PHYSSM_DATA does not name a folder of data")
def test_cards_are_true_of_the_files(source):
    folder = Path(DATA or "") / source.name
    if not folder.is_dir():
        pytest.skip(f"there is no {source.name} in PHYSSM_DATA")
    archives = {file.archive for file in source.files if file.archive}
    inside: dict[str, bytes] = {}
    for archive in archives:
        inside |= packed(folder / archive) if (folder / archive).exists() else {}

    def content(file: File) -> bytes:
        path = folder / file.path
        return path.read_bytes() if path.exists() else inside[file.path]

    for file in source.needed:
        assert hashlib.sha256(content(file)).hexdigest() in file.sha256, file.path
        assert len(content(file)) == file.bytes, file.path


def test_an_unknown_source_is_named():
    with pytest.raises(ConfigError, match="did you mean lynx_hare"):
        read_source("lynx_hair")
    with pytest.raises(ConfigError, match="there are ced, covid_jhu"):
        read_source("xyz")


def test_places_are_searched_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path / "environment"))
    assert data_folders(tmp_path / "named") == [
        tmp_path / "named",
        tmp_path / "environment",
        cache_folder(),
    ]
    monkeypatch.delenv("PHYSSM_DATA")
    assert data_folders() == [cache_folder()]
    assert cache_folder().is_absolute()


def test_a_file_comes_from_the_first_place_that_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path / "second"))
    for place in ("first", "second"):
        (tmp_path / place / "toy").mkdir(parents=True)
    (tmp_path / "second" / "toy" / "a").write_text("")
    assert locate("toy", "a", tmp_path / "first") == tmp_path / "second" / "toy" / "a"
    (tmp_path / "first" / "toy" / "a").write_text("")
    assert locate("toy", "a", tmp_path / "first") == tmp_path / "first" / "toy" / "a"


def test_a_lacking_file_is_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError) as caught:
        locate("drone_crazyflie", "log99", tmp_path)
    for part in (
        *("drone_crazyflie", "log99", str(tmp_path / "none" / "drone_crazyflie")),
        *("physsm data get drone_crazyflie", "PHYSSM_DATA"),
    ):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="it has no public address"):
        locate("nuscenes_scenarionet", "vector_maps_global.npz", tmp_path)


def test_present_files_and_archives(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSSM_DATA", str(tmp_path))
    monkeypatch.setattr("physsm.datasets._sources.cache_folder", lambda: tmp_path / "cache")
    source = read_source("nuscenes_pred_2hz")
    assert present(source) == {}
    folder = tmp_path / source.name
    (folder / "label" / "val").mkdir(parents=True)
    one = folder / "label" / "val" / "scene-0003.txt"
    one.write_text("")
    assert present(source) == {"label/val/scene-0003.txt": one}
    (folder / "labels.tar.xz").write_text("")
    found = present(source)
    assert len(found) == 613
    assert found["label/val/scene-0003.txt"] == one
