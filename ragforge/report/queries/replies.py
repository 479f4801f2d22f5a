"""What judges said word for word, as far as the call store of a dataset still has it."""

from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.llm.store.file import reading
from ragforge.llm.store.rows import stored_reply
from ragforge.records import Judgment
from ragforge.report.shown import Excerpt, excerpt

_REPLY_CHARS: Final = 800
_AT_ONCE: Final = 500


def reply_key(judgment: Judgment) -> str:
    """Return the key of the reply that a grade rests on, the first of several; "" without one."""
    own = judgment.provenance.call_key if judgment.provenance else ""
    return own or next((vote.call_key for vote in judgment.votes if vote.call_key), "")


def stored_replies(path: Path, call_keys: Collection[str]) -> dict[str, Excerpt]:
    """Return the starts of replies by key; those that are not there any more are left out.

    Args:
        path: The call store; it is read only, and may be absent or damaged.
        call_keys: Which replies.
    """
    found: dict[str, Excerpt] = {}
    if not call_keys:
        return found
    keys = iter(sorted(call_keys))
    try:
        with reading(path) as connection:
            while some := list(islice(keys, _AT_ONCE)):
                marks = ",".join("?" * len(some))
                rows = connection.execute(
                    f"SELECT key, reply, sha256 FROM calls WHERE key IN ({marks})",  # noqa: S608  # marks only
                    some,
                )
                found |= {key: text for key, *row in rows if (text := _text(key, *row)) is not None}
    except DataError:
        return found
    return found


def _text(key: str, reply: object, sha256: object) -> Excerpt | None:
    stored = stored_reply(key, reply, sha256)
    return None if stored is None else excerpt(stored.text, _REPLY_CHARS)
