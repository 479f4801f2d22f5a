"""Reading text: UTF-8 or a clear refusal."""

import codecs
import re
import unicodedata
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ragforge.errors import DataError

Form: TypeAlias = Literal["NFC", "NFKC"]
_MOST_MARKS: Final = 100
"""Of one character; no script comes near it."""
_SIGNS: Final = re.compile(r"[^\w\s\x00-\x7f]{101,}")
"""Marks are no parts of words to Python; so many signs in a row may be marks."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        DataError: The file is missing, is a folder, or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file without its byte order mark, line ends as they are.

    Raises:
        DataError: The file cannot be read, is binary, or is in another encoding.
    """
    return decode(read_bytes(path), str(path))


def decode(raw: bytes, where: str) -> str:
    """Decode UTF-8 text.

    Args:
        raw: The bytes of a whole file.
        where: What the error message names.

    Raises:
        DataError: The bytes are UTF-16, hold a NUL byte, or are not UTF-8.
    """
    if raw.startswith(_UTF16_MARKS):
        raise DataError(f"{where}: is UTF-16; only UTF-8 is read (convert it with iconv)")
    if b"\0" in raw:
        raise DataError(f"{where}: is binary (holds a NUL byte); only UTF-8 text is read")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8; "
            "only UTF-8 is read (convert it with iconv)"
        ) from error
