"""Reading what somebody else's RAG system returned, by the shape of it.

An answer is a text; a tuple of a text and its context; or an object or mapping that holds the text
under one of `_ANSWERS`, and perhaps a context under one of `_CONTEXTS`: a list of chunk ids, of
texts, of mappings or of objects, such as LangChain's Document and LlamaIndex's NodeWithScore. Of a
list of messages the last one counts. Keys of mappings may be written in any style.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

from ragforge.errors import CallError
from ragforge.files.names import ANSWER, IN_CONTEXT, normal_name
from ragforge.files.values import is_unicode
from ragforge.foreign.reading import TEXTS, ids_of, nested_in, shown, type_name, values_of
from ragforge.systems import Passage, SystemAnswer

_ANSWERS = (*ANSWER.accepted, "result", "output_text", "content")
_CONTEXTS = (
    *("chunk_ids", "contexts", "context", "retrieved_contexts", "source_nodes"),
    *("source_documents", "sources", "passages", "documents", "chunks", "nodes"),
    *(name for name in IN_CONTEXT.accepted if name != "ids"),
)
_ERRORS = ("error", "errors", "exception")
_MESSAGES = ("messages",)
_PARTS = (*TEXTS, "quote", "passage", "snippet")
_DOCUMENTS = ("doc_id", "document_id", "source", "file_path", "file_name", "document")


def read_answer(result: object, where: str, raw: str = "") -> SystemAnswer:
    """Return what a result says.

    Args:
        result: What came.
        where: What messages name as its origin.
        raw: The start of the reply, for the failure record.

    Raises:
        CallError: `invalid` where it has none of the shapes; `error` where it tells of an error,
            with whatever text beside it.
    """
    match result:
        case SystemAnswer():
            answer = result
        case str():
            answer = SystemAnswer(result)
        case (str() as text, context):
            answer = SystemAnswer(text, _passages(context, where, raw))
        case _:
            answer = _of_fields(result, where, raw)
    named = [name for passage in answer.context for name in passage.ids]
    if not all(map(is_unicode, (answer.text, *named))):
        raise CallError("invalid", f"{where}: the answer holds half a surrogate pair", raw)
    return answer


def _of_fields(result: object, where: str, raw: str) -> SystemAnswer:
    whole = _normal(result)
    text = _text_of(whole)
    if not isinstance(text, str):
        raise CallError("invalid", f"{where}: {_lacking(result)}", raw)
    error = _first(whole, _ERRORS)
    if error:
        raise CallError("error", f"{where}: no answer, but an error: {shown(error)}", raw)
    return SystemAnswer(text, _passages(_first(whole, _CONTEXTS), where, raw))


def _normal(item: object) -> object:
    """Return a mapping with its keys as they are compared, anything else as it is."""
    if not isinstance(item, Mapping):
        return item
    return {normal_name(key): value for key, value in item.items() if isinstance(key, str)}


def _first(item: object, names: Iterable[str]) -> object:
    """Return the first value there is under the names, one that holds something if there is."""
    named = [normal_name(name) for name in names] if isinstance(item, Mapping) else names
    found = [value for value in values_of(item, named) if not callable(value)]
    full = (value for value in found if not isinstance(value, Sequence) or len(value))
    return next(full, found[0] if found else None)


def _text_of(item: object) -> object:
    """Return the text of an answer or message; something else where there is none."""
    messages = _first(item, _MESSAGES)
    if isinstance(messages, Sequence) and not isinstance(messages, str) and messages:
        item = _normal(messages[-1])
    answer = _first(item, _ANSWERS)
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        parts = [_first(part, ("text",)) for part in answer]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts else None
    if answer is None or isinstance(answer, str | Integral | float | Mapping):
        return answer
    return _first(answer, ("content",))


def _lacking(result: object) -> str:
    expected = f"expected a text, or an answer under one of {', '.join(_ANSWERS)}"
    if isinstance(result, Mapping):
        keys = ", ".join(repr(key) for key in list(result)[:5]) or "nothing"
        return f"the result is a mapping with {keys}, and no text as its answer; {expected}"
    return f"the result is {shown(result)} (type {type_name(result)}); {expected}"


def _passages(context: object, where: str, raw: str) -> tuple[Passage, ...]:
    match context:
        case None:
            return ()
        case str() | Integral():
            items: Iterable[object] = [context] if context != "" else []
        case Mapping():
            return _passages(_first(_normal(context), _CONTEXTS), where, raw)
        case Sequence():
            items = context
        case _:
            raise CallError(
                "invalid",
                f"{where}: the context is of type {type_name(context)}; expected a list of chunk "
                "ids or passages",
                raw,
            )
    return tuple(_passage(item, where, raw) for item in items)


def _passage(item: object, where: str, raw: str) -> Passage:
    if isinstance(item, Passage):
        return item
    if isinstance(item, tuple) and len(item) == 2:
        item = item[0]  # with its score
    if isinstance(item, str):
        return Passage(ids=(item,), texts=(item,))
    node = next(values_of(item, ("node",)), item)
    texts = tuple(text for text in values_of(node, _PARTS) if isinstance(text, str) and text)
    ids = tuple(ids_of(node))
    places = [node, *nested_in(node)]
    doc_ids = tuple(
        value
        for place in places
        for value in values_of(place, _DOCUMENTS)
        if isinstance(value, str) and value
    )
    if not texts and not ids and doc_ids:
        ids = doc_ids[:1]  # where documents are not cut, they are the chunks
    if not texts and not ids:
        raise CallError(
            "invalid",
            f"{where}: cannot tell which passage {shown(item)} (type {type_name(item)}) is; "
            "expected a chunk id, a text, or an object or mapping with one of them",
            raw,
        )
    return Passage(ids, texts, doc_ids)
