"""Services of users, by name: how a retriever or a RAG system is asked over HTTP, and read.

Texts may hold `${VARIABLE}` of the environment, and `{query}` and its kin, which are filled in for
each query. What is secret stands in the environment alone: settings are printed and stored.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Final, Literal, Self, TypeAlias

from ragforge.config.section import PositiveFloat, PositiveInt, Section
from ragforge.deferred import pattern
from ragforge.records.model import AfterValidator, Field, JsonValue, model_validator

Dialect: TypeAlias = Literal[
    "ragforge", "elasticsearch", "opensearch", "qdrant", "weaviate", "openai-chat"
]
BUILT_IN: Final = frozenset({"bm25", "chargram", "minilm", "static", "dense"})
"""Names of retrievers that are no service; a test holds them equal to those there are."""
SERVICE_SECTIONS: Final = ("retrievers", "systems")
_NAME: Final = pattern(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
_VARIABLE: Final = pattern(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SECRET_NAME: Final = pattern(
    r"auth|pass|pwd|secret|token|api[-_]?key|^key$|[-_]key$|subscription|cookie|session|credential"
    r"|signature|^sig$",
    re.IGNORECASE,
)
_SECRET_FIELD: Final = pattern(
    r"(?:password|passwd|pwd|secret|"
    r"(?<!stop)(?<!stop[-_])(?<!eos[-_])(?<!bos[-_])(?<!pad[-_])(?<!end[-_])(?<!page[-_])token|"
    r"api[-_]?key|authorization|credentials?)$",
    re.IGNORECASE,
)
"""Of a body, whose other fields may well be called `tokenizer` or `session`."""
_SECRET_CHARS: Final = 8
_FILLED: Final = pattern(r"\{[A-Za-z_]+(?::json)?\}")
_ADDRESS: Final = pattern(r"(?:https?://|\$\{[A-Za-z_][A-Za-z0-9_]*\})\S*", re.IGNORECASE)


def _check_address(value: str) -> str:
    """Return an address that may be shown: it begins as one, or with a variable."""
    if not _ADDRESS.fullmatch(value):
        raise ValueError(
            "expected an address such as https://search.example/api, or one that begins with a "
            "${VARIABLE}"
        )
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("no user name or password in the address; a header takes ${VARIABLE}")
    for name, given in _in_query(value):
        _check_secret(name, given)
    return value


def _in_query(address: str) -> Iterator[tuple[str, str]]:
    for part in address.partition("?")[2].split("&"):
        name, _, given = part.partition("=")
        yield name, given


def _check_pairs(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return headers or parameters in which no secret is written out."""
    for name, given in value.items():
        if isinstance(given, dict | list):
            raise ValueError(f"expected a text or a number in {name}")  # noqa: TRY004  # pydantic's
        _check_secret(name, str(given))
    return value


def _check_secret(name: str, given: str) -> None:
    if given and _SECRET_NAME.search(name) and not _VARIABLE.search(given):
        raise ValueError(
            f"a secret in {name}, which does not belong into a file; expected it in the "
            "environment, as ${VARIABLE}"
        )


def _check_body(value: JsonValue) -> JsonValue:
    """Return a body in which no secret is written out."""
    parsed = value
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):  # That it is no JSON is told later on.
            parsed = json.loads(value)
    for name, given in _texts_in(parsed):
        is_long = len(given) >= _SECRET_CHARS
        if is_long and _SECRET_FIELD.search(name) and not _FILLED.search(given):
            _check_secret(name, given)
    return value


def _texts_in(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield the texts of a body, each with the name of its field."""
    if isinstance(value, dict):
        for name, given in value.items():
            if isinstance(given, str):
                yield name, given
            yield from _texts_in(given)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def _check_variable(value: str) -> str:
    """Return a secret that stands in the environment."""
    if value and not _VARIABLE.search(value):
        raise ValueError(
            "a secret does not belong into a file; expected it in the environment, as ${VARIABLE}"
        )
    return value


Address: TypeAlias = Annotated[str, AfterValidator(_check_address)]
Pairs: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(_check_pairs)]


class OAuthSettings(Section):
    """Where a token is fetched, by the grant of client credentials."""

    token_url: Address
    """Address of the token endpoint."""
    client_id: str
    """The client; may hold ${VARIABLE}."""
    client_secret: Annotated[str, AfterValidator(_check_variable)]
    """Its secret, as ${VARIABLE} of the environment."""
    scope: str = ""
    """What the token is to be good for, where the endpoint wants to know."""
    audience: str = ""
    """For whom it is to be good, likewise."""
    client_auth: Literal["body", "basic"] = "body"
    """Whether client and secret are sent in the body, or as a header of basic authentication."""


class ServiceSettings(Section):
    """How a service is asked, and what its replies hold."""

    dialect: Dialect = "ragforge"
    """A ready-made request with its paths, of which each field may be set otherwise."""
    url: Address
    """Where it is asked; may hold ${VARIABLE} and {query}. A dialect completes it."""
    method: Literal["", "GET", "POST"] = ""
    """GET or POST; POST where there is a body, unless set."""
    headers: Pairs = Field(default_factory=dict)
    """Headers by name; secrets as ${VARIABLE}."""
    params: Pairs = Field(default_factory=dict)
    """Parameters of the address by name, with {query}, {k} and ${VARIABLE}."""
    body: Annotated[JsonValue, AfterValidator(_check_body)] = None
    """What is posted as JSON: a table, or its text; {query}, {k} and ${VARIABLE} in its texts are
    filled in."""
    error: str = ""
    """JMESPath of what a reply holds only where it is an error."""
    echo: str = ""
    """JMESPath of the query as the reply repeats it; another one makes the reply a failure."""
    id: str = ""
    """JMESPath, within one result, of the chunk's id."""
    text: str = ""
    """JMESPath, within one result, of its text."""
    document: str = ""
    """JMESPath, within one result, of its document."""
    concurrency: PositiveInt | None = None
    """Queries in flight at most; those of model.concurrency where unset."""
    requests_per_minute: PositiveFloat | None = None
    """Requests a minute at most; no limit where unset."""
    timeout_s: PositiveFloat | None = None
    """Seconds for one request; model.timeout_s where unset."""
    max_attempts: PositiveInt = 3
    """Attempts where the service is busy (429, 502, 503, 504) or cannot be reached."""
    max_wait_s: PositiveFloat = 60.0
    """Seconds to wait between two of them at most; a service that asks for more has failed."""
    oauth: OAuthSettings | None = None
    """Where a token is fetched that goes into the header Authorization."""

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        if self.method == "GET" and self.body is not None:
            raise ValueError("a GET has no body; params go with it")
        return self


class RetrieverService(ServiceSettings):
    """A retriever that is asked over HTTP; or, without an address, what queries of a run cost."""

    url: Address = ""
    """Where it is asked; may hold ${VARIABLE} and {query}. A dialect completes it. Without one, the
    section holds `usd_per_query` alone: of the run of that name, whatever retrieves for it."""
    usd_per_query: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """What a query costs, in US dollars; not known where unset. What an endpoint takes for the
    vector of a query comes on top."""
    collection: str = ""
    """Index, collection or class that a dialect searches."""
    id_field: str = ""
    """Field of it that holds the chunk's id; the one of the engine's own where unset."""
    text_field: str = ""
    """Field of it that holds the text."""
    document_field: str = ""
    """Field of it that names the document."""
    results: str = ""
    """JMESPath of the list of results, best first."""
    score: str = ""
    """JMESPath, within one result, of its score."""
    page_size: PositiveInt | None = None
    """Results of one page, which {k} stands for then; k where unset."""
    first_page: Annotated[int, Field(ge=0)] = 1
    """Number of the first page, for {page}."""
    cursor: str = ""
    """JMESPath of what {cursor} is to be for the next page; none there ends it."""

    @model_validator(mode="after")
    def _check_dialect(self) -> Self:
        if self.dialect == "openai-chat":
            raise ValueError("dialect openai-chat is one of systems, and retrieves nothing")
        return self

    @model_validator(mode="after")
    def _check_url(self) -> Self:
        if not self.url and self.model_fields_set != {"usd_per_query"}:
            raise ValueError(
                "expected a url; without one there is usd_per_query alone, of the run of that name"
            )
        return self


class SystemService(ServiceSettings):
    """A RAG system that is asked over HTTP."""

    model: str = ""
    """Model that openai-chat asks for, where the service wants one named."""
    answer: str = ""
    """JMESPath of the answer."""
    contexts: str = ""
    """JMESPath of the list of passages it was written from."""
    delta: str = ""
    """JMESPath, within one event of a stream, of the next piece of the answer."""
    cost: str = ""
    """JMESPath of what the answer cost, in US dollars; `cost_usd` is read without one."""
    usd_per_query: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """What an answer costs, in US dollars, where its reply does not say; not known where unset."""

    @model_validator(mode="after")
    def _check_dialect(self) -> Self:
        if self.dialect not in ("ragforge", "openai-chat"):
            raise ValueError(f"dialect {self.dialect} is one of retrievers, and answers nothing")
        return self


def check_service_name(name: str) -> str:
    """Return the name of a service.

    Raises:
        ValueError: It cannot be one: it would be read as another retriever, or as an address.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("expected letters, digits, - and _, beginning with a letter")
    if name in BUILT_IN:
        raise ValueError("there is a retriever of that name already")
    return name


ServiceName: TypeAlias = Annotated[str, AfterValidator(check_service_name)]


def asked_over_http(services: Mapping[str, RetrieverService]) -> dict[str, RetrieverService]:
    """Return the retrievers that have an address; other sections only tell a price."""
    return {name: service for name, service in services.items() if service.url}


def variables_in(table: object) -> list[str]:
    """Return the variables of the environment that a service's settings name, sorted."""
    return sorted(set(_each_variable(table)))


def _each_variable(value: object) -> Iterator[str]:
    match value:
        case str():
            yield from _VARIABLE.findall(value)
        case dict():
            for item in value.values():
                yield from _each_variable(item)
        case list():
            for item in value:
                yield from _each_variable(item)
