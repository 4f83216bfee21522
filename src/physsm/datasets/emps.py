"""EMPS, an electro-mechanical positioning system (Janot, Gautier and Brunot 2019).

A drive follows a reference, without and with pulses of its motor's voltage.

The channel is the position `q` (m), the control the motor's `force` (N), which is the recorded
voltage times a constant of the drive. The pulses are part of that voltage.
"""

from __future__ import annotations

import io
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import scipy.io
from jaxtyping import Float

from physsm._errors import ConfigError, DataError
from physsm._values import Layout, Panel, Series
from physsm.data.scale import channel_moments
from physsm.data.window import Sizes, windows
from physsm.datasets._dataset import Dataset, Part, RawRows, Split
from physsm.datasets._sources import locate

_SOURCE = "emps"
_PLAIN, _PULSES = "DATA_EMPS", "DATA_EMPS_PULSES"
_RATE = 1000  # samples in a second
_SEEN, _AHEAD, _BETWEEN = 1.0, 2.0, 0.1  # s: context, target, stride
_TRAINING = 14.0  # s of the first recording
_NAMES: Final = ("t", "qm", "vir", "gtau")
_MAGIC, _VERSION, _HEADER, _COMPRESSED = b"MATLAB 5.0 MAT-file", b"\x00\x01IM", 128, 15
_SLOWEST = 50  # samples per row; with more, windows would have too few rows


@dataclass(frozen=True, eq=False)
class Recording:
    """Recording with samples every 1 ms: position in m, force of the motor in N."""

    position: Float[np.ndarray, " samples"]
    force: Float[np.ndarray, " samples"]


def read_recording(path: Path) -> Recording:
    """Recording of a file with `t` (s), `qm` (m), `vir` (V) and `gtau` (N/V), checked."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    _check_whole(path, content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # warnings about a file are errors
            variables = scipy.io.loadmat(io.BytesIO(content), variable_names=_NAMES)
    except Exception as error:  # the reader does not document its errors
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}") from error
    times, position, voltage, gain = (_column(path, variables, name) for name in _NAMES)
    if len(gain) != 1 or not len(times) == len(position) == len(voltage):
        raise DataError(f"{path}: t, qm and vir must be of one length, and gtau one number")
    if len(times) < 2 or not np.allclose(np.diff(times), 1 / _RATE, rtol=1e-3):
        raise DataError(f"{path}: the times must be 1 ms apart")
    with np.errstate(over="ignore"):
        force = gain[0] * voltage
    if not np.isfinite(force).all():
        raise DataError(f"{path}: gtau*vir is not finite")
    return Recording(position, force)


def strict(*, thin: int = 10, data_dir: str | Path | None = None) -> Split:
    """Context of one second, target of two; every `thin`-th sample is a row (10: 100 Hz).

    The first 14 s without pulses are for training and, after a gap of one window, the remainder for
    validation. The recording with pulses follows the same reference at the same times, to 0.2 mm:
    its motion after 14 s, which training did not show, is the test.

    Errors are in standard deviations of the training part.
    """
    if not 1 <= thin <= _SLOWEST:
        raise ConfigError(f"emps: thin must be 1 to {_SLOWEST} samples, but is {thin}")
    plain, pulses = (
        read_recording(locate(_SOURCE, f"{name}.mat", data_dir)) for name in (_PLAIN, _PULSES)
    )
    sizes = Sizes(*(round(span * _RATE / thin) for span in (_SEEN, _AHEAD, _BETWEEN)))
    after = round(_TRAINING * _RATE)
    behind = after + round((_SEEN + _AHEAD) * _RATE)
    train = _part(_PLAIN, plain, 0, after, thin, sizes)
    validation = _part(_PLAIN, plain, behind, len(plain.position), thin, sizes)
    test = _part(_PULSES, pulses, after, len(pulses.position), thin, sizes)
    _, scale = channel_moments(train.panel)
    return Split(
        train,
        validation,
        test,
        sizes,
        unit=scale,
        unit_words="the standard deviation in training",
        notes=(
            "The force was set by a controller that saw the position: the force of the future, "
            "which every model is given, tells of the position then.",
        ),
    )


DATASET: Final = Dataset(
    name="emps",
    summary="a positioning drive with friction: its position, and the force of its motor",
    system="emps",
    protocols={"strict": strict},
    sources=(_SOURCE,),
    units={"time": "s"},
)


def _check_whole(path: Path, content: bytes) -> None:
    """Raise an error unless every variable of the file is complete, with its checksum.

    SciPy's reader uses numbers before it checks them, and crashes on some damaged files.
    """
    if not (content.startswith(_MAGIC) and content[_HEADER - 4 : _HEADER] == _VERSION):
        raise DataError(f"{path} is not a MATLAB file of version 7")
    place = _HEADER
    while place < len(content):
        kind, size = (int.from_bytes(content[place + k : place + k + 4], "little") for k in (0, 4))
        place += 8
        try:
            if kind != _COMPRESSED or place + size > len(content):
                raise zlib.error("a variable is invalid or continues after the end")
            zlib.decompress(content[place : place + size])
        except zlib.error as error:
            raise DataError(
                f"{path} is damaged or truncated: {error}", hint="download it again"
            ) from error
        place += size


def _column(path: Path, variables: dict[str, object], name: str) -> Float[np.ndarray, " samples"]:
    column = variables.get(name)
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "fiu" or column.ndim != 2:
        raise DataError(f"{path} has no numbers called {name}")
    numbers = column.reshape(-1).astype(float)
    if column.shape[1] != 1 or not np.isfinite(numbers).all():
        raise DataError(f"{path}: {name} must be one column of finite numbers")
    return numbers


def _part(name: str, recording: Recording, start: int, stop: int, thin: int, sizes: Sizes) -> Part:
    """Part of the samples `start` to `stop` of a recording; every `thin`-th of them is a row.

    The force of a row is the mean up to the next row, because controls are held that long.
    """
    number = np.arange(start, stop, thin)
    if len(number) < sizes.context + sizes.horizon:
        raise DataError(f"the recording {name} is too short: it has no window after {start} ms")
    # The force after the last row is not used: samples end with that row.
    force = recording.force[start : number[-1] + 1]
    count = np.diff([*range(0, len(force), thin), len(force)])
    mean = np.add.reduceat(force, np.arange(0, len(force), thin)) / count
    series = Series(
        f"{name}@{start}", number / _RATE, recording.position[number][:, None], mean[:, None]
    )
    panel = Panel.from_series([series], ["q"], ["force"], Layout(series="recording"))
    chosen = windows(panel, sizes.context, sizes.horizon, sizes.stride)
    return Part(panel, chosen, (RawRows(name, number, after=thin - 1),))
