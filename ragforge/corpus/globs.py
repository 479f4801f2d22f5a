"""Glob patterns on paths relative to a folder, with the meaning they have in .gitignore."""

import re
from collections.abc import Callable, Sequence
from fnmatch import translate

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_MEANING = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of relative posix paths against any of the patterns.

    `*` and `?` stay within a folder, `**` crosses folders. A pattern without a slash is matched
    with names at any depth, and one that matches a folder takes in all that the folder holds:
    `*.md`, `**/*.md`, `drafts`, `drafts/*`, `guide/**/intro.rst`.
    """
    anywhere = [pattern.rstrip("/") for pattern in patterns]
    alternatives = "|".join(_expression(pattern) for pattern in anywhere)
    expression = re.compile(f"(?:{alternatives})(?:/.*)?", re.DOTALL)
    return lambda path: bool(patterns) and expression.fullmatch(path) is not None


def _expression(pattern: str) -> str:
    anchored = pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"
    return "".join(_translate(token) for token in _TOKEN.findall(anchored))


def _translate(token: str) -> str:
    if token in _MEANING:
        return _MEANING[token]
    if len(token) > 1:
        # fnmatch knows what to do with [z-a] and [!]]; its end mark \Z is cut off.
        return translate(token)[: -len(r"\Z")]
    return re.escape(token)
