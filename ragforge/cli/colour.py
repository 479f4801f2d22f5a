"""Colours, where a terminal shows them: not in a pipe, nor where NO_COLOR is set."""

import os
from typing import TextIO


def has_colours(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them."""
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def bold(text: str, stream: TextIO | None) -> str:
    """Return a text in bold where a stream shows that."""
    return f"\x1b[1m{text}\x1b[0m" if has_colours(stream) else text


def red(text: str, stream: TextIO | None) -> str:
    """Return a text in red where a stream shows that."""
    return f"\x1b[31m{text}\x1b[0m" if has_colours(stream) else text


def green(text: str, stream: TextIO | None) -> str:
    """Return a text in green where a stream shows that."""
    return f"\x1b[32m{text}\x1b[0m" if has_colours(stream) else text
