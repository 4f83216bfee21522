"""Lines of the map, resampled and cut into short pieces in a spatial index."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree

from physsm._errors import DataError
from physsm.datasets._nuscenes_scene import Polyline
from physsm.datasets._nuscenes_windows import into_frame

SPACING: Final = 0.5  # m between points
POINTS: Final = 30  # per piece
PIECES: Final = 384  # per window
AHEAD: Final = 30.0  # m from the agent to the centre of its map
REACH: Final = 100.0  # m along and across from that point
COVERED: Final = 0.95  # share of a scene's rows that must be near a lane of the vector map

# Indices in the one-hot code of 20 kinds, as numbered by Waymo's map features.
KINDS: Final = {
    "LANE_SURFACE_STREET": 2,
    "ROAD_LINE_BROKEN_SINGLE_WHITE": 6,
    "ROAD_LINE_SOLID_SINGLE_WHITE": 7,
    "ROAD_LINE_SOLID_SINGLE_YELLOW": 11,
}
_MOST_POINTS = 5_000_000  # the largest city has 400,000
_LARGEST = 1 << 28  # bytes of the unpacked arrays


class NearPieces(NamedTuple):
    """Pieces around a point, nearest first, in the frame of the agent: first coordinate ahead,
    second to the left, in m; 0 where not `valid`.
    """

    points: Float[np.ndarray, "pieces 30 2"]
    kind: Int[np.ndarray, " pieces"]
    valid: Bool[np.ndarray, "pieces 30"]


class VectorMap:
    """Lines resampled at about 0.5 m, including both ends, in pieces of up to 30 points.

    `points` (pieces, 30, 2) in m, `valid` (pieces, 30), `kind` (pieces,) as in `KINDS`. Other
    kinds and lines of zero length are omitted.
    """

    def __init__(self, lines: Sequence[Polyline], path: str):
        drawn = [line for line in lines if line.kind in KINDS and np.ptp(line.points, axis=0).any()]
        kinds = np.array([KINDS[line.kind] for line in drawn], int)
        dense, count = _resampled(drawn, path)
        line = np.repeat(np.arange(len(count)), count)
        index = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
        start = index % POINTS == 0
        piece = np.cumsum(start) - 1
        self.points = np.zeros((int(start.sum()), POINTS, 2))
        self.valid = np.zeros(self.points.shape[:2], bool)
        self.points[piece, index % POINTS] = dense
        self.valid[piece, index % POINTS] = True
        self.kind = kinds[line[start]]
        middle = self.points.sum(axis=1) / np.maximum(self.valid.sum(axis=1), 1)[:, None]
        self._tree = KDTree(middle) if len(middle) else None

    def near(self, origin: Float[np.ndarray, " 2"], heading: float) -> NearPieces:
        """Up to 384 pieces for an agent at `origin` (m) with a heading (rad).

        Only points within 100 m, along and across, of the point 30 m ahead are valid. Pieces are
        ordered by the distance from that point to the mean of their valid points.
        """
        centre = origin + AHEAD * np.array([np.cos(heading), np.sin(heading)])
        # A piece extends at most half its length from its centre.
        radius = np.sqrt(2) * REACH + POINTS * SPACING
        near = self._tree.query_ball_point(centre, radius) if self._tree else []
        chosen = np.sort(np.asarray(near, int))
        turned = into_frame(self.points[chosen][None], origin[None], np.array([heading]))[0]
        from_centre = turned - [AHEAD, 0.0]
        valid = self.valid[chosen] & (np.abs(from_centre) <= REACH).all(axis=-1)
        number = valid.sum(axis=1)
        mean = (from_centre * valid[..., None]).sum(axis=1) / np.maximum(number, 1)[:, None]
        distance = np.where(number > 0, np.hypot(mean[:, 0], mean[:, 1]), np.inf)
        order = np.argsort(distance, kind="stable")[: min(PIECES, int((number > 0).sum()))]
        points = np.where(valid[order, :, None], turned[order], 0)
        return NearPieces(points, self.kind[chosen[order]], valid[order])


def _resampled(
    lines: Sequence[Polyline], path: str
) -> tuple[Float[np.ndarray, "points 2"], Int[np.ndarray, " lines"]]:
    """Points of all lines at equal steps, and the number of points of each line."""
    if not lines:
        return np.zeros((0, 2)), np.zeros(0, int)
    sizes = np.array([len(line.points) for line in lines])
    xy = np.concatenate([np.asarray(line.points, float) for line in lines])
    steps = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T)
    ends = np.cumsum(sizes)
    steps[ends[:-1]] = 0  # from the end of one line to the start of the next
    travelled = np.cumsum(steps)
    start, stop = travelled[ends - sizes], travelled[ends - 1]
    intervals = np.maximum(np.round((stop - start) / SPACING), 1)
    if intervals.sum() > _MOST_POINTS:
        raise DataError("the map's lines are longer than those of any city", path=path)
    count = intervals.astype(int) + 1
    index = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    share = index / np.repeat(intervals, count)
    line = np.repeat(np.arange(len(lines)), count)
    # Lines share end points, so positions are counted in lines, not in metres.
    owner = np.repeat(np.arange(len(lines)), sizes)
    known = 2 * owner + (travelled - start[owner]) / (stop - start)[owner]
    positions = 2 * line + share
    dense = np.stack([np.interp(positions, known, xy[:, axis]) for axis in (0, 1)], axis=1)
    return dense, count


def read_vector_maps(path: Path) -> dict[str, VectorMap]:
    """Maps of vector_maps_global.npz by name, in global coordinates (m)."""
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise ValueError(f"it unpacks to more than {_LARGEST} bytes")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        names = [str(name) for name in arrays.pop("type_names")]
        map_names = sorted({name.split("__")[0] for name in arrays})
        lines = {name: _stored_lines(arrays, name, names) for name in map_names}
    except Exception as error:  # zip and npy readers raise many kinds of errors on damaged bytes
        detail = str(error).split("\n")[0][:120]
        message = f"the maps cannot be read: {detail}"
        raise DataError(message, path=str(path), hint="download the file again") from None
    return {name: VectorMap(lines[name], str(path)) for name in map_names}


def _stored_lines(arrays: dict[str, np.ndarray], name: str, kinds: list[str]) -> list[Polyline]:
    xy, start, kind = (arrays[f"{name}__{part}"] for part in ("xy", "start", "type"))
    if xy.ndim != 2 or xy.shape[1] != 2 or not (np.abs(xy) < 1e5).all():
        raise ValueError(f"{name}__xy must hold finite points of a city in m")
    rising = start.ndim == 1 and len(start) >= 1 and (np.diff(start) >= 1).all()
    if not rising or start[0] != 0 or start[-1] != len(xy) or kind.shape != (len(start) - 1,):
        raise ValueError(f"{name}__start or {name}__type does not fit {name}__xy")
    if len(kind) and not (0 <= kind.min() <= kind.max() < len(kinds)):
        raise ValueError(f"{name}__type has a type that is not in type_names")
    return [
        Polyline(kinds[kind[i]], xy[start[i] : start[i + 1]].astype(float))
        for i in range(len(kind))
    ]


def read_columns(path: Path, *columns: str) -> list[tuple[str, ...]]:
    """Columns of a small CSV file with a header, as text."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            header = reader.fieldnames or ()
            rows = list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"the table cannot be read: {error}", path=str(path)) from None
    for name in columns:
        if name not in header:
            raise DataError("the column is missing", path=str(path), column=name)
        for number, row in enumerate(rows, 2):
            if not row[name]:
                raise DataError("the cell is empty", path=str(path), row=number, column=name)
    return [tuple(row[name] for name in columns) for row in rows]


def read_scene_maps(path: Path) -> dict[str, str]:
    """Map name of each scene, from scene_to_map.csv."""
    return {row[0]: row[1] for row in read_columns(path, "scene", "map")}


def read_covered(path: Path) -> frozenset[str]:
    """Scenes whose rows are near lanes of the vector maps, from scene_map_coverage.csv."""
    share = "share_of_rows_within_8m_of_a_mini_vector_lane"
    covered = set()
    for number, (scene, cell) in enumerate(read_columns(path, "scene", share), 2):
        try:
            value = float(cell)
        except ValueError:
            value = np.nan
        if not 0 <= value <= 1:
            message = f"it is {cell!r:.40}, not a share from 0 to 1"
            raise DataError(message, path=str(path), row=number, column=share)
        if value > COVERED:
            covered.add(scene)
    return frozenset(covered)
