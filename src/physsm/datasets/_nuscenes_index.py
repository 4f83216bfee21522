"""Index of the labels and all their windows, cached after the first read."""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from physsm._errors import DataError
from physsm._whole_files import whole_file
from physsm.datasets._nuscenes_labels import LabelTable, read_labels
from physsm.datasets._nuscenes_windows import SceneTargets, find_windows
from physsm.datasets._sources import cache_folder, data_folders, locate

_FORMAT = 1  # version of the cached file; increase it when the arrays or their meaning change
SOURCE = "nuscenes_pred_2hz"
_ARCHIVE = "labels.tar.xz"
_FOLDER = "label"


@dataclass(frozen=True, eq=False)
class LabelIndex:
    """Label rows, and the windows of all scenes: `scene` is the index into `table.scenes`."""

    table: LabelTable
    scene: Int[np.ndarray, " windows"]
    windows: SceneTargets


def locate_labels(data_dir: str | Path | None = None) -> Path:
    """Path of the label archive, or of the folder `label` as in the repository of the source."""
    for folder in data_folders(data_dir):
        for name in (_ARCHIVE, _FOLDER):
            if (path := folder / SOURCE / name).exists():
                return path
    return locate(SOURCE, _ARCHIVE, data_dir)


def read_index(path: Path) -> LabelIndex:
    """Index of a label archive or folder, from the cache if possible."""
    cached = cache_folder() / "index" / f"nuscenes-{_digest(path)}.npz"
    # Any error in a cached file is harmless: the index can be built again.
    with contextlib.suppress(Exception):
        return _unpack(cached.read_bytes())
    table = read_labels(path)
    parts = [find_windows(table.scene(i)) for i in range(len(table.scenes))]
    index = LabelIndex(
        table=table,
        scene=np.repeat(np.arange(len(parts)), [len(part.agent) for part in parts]),
        windows=SceneTargets(*(np.concatenate(columns) for columns in zip(*parts, strict=True))),
    )
    # A cache that cannot be written only costs a second at the next start.
    with contextlib.suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(cached) as stream:
            stream.write(_pack(index))
    return index


def _digest(path: Path) -> str:
    """Digest of the names, sizes and modification times of all files."""
    files = sorted(path.glob("*/*.txt")) if path.is_dir() else [path]
    try:
        facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", path=str(path)) from None
    return hashlib.sha256(repr((_FORMAT, str(path.resolve()), facts)).encode()).hexdigest()[:32]


def _pack(index: LabelIndex) -> bytes:
    """Arrays as an npz file after the digest of its bytes, which reveals damage."""
    arrays: dict[str, Any] = {"window_scene": index.scene}
    arrays |= {field.name: getattr(index.table, field.name) for field in fields(index.table)}
    arrays |= {f"window_{name}": column for name, column in index.windows._asdict().items()}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    content = stream.getvalue()
    return hashlib.sha256(content).digest() + content


def _unpack(content: bytes) -> LabelIndex:
    digest, content = content[:32], content[32:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("damaged")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = dict(stored)
    columns: dict[str, Any] = {field.name: arrays[field.name] for field in fields(LabelTable)}
    for name in ("scenes", "official"):
        columns[name] = tuple(columns[name].tolist())
    return LabelIndex(
        table=LabelTable(**columns),
        scene=arrays["window_scene"],
        windows=SceneTargets(*(arrays[f"window_{name}"] for name in SceneTargets._fields)),
    )
