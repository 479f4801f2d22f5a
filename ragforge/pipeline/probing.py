"""Asking a service of the settings, or an address, one question to see what it makes of it."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from ragforge.config import RetrieverService, ServiceSettings, Settings, SystemService
from ragforge.config.services import asked_over_http
from ragforge.deferred import tempfile
from ragforge.errors import UsageError
from ragforge.observe import Observer
from ragforge.records import Hit
from ragforge.records.model import JsonValue, pydantic
from ragforge.retrieval import Embedder
from ragforge.retrieval.services.probes import PlaceOf, Probe, probe_retriever, probe_system
from ragforge.retrieval.services.retriever import ServiceRetriever
from ragforge.retrieval.services.system import ServiceSystem

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.retrieving import HitCorpus
    from ragforge.retrieval.retrieved_texts import RetrievedTexts

S = TypeVar("S", bound=ServiceSettings)

_TABLES: Final = ("headers", "params", "oauth")
_UNNAMED: Final = "NAME"
"""What an address is called, of which the settings do not know."""


async def probe_service(
    name: str,
    question: str,
    settings: Settings,
    observer: Observer,
    *,
    kind: Literal["", "retriever", "system"] = "",
    changes: Iterable[str] = (),
    dataset: "Dataset | None" = None,
) -> Probe:
    """Ask a service one question; a failure is shown in the probe, and not raised.

    Args:
        name: Of a service in the settings, or an address.
        question: Is asked.
        settings: Services, the number of results, and the embedding model.
        observer: Told of the embedding of the question, where one is made.
        kind: What it is; "" for what the settings say, and a retriever for an address.
        changes: `FIELD=VALUE` of its settings, for this question.
        dataset: In which the results of a retriever are looked up.

    Raises:
        UsageError: There is no such service, two of them, or a change cannot be made.
        ConfigError: Its settings cannot be used.
    """
    changed = _changes(changes)
    as_system = kind == "system" or (not kind and _is_system(name, settings))
    timeout_s = settings.model.timeout_s
    if as_system:
        service = _service(name, settings.systems, SystemService, changed)
        system = ServiceSystem(_called(name), service, timeout_s=timeout_s)
        probe = await probe_system(system, question)
    else:
        known = asked_over_http(settings.retrievers)
        described = _service(name, known, RetrieverService, changed)
        async with _embedder(settings, observer) as embedder:
            probe = await _probe_retriever(
                _called(name), described, question, settings, embedder, dataset
            )
    if not _is_address(name):
        return probe
    proposed = {item.setting: item.path for item in probe.proposals}
    return replace(probe, settings={**_with_changes({"url": name}, changed), **proposed})


@asynccontextmanager
async def _embedder(settings: Settings, observer: Observer) -> AsyncIterator[Embedder | None]:
    """Lend the embedding model of the settings; None where they name none."""
    if not settings.model.embedding_model:
        yield None
        return
    from ragforge.pipeline.backend import embedder_of  # Few services want a vector.
    from ragforge.pipeline.job import Job, OutputFile

    with tempfile.TemporaryDirectory(prefix="ragforge-") as folder:
        place = OutputFile.beside(Path(folder, "probe"))
        async with embedder_of(Job(settings, observer), place) as embedder:
            yield embedder


async def _probe_retriever(
    name: str,
    service: RetrieverService,
    question: str,
    settings: Settings,
    embedder: Embedder | None,
    dataset: "Dataset | None",
) -> Probe:
    timeout_s, k = settings.model.timeout_s, settings.retrieve.k
    if dataset is None:
        retriever = ServiceRetriever(name, service, embedder=embedder, timeout_s=timeout_s)
        return await probe_retriever(retriever, question, k)
    from ragforge.pipeline.retrieving import HitCorpus  # It finds texts, which takes numpy.
    from ragforge.pipeline.text_grades import standing_by_question
    from ragforge.retrieval.retrieved_texts import RetrievedTexts

    corpus = HitCorpus.of(dataset)
    texts = RetrievedTexts(corpus.documents, standing_by_question(dataset))
    retriever = ServiceRetriever(
        name, service, corpus.chunks, embedder=embedder, timeout_s=timeout_s, texts=texts
    )
    place_of = _places(corpus, texts) if corpus.chunks else None
    return await probe_retriever(retriever, question, k, place_of)


def _places(corpus: "HitCorpus", texts: "RetrievedTexts") -> PlaceOf:
    """Return what tells what a hit is in a set."""

    def place_of(hit: Hit) -> str:
        if hit.chunk_id in corpus.known:
            return hit.chunk_id
        found = next(texts.located({hit.chunk_id}), None)
        if found is None:
            return "unknown id"
        if len(found.places) != 1:
            return f"in {len(found.places)} places" if found.places else "nowhere"
        [place] = found.places
        return f"{place.doc_id}[{place.start}:{place.end}]"

    return place_of


def _is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _called(name: str) -> str:
    return _UNNAMED if _is_address(name) else name


def _is_system(name: str, settings: Settings) -> bool:
    retrievers, systems = asked_over_http(settings.retrievers), settings.systems
    if name in retrievers and name in systems:
        raise UsageError(
            f"{name!r} is a retriever and a system; --as retriever or --as system tells which"
        )
    return name in systems


def _service(
    name: str, known: Mapping[str, S], kind: type[S], changes: Mapping[str, JsonValue]
) -> S:
    """Return the settings of a service, with changes for this time.

    Raises:
        UsageError: There is none of that name, or a change cannot be made.
    """
    if not _is_address(name) and name not in known:
        what = "retrievers" if kind is RetrieverService else "systems"
        listed = ", ".join(sorted(known)) or f"none: [{what}.NAME] of a settings file names one"
        raise UsageError(
            f"no {name!r} among the {what} of the settings; expected an address or one of them; "
            f"there are: {listed}"
        )
    fields: dict[str, JsonValue] = {"url": name} if _is_address(name) else {}
    if name in known:
        fields = known[name].model_dump(mode="json", exclude_unset=True)
    fields = _with_changes(fields, changes)
    try:
        return kind.model_validate(fields)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where or _called(name)}: {message}") from None


def _with_changes(
    fields: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the fields of a service with changes, those of tables key by key."""
    changed = dict(fields)
    for field, value in changes.items():
        table, _, key = field.partition(".")
        inner = changed.get(table) if key else None
        if key and table in _TABLES:
            changed[table] = {**(inner if isinstance(inner, dict) else {}), key: value}
        else:
            changed[field] = value
    return changed


def _changes(given: Iterable[str]) -> dict[str, JsonValue]:
    changes: dict[str, JsonValue] = {}
    for change in given:
        field, equals, text = change.partition("=")
        if not equals or not field:
            raise UsageError(f"--set {change.partition('=')[0]}: expected FIELD=VALUE")
        changes[field.strip()] = _value(text)
    return changes


def _value(text: str) -> JsonValue:
    """Return a table, list or number where the text is one as JSON, else the text."""
    if not text.lstrip().startswith(("{", "[")) and not text.replace(".", "", 1).isdecimal():
        return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
