"""Server-sent events: the pieces of an answer that comes as a stream.

Source: HTML Living Standard, section 9.2.
"""

import re
from collections.abc import Iterator
from typing import Final

from ragforge.deferred import dataclass

MIME: Final = "text/event-stream"
DONE: Final = "[DONE]"
"""The data of the last event, of services that stream as OpenAI does."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream."""

    data: str
    name: str = ""


def each_event(text: str) -> Iterator[StreamEvent]:
    """Yield the events of a stream; comments are left out, an event without data too."""
    data: list[str] = []
    name = ""
    # The last event may lack the empty line behind it.
    for line in [*_LINE_END.split(text.removeprefix("\ufeff")), ""]:
        if not line:
            if data:
                yield StreamEvent("\n".join(data), name)
            data, name = [], ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
