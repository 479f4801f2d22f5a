"""Text of files: UTF-8 or a clear refusal, normal forms, and how messages repeat it."""

import codecs
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ragforge.deferred import pattern
from ragforge.errors import DataError, UsageError

Form: TypeAlias = Literal["NFC", "NFD", "NFKC"]
_MOST_MARKS: Final = 100
"""Of one character; no script comes near it."""
_SIGN: Final = pattern(r"[^\w\s\x00-\x7f]")
_SIGNS: Final = pattern(r"[^\w\s\x00-\x7f]{101,}")
"""Marks are no parts of words to Python; so many signs in a row may be marks."""
_LINE_ENDS: Final = pattern("\r\n|[\r\v\f\x85]")
_INVISIBLE: Final = pattern("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")
_EITHER: Final = pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")

SHOWN_CHARS = 80
"""How much of a faulty value an error message repeats."""
_NAME: Final = pattern(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def normalize(form: Form, text: str) -> str:
    """Return the normal form of a text, of a run of combining marks the first hundred; idempotent.

    Source: `unicodedata.normalize`, Unicode Standard Annex 15.
    """
    if text.isascii():
        return text
    fewer = _fewer_marks(text)
    formed = unicodedata.normalize(form, fewer)
    return fewer if formed == fewer else _fewer_marks(formed)


def normalise(text: str) -> str:
    """Return the text in the form that offsets and ids refer to; idempotent.

    NFC; every line end (also form feed and vertical tab) is one newline; byte order marks and
    control characters other than tab and newline are dropped, and of a run of combining marks all
    but the first hundred. Blanks stay: they carry meaning in code.
    """
    if _EITHER.search(text):
        text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))
    return normalize("NFC", text)


def is_normalized(form: Form, text: str) -> bool:
    """Whether `normalize` would leave a text as it is."""
    return _fewer_marks(text) == text and unicodedata.is_normalized(form, text)


def _fewer_marks(text: str) -> str:
    """Return a text in which no character carries more marks than any script puts there."""
    # So many signs in a row have one at each place of a grid that is as wide.
    if text.isascii() or not _SIGN.search(text[_MOST_MARKS :: _MOST_MARKS + 1]):
        return text
    return _SIGNS.sub(_cut_marks, text)


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
        raise DataError(
            f"{where}: is UTF-16; only UTF-8 is read (convert it with `iconv -f UTF-16 -t UTF-8`)"
        )
    if b"\0" in raw:
        raise DataError(f"{where}: is binary (holds a NUL byte); only UTF-8 text is read")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: byte {error.start} (0x{raw[error.start]:02x}) is not UTF-8; "
            "only UTF-8 is read (convert it with iconv; what Windows or Excel wrote with "
            "`iconv -f WINDOWS-1252 -t UTF-8`)"
        ) from error


def shown(value: object) -> str:
    """Return a faulty value as a message repeats it: escaped, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def shown_names(names: Sequence[str], most: int = 3) -> str:
    """Return the first of some names as a message shows them, and whether there are more."""
    more = ", …" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def escaped(name: str) -> str:
    r"""Return a name on one line: what is not printed, such as a line feed, as `\n`."""
    return "".join(one if one.isprintable() else _escaped(one) for one in name)


def as_unicode(name: str) -> str:
    r"""Return a name of a file as records can hold it: bytes that are not UTF-8 as `\xff`."""
    return name if is_unicode(name) else escaped(name)


def is_unicode(text: str) -> bool:
    """Return whether a text can be written: JSON can spell half a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _escaped(character: str) -> str:
    # Python holds a byte of a file name that is not UTF-8 as half a surrogate pair.
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]


def checked_name(name: str) -> str:
    """Return the name of a run or system if it is fit for a file name.

    Raises:
        UsageError: It is not.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"name {name!r}: expected up to 100 letters, digits, dots, dashes, plus signs and "
            "underscores, starting with a letter or digit"
        )
    return name
