"""Ready-made dialects: how well-known services are asked, and where their replies hold what.

Sources: the search APIs of Elasticsearch and OpenSearch (`_search`), Qdrant (`points/query`),
Weaviate (GraphQL `Get`), and chat completions as OpenAI made them, with citations as Azure OpenAI
On Your Data, Perplexity and Open WebUI add them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Final

from ragforge.config import RetrieverService, ServiceSettings, SystemService
from ragforge.deferred import dataclass
from ragforge.records.model import JsonValue

_TEXTS: Final = ("text", "content", "page_content", "body", "chunk", "passage", "document")
_DOCUMENTS: Final = ("doc_id", "document_id", "source", "file_path", "path", "url", "title")


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A request and its paths, as a dialect has them and settings change them.

    Args:
        address: Path of the address, which completes a shorter one; "" for none.
        error, echo, results, id, text, document, score, cursor, answer, contexts, cost, delta:
            JMESPaths.
    """

    address: str = ""
    headers: Mapping[str, JsonValue] = field(default_factory=dict)
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    body: JsonValue = None
    error: str = ""
    echo: str = ""
    results: str = ""
    id: str = ""
    text: str = ""
    document: str = ""
    score: str = ""
    cursor: str = ""
    answer: str = ""
    contexts: str = ""
    cost: str = "cost_usd"
    delta: str = "choices[0].delta.content || delta.text || delta.content || delta || token || text"


_OWN_RETRIEVER: Final = ServicePlan(
    body={"query": "{query}", "k": "{k}"},
    error="error || errors",
    echo="query",
)
_OWN_SYSTEM: Final = replace(_OWN_RETRIEVER, body={"query": "{query}"})
_CITATIONS: Final = (
    "choices[0].message.context.citations || choices[0].delta.context.citations || search_results "
    "|| sources[?type(document) == 'array'].document[] || sources || citations "
    "|| choices[0].message.annotations[].url_citation"
)


def plan_of(service: ServiceSettings) -> ServicePlan:
    """Return how a service is asked and read: its dialect, changed by what its settings set."""
    plan = _DIALECTS[service.dialect](service)
    given = {
        part.name: getattr(service, part.name)
        for part in fields(ServicePlan)
        if part.name not in ("address", "headers", "params")
        and getattr(service, part.name, None) not in (None, "")
    }
    asks_by_address = service.params or "{query" in service.url
    if service.dialect == "ragforge" and service.body is None and asks_by_address:
        given["body"] = None
    headers = {**plan.headers, **service.headers}
    return replace(plan, **given, headers=headers, params={**plan.params, **service.params})


def _own(service: ServiceSettings) -> ServicePlan:
    return _OWN_SYSTEM if isinstance(service, SystemService) else _OWN_RETRIEVER


def _elasticsearch(service: ServiceSettings) -> ServicePlan:
    assert isinstance(service, RetrieverService)
    match: dict[str, JsonValue] = {"query": "{query}", "lenient": True}
    if service.text_field:
        match["fields"] = [service.text_field]
    return ServicePlan(
        address=f"/{service.collection}/_search" if service.collection else "/_search",
        body={
            "query": {"multi_match": match},
            "size": "{k}",
            "from": "{offset}",
        },
        # A part of the index that failed or was cut off leaves a status of 200.
        error="error || (timed_out && 'the search timed out') || _shards.failures || "
        "(_shards.failed > `0` && join(' ', [to_string(_shards.failed), 'shards failed']))",
        results="hits.hits",
        id=_within("_source", service.id_field) or "_id",
        text=_within("_source", service.text_field) or _any_of("_source", _TEXTS),
        document=_within("_source", service.document_field) or _any_of("_source", _DOCUMENTS),
        score="_score",
    )


def _qdrant(service: ServiceSettings) -> ServicePlan:
    assert isinstance(service, RetrieverService)
    return ServicePlan(
        address=f"/collections/{service.collection}/points/query" if service.collection else "",
        body={"query": "{vector}", "limit": "{k}", "offset": "{offset}", "with_payload": True},
        error="status.error",
        results="result.points",
        id=_within("payload", service.id_field) or "id",
        text=_within("payload", service.text_field) or _any_of("payload", _TEXTS),
        document=_within("payload", service.document_field)
        or f"{_any_of('payload', _DOCUMENTS)} || payload.metadata.source",
        score="score",
    )


def _weaviate(service: ServiceSettings) -> ServicePlan:
    assert isinstance(service, RetrieverService)
    text = service.text_field or "text"
    asked = [name for name in (text, service.document_field, service.id_field) if name]
    query = (
        f"{{ Get {{ {service.collection}(limit: {{k}}, offset: {{offset}}, "
        f"hybrid: {{ query: {{query:json}} }}) "
        f"{{ {' '.join(dict.fromkeys(asked))} _additional {{ id score }} }} }} }}"
    )
    return ServicePlan(
        address="/v1/graphql",
        body={"query": query},
        error="errors[0].message || errors || error",
        results=f"data.Get.{json.dumps(service.collection)}",
        id=service.id_field or "_additional.id",
        text=text,
        document=service.document_field,
        score="_additional.score",
    )


def _openai_chat(service: ServiceSettings) -> ServicePlan:
    assert isinstance(service, SystemService)
    body: dict[str, JsonValue] = {"messages": [{"role": "user", "content": "{query}"}]}
    return ServicePlan(
        address="/v1/chat/completions",
        body={"model": service.model, **body} if service.model else body,
        error="error || (choices[0].finish_reason == 'content_filter' && 'content_filter')",
        answer="choices[0].message.content",
        contexts=_CITATIONS,
        id="chunk_id || id",
        text="content || text || snippet",
        document="filepath || url || title || source",
        delta="choices[0].delta.content",
    )


def _within(place: str, name: str) -> str:
    """Return the path of a field, whose name may have dots; "" for none."""
    parts = (json.dumps(part, ensure_ascii=False) for part in name.split("."))
    return ".".join([place, *parts]) if name else ""


def _any_of(place: str, names: tuple[str, ...]) -> str:
    return " || ".join(f"{place}.{name}" for name in names)


_DIALECTS: Final[Mapping[str, Callable[[ServiceSettings], ServicePlan]]] = {
    "ragforge": _own,
    "elasticsearch": _elasticsearch,
    "opensearch": _elasticsearch,
    "qdrant": _qdrant,
    "weaviate": _weaviate,
    "openai-chat": _openai_chat,
}
