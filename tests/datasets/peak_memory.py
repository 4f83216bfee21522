"""Peak memory of readers, measured in a process without the type checks of the tests, which would
make it several times as slow.
"""

import json
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any
from unittest.mock import patch

from physsm._registry import find
from physsm.datasets._dataset import Split


def asked_for(split: Split) -> int:
    """The bytes of a split, of arrays that parts share only once."""
    arrays = {}
    for part in (split.train, split.validation, split.test):
        panel = part.panel
        held = (panel.times, panel.values, panel.controls, *part.windows)
        for array in (*held, *(raw.number for raw in part.raw)):
            arrays[id(array)] = array.nbytes
    return sum(arrays.values())


def peak_memory(name: str, protocol: str, settings: dict[str, Any]) -> dict[str, int]:
    """Bytes at the peak while a split is read, and bytes of the split."""
    dataset = find("datasets", name, "DATASET")
    # No index of before.
    with tempfile.TemporaryDirectory() as cache, patch.dict("os.environ", XDG_CACHE_HOME=cache):
        tracemalloc.start()
        try:
            split = dataset.split(protocol, **settings)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return {"peak": peak, "asked_for": asked_for(split)}


if __name__ == "__main__":
    results = [peak_memory(*splits) for splits in json.loads(sys.argv[1])]
    Path(sys.argv[2]).write_text(json.dumps(results))
