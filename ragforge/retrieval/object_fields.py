"""Reading objects of unknown types, such as those of frameworks, by the names of their fields."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Final

from ragforge.deferred import pattern
from ragforge.errors import CallError
from ragforge.files.text import normalise
from ragforge.records import Chunk

Note = Callable[[str], None]
"""Takes a sentence for the user; called in the event loop's thread."""

CHUNK_IDS = ("chunk_id", "chunkId")
IDS = ("id", "id_", "node_id", "_id")
TEXTS = ("page_content", "text", "content")
NESTED = ("metadata", "payload", "meta")
_DOCUMENT_IDS = ("doc_id", "document_id", "ref_doc_id", "doc", "document")
DOCUMENTS = (
    *_DOCUMENT_IDS,
    *("source", "file_path", "path", "file_name", "filename", "url", "uri", "source_id", "title"),
)
"""Names of fields that say of which document a passage is, most telling first."""
STARTS = ("start_index", "start_char_idx", "split_idx_start", "start", "start_offset", "offset")
ENDS = ("end_index", "end_char_idx", "split_idx_end", "end", "end_offset")
_WHOLE: Final = re.compile(r"\s*[0-9]+(?:\.0*)?\s*", re.ASCII)
_MOST: Final = 10**15
"""No text is so long, and floats are exact up to there."""
_SHOWN = 80
_END_MARKS: Final = " ?!.…？！。"  # noqa: RUF001 - of queries in Chinese and Japanese
_FAILED = frozenset({"error", "failed", "failure", "fail"})
"""What stands under `status` in a result that is none."""
_STATUSES = ("status", "status_code", "statusCode", "code", "error_code", "errorCode")
_KINDS = ("type", "event")
"""Fields that say what a reply, or an event of a stream, is: an error."""
_FAULT_STATUSES = range(400, 600)
"""Of HTTP, which services repeat in replies of status 200."""
_REASONS = (
    *("message", "msg", "reason", "detail", "error_message", "errorMessage", "error_text"),
    "errorText",
)
_WORDS_OF_FAULTS = pattern(
    r"rate.?limit|quota|too many|exceeded|throttl|timed.?out|timeout|overload|unavailable|busy|"
    r"denied|forbidden|unauthori[sz]ed|exception|fail(?:ed|ure)|(?<!no )(?<!without )errors?\b",
    re.IGNORECASE,
)


def ignore_note(note: str) -> None:
    """Ignore a note."""


def outcome_error(value: object) -> str:
    """Return what a reply says that calls itself failed, or cut off by time; "" for others.

    By its status, its code or its success, whatever the status of HTTP.
    """
    if not isinstance(value, Mapping):
        return ""
    told = next((f"{name} is error" for name in _KINDS if value.get(name) == "error"), "")
    if false := [name for name in ("success", "ok") if value.get(name) is False]:
        told = f"{false[0]} is false"
    if any(value.get(name) is True for name in ("timed_out", "timedOut")):
        told = "the search timed out"
    shards = value.get("_shards")  # of Elasticsearch and what is made like it
    n_failed = shards.get("failed") if isinstance(shards, Mapping) else 0
    if isinstance(n_failed, Integral) and int(n_failed) > 0:
        told = f"{n_failed} shards failed"
    for name in _STATUSES:
        if _is_fault(value.get(name)):
            told = f"{name} is {value[name]}"
            break
    reason = next(_reasons(value), "")
    return f"{told}: {reason}" if told and reason else told


def empty_result_error(value: object) -> str:
    """Return what a reply without results says of a fault, such as a rate limit; "" for others."""
    if not isinstance(value, Mapping):
        return ""
    return next((text for text in _reasons(value) if _WORDS_OF_FAULTS.search(text)), "")


def _reasons(value: Mapping[object, object]) -> Iterator[str]:
    """Yield what a reply says of itself in words."""
    for text in values_of(value, _REASONS):
        if isinstance(text, str) and text.strip():
            yield text


def _is_fault(status: object) -> bool:
    """Whether a status or code is one of a request that failed."""
    if isinstance(status, str):
        folded = status.strip().casefold()
        return folded in _FAILED or (folded.isdecimal() and int(folded[:9]) in _FAULT_STATUSES)
    return isinstance(status, Integral) and int(status) in _FAULT_STATUSES


def is_same_query(one: str, other: str) -> bool:
    """Whether a query is repeated, be it with other blanks, case or marks at its end."""
    one, other = (fold_text(text).casefold() for text in (one, other))
    return one == other or one.rstrip(_END_MARKS) == other.rstrip(_END_MARKS) != ""


def other_query_error(where: str, told: str, query: str, let: str, raw: str = "") -> CallError:
    """Return the failure of a reply that repeats another query than was asked.

    Args:
        where: What messages call the service.
        told: The query as the reply repeats it.
        query: What was asked.
        let: What lets a service that repeats queries in other words.
        raw: The start of the reply.
    """
    return CallError(
        "invalid",
        f"{where}: the reply is for another query: {told[:_SHOWN]!r} where {query[:_SHOWN]!r} was "
        f"asked; where it repeats queries in other words, {let} lets it",
        raw,
    )


def refuse_query_of_another(value: object, query: str, where: str, raw: str) -> None:
    """Refuse the reply of an address that repeats another query than was asked.

    Args:
        value: Its JSON.
        query: What was asked.
        where: What messages call the address.
        raw: The start of the reply, for the failure record.

    Raises:
        CallError: It does.
    """
    told = value.get("query") if isinstance(value, Mapping) else None
    if isinstance(told, str) and not is_same_query(told, query):
        raise other_query_error(where, told, query, "echo = 'none' in settings of its own", raw)


def values_of(item: object, names: Iterable[str]) -> Iterator[object]:
    """Yield the values of an object under the names, as keys or as attributes, but for None."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None:
            yield value


def nested_mappings(item: object) -> list[Mapping[object, object]]:
    """Return the mappings in which frameworks keep what they know about a passage."""
    return [inner for inner in values_of(item, NESTED) if isinstance(inner, Mapping)]


def ids_of(item: object) -> Iterator[str]:
    """Yield the candidates for the id of a chunk, most telling first."""
    places: list[object] = [item, *values_of(item, CHUNK_IDS)]
    for inner in nested_mappings(item):
        places.extend(values_of(inner, (*CHUNK_IDS, "id")))
    places.extend(values_of(item, IDS))
    for value in places:
        if isinstance(value, bool) or value == "":
            continue
        if isinstance(value, str | Integral):
            yield str(value)


def texts_of(item: object) -> Iterator[str]:
    """Yield the candidates for the text of a passage, most telling first; it may be the object."""
    if isinstance(item, str):
        yield item
        return
    for place in (item, *nested_mappings(item)):
        for value in values_of(place, TEXTS):
            if isinstance(value, str):
                yield value


def texts_beside(ids: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the texts that a passage has beside its ids, those without a letter left out."""
    return [text for text in texts if text not in ids and any(map(str.isalnum, text))]


def document_names_of(item: object) -> Iterator[str]:
    """Yield what an object says of which document it is: ids, paths, addresses, titles."""
    places = [item, *nested_mappings(item)]
    for inner in values_of(item, ("relationships",)):
        if isinstance(inner, Mapping):
            related = [each for each in inner.values() if not isinstance(each, list)]
            places += related
            places += [mapping for each in related for mapping in nested_mappings(each)]
    for place in places:
        for value in values_of(place, (*DOCUMENTS, "node_id") if place is not item else DOCUMENTS):
            if isinstance(value, str) and value:
                yield value


def document_name_of(item: object) -> str:
    """Return what an object calls its document by: by an id, else by a path; "" for neither.

    A title or a source without suffix and folder may be that of many.
    """
    places = [item, *nested_mappings(item)]
    by_id = (value for place in places for value in values_of(place, _DOCUMENT_IDS))
    by_path = (name for name in document_names_of(item) if {".", "/"} & {*name})
    names = (name for name in (*by_id, *by_path) if isinstance(name, str) and name.strip())
    return next(names, "").encode("utf-8", "replace").decode()


def offset_of(item: object, names: Iterable[str]) -> int | None:
    """Return the first offset that an object has under some names; None where it has none."""
    names = tuple(names)
    for place in (item, *nested_mappings(item)):
        for value in values_of(place, names):
            if (number := whole_number(value)) is not None:
                return max(0, number)
    return None


def whole_number(value: object) -> int | None:
    """Return an offset that is whole; None for anything else.

    Tables and vector stores keep it as a float or a text: 9 may be 9.0, "9" or "9.0".
    """
    if isinstance(value, str):
        value = float(value) if len(value) < _SHOWN and _WHOLE.fullmatch(value) else None
    if isinstance(value, Real) and not isinstance(value, Integral):
        value = int(number) if (number := float(value)).is_integer() else None
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value) if abs(int(value)) < _MOST else None


def fold_text(text: str) -> str:
    """Return the text as `normalise` does, with single blanks.

    Frameworks strip and rewrap what they load, and files of PDF and of macOS give letters in parts.
    """
    return " ".join(normalise(text).split())


def chunks_by_text(chunks: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    """Return chunks by what `fold_text` makes of their texts: several where these read the same."""
    found: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        found.setdefault(fold_text(chunk.text), []).append(chunk)
    return found


def type_name(value: object) -> str:
    """Return the name of a value's type as messages give it."""
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def shown(value: object) -> str:
    """Return the start of a value's repr."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
