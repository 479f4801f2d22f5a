"""Normal forms of foreign text in linear time.

To normalise is to sort the combining marks of each character, which takes time by the square of
their number: a megabyte of marks takes ten minutes, in one call that nothing can end.
"""

import re
import unicodedata
from typing import Final, Literal, TypeAlias

Form: TypeAlias = Literal["NFC", "NFKC"]
_MOST_MARKS: Final = 100
"""Of one character; no script comes near it."""
_SIGNS: Final = re.compile(r"[^\w\s\x00-\x7f]{101,}")
"""Marks are no parts of words to Python; so many signs in a row may be marks."""


def normalize(form: Form, text: str) -> str:
    """Return the normal form of a text, of a run of combining marks the first hundred; idempotent.

    Source: `unicodedata.normalize`, Unicode Standard Annex 15.
    """
    if text.isascii():
        return text
    return _fewer_marks(unicodedata.normalize(form, _fewer_marks(text)))


def is_normalized(form: Form, text: str) -> bool:
    """Whether `normalize` would leave a text as it is."""
    return _fewer_marks(text) == text and unicodedata.is_normalized(form, text)


def _fewer_marks(text: str) -> str:
    """Return a text in which no character carries more marks than any script puts there."""
    return text if text.isascii() else _SIGNS.sub(_cut_marks, text)


def _cut_marks(signs: re.Match[str]) -> str:
    kept: list[str] = []
    n_marks = 0
    for sign in signs[0]:
        n_marks = n_marks + 1 if unicodedata.category(sign)[0] == "M" else 0
        if n_marks <= _MOST_MARKS:
            kept.append(sign)
    return "".join(kept)
