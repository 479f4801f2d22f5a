"""Replies that are only repeated: an object that stands in the data is no verdict on the data."""

import contextlib
import json
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

_MOST_BRACES = 200
"""Places of a text where an object may begin that are looked at."""
_DECODER = json.JSONDecoder()


def repeats_data(reply: BaseModel, holes: Mapping[str, str]) -> bool:
    """Whether a reply is an object that the data itself holds.

    A model that repeats what it reads would else let a document write its own verdict, whose
    evidence is found in the document too.

    Args:
        reply: Well-formed.
        holes: What was shown, encoded as JSON.
    """
    said = reply.model_dump(mode="json")
    # Quotes of a text come escaped; hardly any text has all the names of a reply.
    marks = [f'\\"{name}\\"' for name in said]
    shown = (value for value in holes.values() if all(mark in value for mark in marks))
    return any(found == said for value in shown for found in _objects_in(value))


def _objects_in(value: str) -> Iterator[object]:
    for text in _texts(_decoded(value)):
        start = text.find("{")
        for _ in range(_MOST_BRACES):
            if start < 0:
                break
            with contextlib.suppress(ValueError, RecursionError):
                yield _DECODER.raw_decode(text, start)[0]
            start = text.find("{", start + 1)


def _decoded(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None  # Holes may hold a word of the settings as well.


def _texts(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item)
    elif isinstance(data, dict):
        for item in data.values():
            yield from _texts(item)
