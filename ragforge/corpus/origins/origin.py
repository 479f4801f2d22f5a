"""What an origin of documents is, and how its address is shown."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from ragforge.deferred import dataclass, pattern
from ragforge.errors import UsageError

_VARIABLE = pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = pattern(r"pass|pwd|secret|token|key|sig|credential", re.IGNORECASE)
_SECRET_CHARS = 4
_SCHEME = pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ODD = pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HOST = pattern(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(?:\d*|x))?")
_BEHIND = pattern("[?#]")
GIT: Final = "git:"
SQL: Final = "sql:"
"""What addresses of repositories and of databases begin with."""
PROPER: Final = (
    "expected an address such as SCHEME://USER:${PASSWORD}@HOST/PATH; in a user's name, characters "
    "such as / ? # @ are escaped: %2F %3F %23 %40"
)


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

    def redacted(self, message: object) -> str:
        """Return a message of another library in one line, without secrets."""
        text = " ".join(str(message).split()).replace(self.full, self.shown)
        for secret in self.secrets:
            if len(secret) >= _SECRET_CHARS:
                text = text.replace(secret, "…")
            else:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
        return text


def resolve_address(url: str) -> Address:
    """Fill in the variables `${NAME}` of a URL; in its user and password they are escaped.

    Raises:
        UsageError: A variable is not set, it is no URL, or the password stands in it; nothing of
            what may be secret is repeated.
    """
    user = _user_of(url)
    if _VARIABLE.sub("", user.partition(":")[2]):
        raise UsageError(
            f"{_scheme_of(url)}…: expected the password in the environment, got it in the address; "
            "write ${NAME} for a variable NAME"
        )
    if not _is_proper(url):
        raise UsageError(f"{_scheme_of(url)}…: {PROPER}")
    safe_url = shown_url(url)
    secrets: list[str] = []
    ends = url.index(user) + len(user) if user else 0

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise UsageError(f"{safe_url}: the environment has no variable {match[1]}")
        setting = os.environ[match[1]]
        escaped = quote(setting, safe="")
        secrets.extend((setting, escaped))
        return escaped if match.end() <= ends else setting

    full = _VARIABLE.sub(value, url)
    hidden = {*secrets, *_secret_parts(full)}
    return Address(full, safe_url, tuple(sorted(hidden - {""}, key=len, reverse=True)))


def shown_url(url: str) -> str:
    """Return the scheme, host and path of a URL; the rest may be secret, as all of what is none."""
    if not _is_proper(url):
        return f"{_scheme_of(url)}…"
    user = _user_of(url)
    text = url.replace(f"{user}@", "…@", 1) if user else url
    bare = _BEHIND.split(text, maxsplit=1)[0]
    return bare if bare == text else f"{bare}{text[len(bare)]}…"


def shown_host(url: str) -> str:
    """Return the scheme and the host of an address, an ellipsis for the rest."""
    scheme, mark, rest = shown_url(url).partition("://")
    host = rest.partition("/")[0].rpartition("@")[2].rstrip("…?#") if mark else ""
    return f"{scheme}://{host}/…" if host else "…"


def looks_like_address(text: str) -> bool:
    """Whether a text is meant for an address, though it may be none."""
    return "://" in text or (_ODD.match(text) is not None and "@" in text)


def _scheme_of(url: str) -> str:
    found = _SCHEME.match(url)
    return found[0] if found else ""


def _is_proper(url: str) -> bool:
    """Whether it is plain where the host and the path of a URL begin and end."""
    first = _VARIABLE.match(url)
    if first is not None:
        return "@" not in url and "://" not in url
    text = _VARIABLE.sub("x", url)
    scheme = _scheme_of(text)
    authority = re.split("[/?#]", text[len(scheme) :], maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    if not scheme or _HOST.fullmatch(host) is None:
        return False
    behind = text[len(scheme) + len(authority) :]
    # A password of digits up to a slash looks like a port.
    return not (":" in host and "@" in behind and not scheme.startswith("http"))


def _secret_parts(url: str) -> Iterator[str]:
    """Yield the parts of a URL that are never shown."""
    user = _user_of(url)
    password = user.partition(":")[2]
    yield from (user, user.partition(":")[0], password, unquote(password))
    yield from _BEHIND.split(url)[1:]
    behind = _BEHIND.search(url)
    yield url[behind.end() :] if behind else ""
    for name, value in _parameters(url):
        if _SECRET_NAME.search(name) or len(value) >= _SECRET_CHARS:
            yield from (value, unquote(value))


def _user_of(url: str) -> str:
    """Return user and password of a URL; the password may hold what should have been escaped."""
    _, mark, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not mark or "@" not in rest:
        return ""
    if "@" in host:
        return host.rpartition("@")[0]
    after = host.partition(":")[2]
    return rest.rpartition("@")[0] if after and not after.isdecimal() else ""


def _parameters(url: str) -> Iterator[tuple[str, str]]:
    behind = _BEHIND.search(url)
    for part in re.split("[&#;]", url[behind.end() :] if behind else ""):
        name, _, value = part.partition("=")
        yield name, value
