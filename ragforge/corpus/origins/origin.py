"""What an origin of documents is, and how its address is shown."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from ragforge.errors import UsageError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|sig|credential", re.IGNORECASE)
_SECRET_CHARS = 4


@dataclass(frozen=True, slots=True)
class Origin:
    """Files of an origin as they are now.

    Args:
        files: Path, relative and posix, to what changes when the file does; "" where nothing tells,
            so that it is fetched each time.
        fetch: Writes the file of a path; returns why it is no document after all, else "". Raises
            DataError.
        at_once: How many are fetched at once.
    """

    files: Mapping[str, str]
    fetch: Callable[[str, Path], str]
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Address:
    """A URL whose variables are filled in, which is never shown, and the URL as it is shown."""

    full: str = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Longest first."""

    def cleared(self, message: object) -> str:
        """Return what another library says, in one line and without what is secret."""
        text = " ".join(str(message).split()).replace(self.full, self.shown)
        for secret in self.secrets:
            text = text.replace(secret, "…") if len(secret) >= _SECRET_CHARS else text
        return text


def address_of(url: str) -> Address:
    """Fill in the variables `${NAME}` of a URL; in its user and password they are escaped.

    Raises:
        UsageError: A variable is not set, or the password stands in the URL itself.
    """
    user = _user_of(url)
    if _VARIABLE.sub("", user.partition(":")[2]):
        scheme = url.partition("://")[0]
        raise UsageError(
            f"{scheme}://…: expected the password in the environment, got it in the address; write "
            "${NAME} for a variable NAME"
        )
    shown = shown_url(url)
    secrets: list[str] = []
    ends = url.index(user) + len(user) if user else 0

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise UsageError(f"{shown}: the environment has no variable {match[1]}")
        found = os.environ[match[1]]
        escaped = quote(found, safe="")
        secrets.extend((found, escaped))
        return escaped if match.end() <= ends else found

    full = _VARIABLE.sub(value, url)
    password = _user_of(full).partition(":")[2]
    named = [value for name, value in _parameters(full) if _SECRET_NAME.search(name)]
    told = {*secrets, *named, password, unquote(password)}
    return Address(full, shown, tuple(sorted(told - {""}, key=len, reverse=True)))


def shown_url(url: str) -> str:
    """Return a URL without user, password and query, which may hold secrets."""
    user = _user_of(url)
    bare, mark, _ = (url.replace(f"{user}@", "…@", 1) if user else url).partition("?")
    return f"{bare}?…" if mark else bare


def _user_of(url: str) -> str:
    """Return what stands before the host; a password may hold what should have been escaped."""
    _, mark, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not mark or "@" not in rest:
        return ""
    if "@" in host:
        return host.rpartition("@")[0]
    after = host.partition(":")[2]
    return rest.rpartition("@")[0] if after and not after.isdecimal() else ""


def _parameters(url: str) -> Iterator[tuple[str, str]]:
    for part in url.partition("?")[2].split("&"):
        name, _, value = part.partition("=")
        yield name, value
