"""Standard input of a command."""

from __future__ import annotations

import sys

from physsm._errors import PhyssmError


def read_standard_input(most_characters: int) -> str:
    """At most so many characters of standard input, as UTF-8 text."""
    if sys.stdin is None:
        raise PhyssmError("standard input is closed: nothing can be read from it")
    try:
        return sys.stdin.buffer.read(4 * most_characters).decode("utf-8")[:most_characters]
    except UnicodeDecodeError as error:
        raise PhyssmError(f"standard input is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise PhyssmError(f"standard input cannot be read: {error.strerror}") from error
