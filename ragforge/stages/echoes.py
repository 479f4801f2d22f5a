"""Replies that are only repeated: an object that stands in the data is no verdict on the data."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pydantic import BaseModel

from ragforge.files.unicode_forms import normalize

_BEGINS = re.compile(r"\{\s*\"")
_MOST_OBJECTS = 1000
"""Places of a text where an object may begin that are looked at; one with more counts as one that
holds any object."""
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
    texts = (text for value in holes.values() if "{" in value for text in _texts(_decoded(value)))
    return any(_holds(text, said) for text in texts if _has_all(text, names))


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
    text = normalize("NFKC", str(value)).casefold()
    if text.isascii():
        return "".join(text.split())
    return "".join(one for one in text if not one.isspace() and unicodedata.category(one) != "Cf")


def _has_all(text: str, names: Sequence[str]) -> bool:
    """Whether a text may hold an object of these names; hardly any has all of them."""
    if "{" not in text:
        return False
    folded = str(_folded(text))
    return all(name in folded for name in names)


def _holds(text: str, said: object) -> bool:
    starts = [found.start() for found in islice(_BEGINS.finditer(text), _MOST_OBJECTS + 1)]
    # What is not looked at must not be where a verdict hides.
    return len(starts) > _MOST_OBJECTS or any(_object_at(text, start) == said for start in starts)


def _object_at(text: str, start: int) -> object:
    """Return the object that begins at a place, folded; None where there is none."""
    try:
        return _folded(_DECODER.raw_decode(text, start)[0])
    except (ValueError, RecursionError):
        return None


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
