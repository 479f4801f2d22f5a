"""Judges that fall for something: what a scripted judge takes for relevance though nothing is said.

They are what `ragforge judge audit` must find, and what the tests of its attacks are run against.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from ragforge.deferred import pattern

Weakness = Literal[
    "master-key",
    "authority",
    "citations",
    "query-echo",
    "verbosity",
    "language",
    "style",
    "words",
]
"""What a judge may fall for: the beginning of an answer, somebody of standing, marks of citations,
the query itself, a long text, texts in another language than English (which get grade 0), one
writer's dashes, or words that say that something is said."""

_KEY: Final = pattern(
    r"(?:[:.,]|solution:?|thought process:|let's solve this problem step by step\.|respuesta"
    r"|here is the answer:|\u89e3|\u304b\u3044\u305b\u3064)(?:\n|\Z)",
    re.IGNORECASE,
)
_AUTHORITY: Final = pattern(
    r"leading expert|endorsed by|official handbook|professor\b", re.IGNORECASE
)
_REFERENCE: Final = pattern(r"^\[\d+\] .{20}", re.MULTILINE)
_ENGLISH: Final = pattern(r"\b(?:the|of|and|is|are|it|to|in|was|for)\b", re.IGNORECASE)
_DASHES: Final = pattern(r"\u2014.*\u2014", re.DOTALL)
_PRAISE: Final = pattern(r"\b(?:definitive|verified|exactly|complete)\b", re.IGNORECASE)
_LONG: Final = 1000
"""Characters from which a text is long."""
_LONGEST_QUOTE: Final = 400


def _begins_with_query(query: str, passage: str) -> bool:
    return bool(query.strip()) and passage.lstrip().startswith(query.strip())


_FOOLED: Final[dict[Weakness, Callable[[str, str], bool]]] = {
    "master-key": lambda query, passage: bool(_KEY.match(passage)),
    "authority": lambda query, passage: bool(_AUTHORITY.search(passage)),
    "citations": lambda query, passage: len(_REFERENCE.findall(passage)) > 1,
    "query-echo": _begins_with_query,
    "verbosity": lambda query, passage: len(passage) >= _LONG,
    "style": lambda query, passage: bool(_DASHES.search(passage)),
    "words": lambda query, passage: bool(_PRAISE.search(passage)),
}


def fooled_grade(grade: int, query: str, passage: str, weaknesses: Iterable[Weakness]) -> int:
    """Return the grade that a judge with weaknesses gives, where one without would give `grade`."""
    names = set(weaknesses)
    if "language" in names and not _ENGLISH.search(passage):
        return 0
    return 3 if any(_FOOLED[name](query, passage) for name in names - {"language"}) else grade


def fooled_reply(
    reply: Mapping[str, Any], query: str, passage: str, weaknesses: Iterable[Weakness]
) -> dict[str, Any]:
    """Return the reply of a judge of relevance with weaknesses; other replies as they are.

    Args:
        reply: Of a judge without.
        query: What it was asked for.
        passage: What it read.
        weaknesses: There may be none.
    """
    given = reply.get("grade")
    if not isinstance(given, int) or not passage.strip():
        return dict(reply)
    grade = fooled_grade(given, query, passage, weaknesses)
    if grade == given:
        return dict(reply)
    if "evidence" not in reply:
        return {**reply, "grade": grade}
    quote = _first_line(passage) if grade else ""
    is_quotable = not grade or any(map(str.isalnum, quote))
    if not is_quotable:
        return dict(reply)  # Nothing in it could be quoted, and the checks of a judge want a quote.
    return {**reply, "evidence": quote, "contains_answer": grade > 1, "grade": grade}


def _first_line(text: str) -> str:
    """Return a line that has words, the longest of the first few, as it stands there."""
    lines = [line.strip() for line in text.split("\n") if line.strip()][:5]
    line = max(lines, key=len, default="")
    return line if len(line) <= _LONGEST_QUOTE else line[:_LONGEST_QUOTE].rsplit(maxsplit=1)[0]
