"""The number of examples of a test with random inputs, which `make fuzz` raises."""

import os


def examples(default: int) -> int:
    """`default`, multiplied by the environment variable PHYSSM_FUZZ where it is set."""
    return default * int(os.environ.get("PHYSSM_FUZZ", "1"))
