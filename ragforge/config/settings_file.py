"""Settings files: where one is looked for, and how far one is trusted.

Content is read once: what is compared with what the user trusted is what is used.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.config.trust import digest_of, trust_of
from ragforge.errors import ConfigError

DEFAULT_FILE: Final = "ragforge.toml"
"""Read from the working directory when no file is named."""
_MOST_BYTES: Final = 1 << 16
_MOST_DOTS: Final = 256


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file as it was read.

    Args:
        shown: Its path in messages.
        content: All of it.
        trusted: Whether it may set everything: it was named, or the user trusts these bytes here.
        changed: Whether the user trusted it when it held something else.
    """

    shown: str
    content: bytes
    trusted: bool
    changed: bool = False

    @property
    def line(self) -> str:
        """What is said of it when it is read without having been named."""
        return f"settings: {self.shown} ({'trusted' if self.trusted else 'not trusted'})"


def named_file(path: Path) -> SettingsFile:
    """Read a file that the user named, which is trusted.

    Raises:
        ConfigError: It cannot be read.
    """
    return SettingsFile(str(path), _content(path), trusted=True)


def find_file() -> SettingsFile | None:
    """Read `ragforge.toml` of the working directory; None where there is none.

    Raises:
        ConfigError: It cannot be read, or is made to use up memory.
    """
    path = Path(DEFAULT_FILE)
    return found_file(path) if path.is_file() else None


def found_file(path: Path) -> SettingsFile:
    """Read a file that is trusted no further than the user said.

    Raises:
        ConfigError: It cannot be read, or is made to use up memory.
    """
    shown = f"./{DEFAULT_FILE}" if path == Path(DEFAULT_FILE) else str(path)
    if not path.is_file():
        raise ConfigError(f"{shown}: no such file")
    content = _content(path, _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{shown}: is too large: expected at most {_MOST_BYTES:,} bytes")
    # A key of many parts takes memory by the square of their number: 4 GB for one of 64 kB.
    if any(line.count(b".") > _MOST_DOTS for line in content.splitlines()):
        raise ConfigError(f"{shown}: is odd: expected at most {_MOST_DOTS} dots in a line")
    known = trust_of(path)
    trusted = known is not None and known.sha256 == digest_of(content)
    return SettingsFile(shown, content, trusted, changed=known is not None and not trusted)


def parse(file: SettingsFile) -> dict[str, object]:
    """Return the content as TOML.

    Raises:
        ConfigError: It is none.
    """
    try:
        return tomllib.loads(file.content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file.shown}: is not UTF-8 text") from error
    except ValueError as error:  # a number may have more digits than Python reads
        raise ConfigError(f"{file.shown}: is not TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{file.shown}: is nested too deeply for a settings file") from error


def _content(path: Path, most_bytes: int = -1) -> bytes:
    """Return the bytes of a file, all of them or so many."""
    try:
        with path.open("rb") as stream:
            return stream.read(most_bytes)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
