"""Replies that are only repeated: an object that stands in the data is no verdict on the data."""

import contextlib
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

_MOST_BRACES = 200
"""Places of a text where an object may begin that are looked at."""
_DECODER = json.JSONDecoder(strict=False)


def repeats_data(reply: BaseModel, holes: Mapping[str, str]) -> bool:
    """Whether a reply is an object that the data itself holds.

    A model that repeats what it reads would else let a document write its own verdict, whose
    evidence is found in the document too. Blanks, signs without a glyph, the case of letters and
    whether a number stands in quotes make no other object of it.

    Args:
        reply: Well-formed.
        holes: What was shown, encoded as JSON.
    """
    fields = reply.model_dump(mode="json")
    said, names = _folded(fields), [str(_folded(name)) for name in fields]
    shown = (value for value in holes.values() if "{" in value)
    return any(found == said for value in shown for found in _objects_in(value, names))


def _folded(value: object) -> object:
    """Return JSON with texts without blanks and signs that have no glyph, in one case.

    Numbers and truth values are as their texts.
    """
    if isinstance(value, dict):
        return {_folded(name): _folded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    if text.isascii():
        return "".join(text.split())
    return "".join(one for one in text if not one.isspace() and unicodedata.category(one) != "Cf")


def _objects_in(value: str, names: Sequence[str]) -> Iterator[object]:
    """Yield the objects in the texts of a hole, folded; few texts have all names of a reply."""
    for text in _texts(_decoded(value)):
        folded = str(_folded(text)) if "{" in text else ""
        if not all(name in folded for name in names):
            continue
        start = text.find("{")
        for _ in range(_MOST_BRACES):
            if start < 0:
                break
            with contextlib.suppress(ValueError, RecursionError):
                yield _folded(_DECODER.raw_decode(text, start)[0])
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
