"""Shapes that programs are compiled for: few of them, by padding."""

from __future__ import annotations


def rounded_up(steps: int) -> int:
    """The next of 16, 32, 48, and so on; above 256, multiples of at most a sixteenth."""
    unit = 16
    while unit * 16 < steps:
        unit *= 2
    return -(-steps // unit) * unit
