"""Objects of frameworks and vector stores that are asked, or reply, in ways of their own.

LangChain, LlamaIndex, Haystack, Chroma, LanceDB and Qdrant are told by the names of their methods
and arguments, and never imported. What has a plain `retrieve`, `invoke` or `query` needs none of
this.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from ragforge.errors import UsageError
from ragforge.plugins import parameters_of
from ragforge.retrieval.object_fields import TEXTS

Search = Callable[[str, int], object]
"""Returns, perhaps as an awaitable, what is found for a query, at most k."""
Ask = Callable[[str], object]
"""Returns, perhaps as an awaitable, what is answered to a query."""
_Method = Callable[..., object]

_QUESTIONS: Final = ("question", "query", "input")
"""What the query is called where a chain takes a mapping with several keys."""
_CONTEXTS: Final = (
    *("context", "contexts", "source_documents", "source_nodes", "retrieved_documents"),
)
_PAYLOAD_TEXTS: Final = (*TEXTS, "document", "chunk", "body")
_FARNESS: Final = ("_distance", "distance")
_CLOSENESS: Final = ("_relevance_score", "_score", "score")
_NOTHING: Final[Mapping[str, object]] = {}


def search_of(target: object, where: str) -> Search | None:
    """Return what searches an object of a framework; None where it is none that is told here.

    A vector store, an index, a collection and a table give k hits. A chain and a pipeline give as
    many as they are set to: their answers come from these.

    Args:
        target: A user's object.
        where: What messages call it.

    Raises:
        UsageError: It needs a function around it, which says what it cannot know.
    """
    refusal = _lack(target)
    if refusal is not None:
        raise UsageError(f"{where}: {refusal}")
    if ask := _chain(target):
        return lambda query, _: ask(query)
    makers = (_vector_store, _index, _component, _document_store, _collection, _table)
    for make in (*makers, _pipeline_search):
        search = make(target)
        if search is not None:
            return search
    return None


def ask_of(target: object) -> Ask | None:
    """Return what asks an object of a framework for an answer; None where it is none told here."""
    return _chain(target) or _pipeline(target)


def hits_of(result: object, k: int) -> object:
    """Return the list of hits in the result of a framework; any other result as it is.

    Args:
        result: A chain's or a pipeline's mapping, a response, or rows of a vector store. Distances
            become scores by their sign.
        k: How many rows a query that was not run yet is to give.
    """
    if isinstance(result, Mapping):
        return _hits_of_mapping(result)
    limited = _method(result, "limit")
    if limited is not None and _method(result, "to_list") is not None:
        rows = cast("Callable[[], object]", _method(limited(k), "to_list"))()
        return [_row(row) for row in rows] if isinstance(rows, list) else rows
    points = getattr(result, "points", None)
    if isinstance(points, Sequence):
        return [_point(point) for point in points]
    nodes = getattr(result, "source_nodes", None)
    return result if nodes is None else nodes


def answer_of(result: object) -> object:
    """Return the answer of a framework as a mapping with `answer` and `context`, else the result.

    What a pipeline of Haystack returns is read, one of its generated answers, and the messages of
    a conversation in which tools retrieved documents.
    """
    if not isinstance(result, Mapping):
        return result if not _is_generated(result) else _generated(result)
    messages = result.get("messages")
    if isinstance(messages, Sequence) and messages and not isinstance(messages, str):
        artifacts = [getattr(message, "artifact", None) for message in messages]
        context = [each for found in artifacts if isinstance(found, list) for each in found]
        return {**result, "context": context} if context and "context" not in result else result
    outputs = [output for output in result.values() if isinstance(output, Mapping)]
    if not outputs or len(outputs) < len(result):
        return result
    for output in reversed(outputs):
        answers = output.get("answers")
        if isinstance(answers, Sequence) and answers:
            return _generated(answers[0])
    replies = [output["replies"] for output in outputs if output.get("replies")]
    if not replies:
        return result
    reply = cast("Sequence[object]", replies[-1])[0]
    return {"answer": _said(reply), "context": _documents(outputs) or []}


def _lack(target: object) -> str | None:
    if _method(target, "query_points") is not None:
        return (
            "is a client of Qdrant, which does not tell the collection nor who embeds the query; "
            "expected a function f(query, k) around its query_points"
        )
    sockets = _sockets(target)
    if sockets is not None and "query" not in sockets and "query_embedding" in sockets:
        return "takes an embedding and no text; expected a pipeline that embeds the query before it"
    return None


def _vector_store(target: object) -> Search | None:
    """LangChain's VectorStore, whose own `search` takes no k in second place."""
    scored = _method(target, "similarity_search_with_score")
    return None if scored is None else lambda query, k: scored(query, k=k)


def _index(target: object) -> Search | None:
    """LlamaIndex' index: what it is asked through is made for each k."""
    retriever = _method(target, "as_retriever")
    if retriever is None or _method(target, "as_query_engine") is None:
        return None

    def search(query: str, k: int) -> object:
        made = retriever(similarity_top_k=k)
        return cast("_Method", _method(made, "aretrieve") or _method(made, "retrieve"))(query)

    return search


def _component(target: object) -> Search | None:
    """Haystack's retriever that takes a text."""
    sockets, run = _sockets(target), _method(target, "run")
    if sockets is None or "query" not in sockets or run is None:
        return None
    if "top_k" not in sockets:
        return lambda query, _: run(query=query)
    return lambda query, k: run(query=query, top_k=k)


def _document_store(target: object) -> Search | None:
    """Haystack's document store that searches words itself."""
    search = _method(target, "bm25_retrieval")
    return None if search is None else lambda query, k: search(query, top_k=k)


def _collection(target: object) -> Search | None:
    """Chroma's collection, which embeds the query as it did the texts."""
    query_texts = _method(target, "query")
    if query_texts is None or not _takes(query_texts, "query_texts", "n_results"):
        return None
    return lambda query, k: query_texts(query_texts=[query], n_results=k)


def _table(target: object) -> Search | None:
    """LanceDB's table: by its own embedding function, or by words."""
    search = _method(target, "search")
    if search is None or not _takes(search, "query", "query_type"):
        return None
    return lambda query, _: search(query)


def _pipeline_search(target: object) -> Search | None:
    ask = _pipeline(target)
    return None if ask is None else lambda query, _: ask(query)


def _pipeline(target: object) -> Ask | None:
    """Haystack's pipeline: every text that must be given is the query."""
    inputs, run = _method(target, "inputs"), _method(target, "run")
    if inputs is None or run is None or not hasattr(target, "graph"):
        return None
    names = set(getattr(target.graph, "nodes", ()))

    def ask(query: str) -> object:
        wanted = cast("Mapping[str, Mapping[str, Mapping[str, object]]]", inputs())
        data = {
            component: {
                name: query
                for name, socket in sockets.items()
                if socket.get("is_mandatory") and socket.get("type") not in {int, float, bool}
            }
            for component, sockets in wanted.items()
        }
        given = {component: values for component, values in data.items() if values}
        return run(given, include_outputs_from=names)

    return ask


def _chain(target: object) -> Ask | None:
    """LangChain's runnable whose input is a mapping, and a graph that takes messages."""
    schema_of = _method(target, "get_input_jsonschema")
    invoke = _method(target, "ainvoke") or _method(target, "invoke")
    if schema_of is None or invoke is None:
        return None
    try:
        schema = schema_of()
    except Exception:  # noqa: BLE001  # a user's types may defy a schema: asked as any other
        return None
    key = _key_of_query(schema) if isinstance(schema, Mapping) else None
    if key is None:
        return None

    def ask(query: str) -> Awaitable[object] | object:
        value: object = [{"role": "user", "content": query}] if key == "messages" else query
        return invoke({key: value})

    return ask


def _key_of_query(schema: Mapping[str, object]) -> str | None:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        return None
    required = schema.get("required")
    if isinstance(required, list) and len(required) == 1:
        return str(required[0])
    names = [name for name in (*_QUESTIONS, "messages") if name in properties]
    return names[0] if names else next(map(str, properties), None)


def _hits_of_mapping(result: Mapping[object, object]) -> object:
    if "ids" in result and any(name in result for name in ("documents", "metadatas", "distances")):
        return _chroma_rows(result)
    for name in _CONTEXTS:
        if isinstance(result.get(name), list | tuple):
            return result[name]
    outputs = [output for output in result.values() if isinstance(output, Mapping)]
    documents = _documents(outputs) if outputs and len(outputs) == len(result) else None
    return result if documents is None else documents


def _chroma_rows(result: Mapping[object, object]) -> list[object]:
    """Return the hits of the first query of a Chroma result: its columns are lists of lists."""
    columns = {
        name: cast("Sequence[object]", column[0])
        for name in ("ids", "documents", "metadatas", "distances")
        if isinstance(column := result.get(name), Sequence) and column
    }
    return [
        {
            "id": columns["ids"][at],
            "text": _at(columns.get("documents"), at),
            "metadata": _at(columns.get("metadatas"), at) or _NOTHING,
            "score": _minus(_at(columns.get("distances"), at)),
        }
        for at in range(len(columns.get("ids", ())))
    ]


def _row(row: object) -> object:
    """Return a row of LanceDB as a hit: its columns are what is known about the text."""
    if not isinstance(row, Mapping):
        return row
    close = next((row[name] for name in _CLOSENESS if row.get(name) is not None), None)
    far = next((row[name] for name in _FARNESS if row.get(name) is not None), None)
    nested = row.get("metadata")
    known = {name: value for name, value in row.items() if name not in {"vector", "metadata"}}
    return {
        "id": row.get("chunk_id", row.get("id")),
        "text": _text_in(row),
        "metadata": {**known, **nested} if isinstance(nested, Mapping) else known,
        "score": close if close is not None else _minus(far),
    }


def _point(point: object) -> object:
    """Return a point of Qdrant as a hit: its payload is what is known about the text."""
    payload = getattr(point, "payload", None)
    if not isinstance(payload, Mapping):
        return point
    nested = payload.get("metadata")
    return {
        "id": payload.get("chunk_id", getattr(point, "id", None)),
        "text": _text_in(payload),
        "metadata": {**payload, **nested} if isinstance(nested, Mapping) else payload,
        "score": getattr(point, "score", None),
    }


def _documents(outputs: Iterable[Mapping[object, object]]) -> list[object] | None:
    """Return the documents of the last component that gave some."""
    listed = [output["documents"] for output in outputs if "documents" in output]
    return cast("list[object]", listed[-1]) if listed else None


def _is_generated(result: object) -> bool:
    return hasattr(result, "data") and hasattr(result, "documents") and hasattr(result, "query")


def _generated(answer: object) -> object:
    """Return an answer of Haystack with the documents that it was generated from."""
    return {
        "answer": getattr(answer, "data", None),
        "context": list(getattr(answer, "documents", None) or []),
    }


def _said(reply: object) -> object:
    """Return the text of a reply: a text, or a message that has one."""
    text = getattr(reply, "text", None)
    return reply if isinstance(reply, str) or text is None else text


def _text_in(fields: Mapping[object, object]) -> object:
    texts = (fields.get(name) for name in _PAYLOAD_TEXTS)
    return next((text for text in texts if isinstance(text, str)), None)


def _at(column: Sequence[object] | None, place: int) -> object:
    return None if column is None else column[place]


def _minus(distance: object) -> object:
    return -distance if isinstance(distance, int | float) else None


def _sockets(target: object) -> Mapping[str, object] | None:
    sockets = getattr(getattr(target, "__haystack_input__", None), "_sockets_dict", None)
    return sockets if isinstance(sockets, Mapping) else None


def _takes(function: _Method, *names: str) -> bool:
    return set(names) <= {parameter.name for parameter in parameters_of(function)}


def _method(target: object, name: str) -> _Method | None:
    method = None if isinstance(target, type) else getattr(target, name, None)
    return cast("_Method", method) if callable(method) else None
