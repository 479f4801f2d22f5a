"""Reading text: UTF-8 or a clear refusal."""

import codecs
from pathlib import Path

from ragforge.errors import DataError

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
