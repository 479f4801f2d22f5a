"""The command with which to go on, shown without what may be secret in its addresses."""

import re
import shlex
from collections.abc import Sequence
from typing import Final

_INSIDE: Final = re.compile(r"(?<![^\s\"'=])[^\s\"'=]*://[^\s\"']*")
_SQL: Final = "sql:"
_GIT: Final = re.compile(r"git:[^/@]*:[^@]*@")


def resume_hint(words: Sequence[str]) -> str:
    """Return the command on a line of its own, with a word on what was taken out of it."""
    shown = list(shown_words(words))
    note = "" if shown == list(words) else "\n(… stands for what may be secret: put it back)"
    return f"  ragforge {shlex.join(shown)}{note}"


def shown_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, addresses without user, password, query and fragment."""
    masked: list[str] = []
    before = ""
    for word in words:
        if not word.startswith("-"):
            masked.append(_shown(before, word))
        else:
            flag, mark, value = word.partition("=")
            masked.append(f"{flag}={_shown(flag, value)}" if mark else word)
        before = word
    return masked


def host_of(url: str) -> str:
    """Return the scheme and the host of an address, an ellipsis for the rest."""
    from ragforge.corpus.origins.origin import shown_url

    scheme, mark, rest = shown_url(url).partition("://")
    host = rest.partition("/")[0].rpartition("@")[2].rstrip("…?#") if mark else ""
    return f"{scheme}://{host}/…" if host else "…"


def _shown(flag: str, value: str) -> str:
    from ragforge.corpus.origins.origin import looks_like_address, shown_url

    if flag == "--notify-url":
        return host_of(value)
    if flag == "--notify-command":
        return _INSIDE.sub(lambda match: host_of(match[0]), value)
    if value.lower().startswith(_SQL):
        url, mark, query = value[len(_SQL) :].partition("#")
        is_torn = "@" in re.split(r"\s", query.lstrip(), maxsplit=1)[0]
        return f"{_SQL}{'…' if is_torn else shown_url(url)}{mark and '#…'}"
    if value.startswith("git:") and "://" not in value:
        return "git:…" if _GIT.match(value) else value
    if looks_like_address(value):
        return shown_url(value)
    return value
