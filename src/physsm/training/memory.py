"""Memory that the process holds and no longer uses."""

from __future__ import annotations

import ctypes


def give_back_memory() -> None:
    """Give back to the system what compiling has left: with glibc about one gigabyte, which would
    otherwise stay beside that of training. Other C libraries are left alone.
    """
    try:
        program = ctypes.CDLL(None)
    except (TypeError, OSError):  # no such look-up, as on Windows
        return
    trim = getattr(program, "malloc_trim", None)
    if trim is not None:
        trim(0)
