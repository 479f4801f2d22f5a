"""The settings by section; field docstrings become help and schema.

A settings file that was found, not named or trusted, may set what is marked `Harmless` and nothing
else. A field that chooses code, a command, a model, an address, a key, a path, or words of a prompt
is never marked; a new field stays unmarked unless it is plain that it does none of these.
"""

import json
import os
import re
from collections.abc import Callable
from typing import Annotated, Literal, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

from ragforge.config.section import PositiveFloat, PositiveInt, Section
from ragforge.config.services import RetrieverService, ServiceName, SystemService
from ragforge.deferred import dataclass
from ragforge.errors import ConfigError
from ragforge.records.model import AfterValidator, BeforeValidator, Field, model_validator

T = TypeVar("T")

OFFLINE = "offline"
OFFLINE_MINILM = "offline-minilm"
"""The offline baseline, whose judge of relevance is a local model."""
_OWN_FIELDS = {"model", "messages", "response_format", "stream", "n"}
"""Of a request's body: those that ragforge fills itself."""
_BETWEEN_COMMAS = re.compile(r"(?:[^,(]|\([^()]*\)|\()+")
"""A comma in brackets parts nothing."""


def _any(_: object) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class AnyFileMaySet:
    """Marks a setting to which a file that nobody named or trusted may give some values."""

    allows: Callable[[object], bool] = _any


Harmless: TypeAlias = Annotated[T, AnyFileMaySet()]


def is_offline(model: str) -> bool:
    """Whether a name stands for the offline baseline, which asks nobody."""
    return model in (OFFLINE, OFFLINE_MINILM)


def check_address(value: str) -> str:
    """Return an address that may be asked and may be shown."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("expected an address such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password:
        raise ValueError("no user name or password in the address: it is stored and shown")
    return value


def _check_proxy(value: str) -> str:
    """Return `none`, `environment`, or an address."""
    return value if value in ("none", "environment") else check_address(value)


def _is_installed_name(value: object) -> bool:
    """Return whether a value can name only what is built in or installed, no module's attribute."""
    return isinstance(value, str) and ":" not in value


def _check_json_object(value: str) -> str:
    """Return the text of a JSON object without fields that ragforge sets; "" stays."""
    value = value.strip()
    if not value:
        return value
    try:
        fields = json.loads(value)
    except ValueError as error:
        raise ValueError(f"expected a JSON object ({error})") from error
    if not value.startswith("{"):
        raise ValueError("expected a JSON object")
    taken = sorted(_OWN_FIELDS & set(fields))
    if taken:
        raise ValueError(f"{', '.join(taken)}: set by ragforge itself")
    return value


def _split_at_commas(value: object) -> object:
    """Return a list whose items may hold several each."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return value
    parts = (part.strip() for item in value for part in _BETWEEN_COMMAS.findall(item))
    found = tuple(filter(None, parts))
    if value and not found:
        raise ValueError("expected names between commas")
    return found


def _check_threshold(value: object) -> object:
    """Return `auto` or a whole number from 1."""
    if value == "auto":
        return value
    if isinstance(value, int | str) and re.fullmatch("[1-9][0-9]*", str(value)):
        return int(value)  # Of a flag, which needs no pydantic then.
    raise ValueError("expected auto or a whole number from 1")


def _check_shares(value: tuple[str, ...]) -> tuple[str, ...]:
    """Return `name=percent` parts whose percentages add up to 100; one name alone stands for 100.

    Raises:
        ValueError: A part is no share, a name comes twice, or the sum is not 100.
    """
    if len(value) == 1 and "=" not in value[0]:
        return (f"{value[0]}=100",)
    percents: dict[str, float] = {}
    for part in value:
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if not name or not re.fullmatch(r"\d+(\.\d+)?", number):
            raise ValueError(f"expected name=percent, such as fact=40, found {part!r}")
        if name in percents:
            raise ValueError(f"{name} comes twice")
        percents[name] = float(number)
    total = sum(percents.values())
    if abs(total - 100) > 1e-6:
        raise ValueError(f"the percentages add up to {total:g}; expected 100")
    return tuple(f"{name}={percent:g}" for name, percent in percents.items())


Shares = Annotated[
    tuple[str, ...], BeforeValidator(_split_at_commas), AfterValidator(_check_shares)
]


def flag(name: str) -> dict[str, str]:
    """Name the command-line flag of a field where it differs from the field's name."""
    return {"flag": name}


def switch(value: str) -> dict[str, str]:
    """Let the command-line flag of a field take no value and stand for this one."""
    return {"switch": value}


class ModelSettings(Section):
    """Which model is asked, and how."""

    name: Annotated[str, Field(json_schema_extra=flag("model"), min_length=1)] = OFFLINE
    """Model name at the endpoint; `local:FILE.gguf` for a local file; `offline` for no model, and
    `offline-minilm` where a local embedding model judges relevance."""
    base_url: Annotated[str, AfterValidator(check_address)] = ""
    """Address of an OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; the client's
    own default where empty."""
    endpoint_id: str = ""
    """Name of who answers at the base URL, for the call store: replies of one name are shared by
    all addresses; the address itself where empty."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; endpoints without keys need none."""
    embedding_model: str = ""
    """Model name for /embeddings, used by the dense retriever."""
    offline_model: Harmless[Literal["auto", "none", "minilm"]] = "auto"
    """Local embedding model of the offline baseline: it judges relevance, and retrieves beside BM25
    where no retriever is named; auto is minilm where it is installed, none is words alone."""
    temperature: Harmless[Annotated[float, Field(ge=0, le=2)]] = 0.0
    """Sampling temperature; 0 asks for the most likely reply."""
    seed: Harmless[int] = 0
    """Seed of the sampling of chunks and queries, and of the model where it takes one."""
    max_output_tokens: Harmless[PositiveInt] = 1024
    """Tokens a reply may have; a longer one is cut and counts as a failure."""
    timeout_s: Harmless[PositiveFloat] = 120.0
    """Seconds one attempt may take, and one query to a retriever or system."""
    max_attempts: Harmless[PositiveInt] = 5
    """Attempts for one call when the endpoint of a model fails for the moment; the address of a
    retriever or system is asked once, and a service as often as its own settings say."""
    max_wait_s: Harmless[PositiveFloat] = 300.0
    """Seconds to wait for an endpoint that is down or asks for patience; then the run stops."""
    concurrency: Harmless[PositiveInt] = 8
    """Calls in flight at most, of each model of a panel; fewer while its endpoint shows that it
    takes fewer. A retriever or system in Python is called from as many threads: 1 where it keeps
    something of a query."""
    requests_per_minute: Harmless[PositiveFloat | None] = None
    """Calls a minute; what the endpoint tells or shows to take where unset."""
    tokens_per_minute: Harmless[PositiveFloat | None] = None
    """Tokens a minute, in and out, likewise."""
    extra_body: Annotated[str, AfterValidator(_check_json_object)] = ""
    """JSON object whose fields go into each request, such as {"reasoning_effort": "low"}; a judge
    with other fields is another judge."""
    transport: Harmless[Literal["auto", "httpx2", "aiohttp"]] = "auto"
    """HTTP transport; auto is aiohttp where the extra `fast` is installed. Through a proxy, all go
    by httpx2."""
    proxy: Annotated[str, AfterValidator(_check_proxy)] = "none"
    """Proxy to go through: none, environment (HTTPS_PROXY and its kin), or an address."""

    @property
    def address(self) -> str:
        """The base URL, or where none is named that of OPENAI_BASE_URL; empty for OpenAI's own.

        Raises:
            ConfigError: That of the environment holds a user name or password.
        """
        named = self.base_url or os.environ.get("OPENAI_BASE_URL", "")
        if "@" in named.partition("//")[2].partition("/")[0]:
            raise ConfigError(
                "OPENAI_BASE_URL: no user name or password in the address: it is stored and shown"
            )
        return named


class BudgetSettings(Section):
    """What may be spent; a run that would go beyond stops cleanly with exit code 5."""

    max_calls: Harmless[PositiveInt | None] = None
    """Calls that may be made; no limit where unset."""
    max_tokens: Harmless[PositiveInt | None] = None
    """Tokens, in and out, that may be used; no limit where unset."""
    max_cost_usd: Harmless[PositiveFloat | None] = None
    """US dollars that may be spent; no limit where unset. Needs a known price."""
    input_usd_per_mtok: Annotated[float, Field(ge=0)] | None = None
    """Dollars per million input tokens, where the price table does not know the model."""
    output_usd_per_mtok: Annotated[float, Field(ge=0)] | None = None
    """Dollars per million output tokens, likewise."""


class ChunkSettings(Section):
    """How documents become chunks."""

    max_chars: Harmless[Annotated[int, Field(ge=100)]] = 2000
    """Characters a chunk may have; code fences and tables may be longer."""
    chunker: Annotated[str, Field(min_length=1), AnyFileMaySet(_is_installed_name)] = "headings"
    """What cuts documents: headings, module:attr of a function or a text splitter, or the name of
    an entry point in ragforge.chunkers."""
    include: Harmless[tuple[str, ...]] = ()
    """Glob patterns of the files to read, relative to the folder; all readable ones where unset."""
    exclude: Harmless[tuple[str, ...]] = ()
    """Glob patterns of the files to leave out."""
    follow_links: Annotated[Literal["off", "on"], Field(json_schema_extra=switch("on"))] = "off"
    """Read what links in a folder of documents lead to outside of it, too."""
    source_code: Annotated[Literal["off", "on"], Field(json_schema_extra=switch("on"))] = "off"
    """Read docstrings and doc comments of source files (.py, .js, .ts, .java, .go, .rs, …), too."""


class GenerateSettings(Section):
    """What is generated."""

    n: Harmless[Annotated[int, Field(json_schema_extra=flag("n"), gt=0, le=200_000)]] = 20
    """Queries to deliver, at most 200,000: the plan of all of them is held in memory."""
    language: Harmless[Shares] = ("en=100",)
    """Languages of the queries as ISO 639-1 codes with percentages, such as de=70,en=30; a code
    alone is all of them."""
    types: Harmless[Shares] = (
        "fact=22",
        "procedure=12",
        "keyword=10",
        "troubleshooting=8",
        "comparison=7",
        "why=7",
        "list=6",
        "definition=6",
        "multi_hop=4",
        "multi_hop_across=4",
        "temporal=3",
        "two_in_one=2",
        "follow_up=2",
        "false_premise=2",
        "ambiguous=1",
        "unanswerable=4",
    )
    """Kinds of query with percentages that add up to 100."""
    difficulties: Harmless[Shares] = ("easy=40", "medium=40", "hard=20")
    """Difficulties with percentages that add up to 100."""
    personas: Shares = ("newcomer=35", "practitioner=45", "expert=20")
    """Who asks, in any words, with percentages that add up to 100."""
    per_call: Harmless[Annotated[int, Field(ge=1, le=10)]] = 3
    """Candidates asked for in one call; the first that passes is taken."""
    per_chunk: Harmless[PositiveInt] = 3
    """How often a chunk is asked about at most."""
    like: str = ""
    """JSON Lines of real queries, whose length and style the generated ones are to have."""
    checks: Harmless[Literal["on", "off"]] = "on"
    """Whether a model checks what passed the rules."""
    checker: str = ""
    """Model that checks and judges, NAME or NAME@URL; should not be the one that writes. The
    writer itself where unset."""
    complete: Harmless[Literal["auto", "on", "off"]] = "auto"
    """Whether the pool of each query is judged; auto is on where a model is set."""
    licence: Harmless[str] = ""
    """Licence of the set, for its card; that of the documents binds it as well."""
    dev_share: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.3
    """Share of the queries that go into the split dev, the others into test."""


class PoolSettings(Section):
    """Which chunks are looked at so that all relevant ones of a query are known."""

    pool_k: Harmless[PositiveInt] = 10
    """Ranks of each probe that go into the pool at first."""
    pool_most: Harmless[PositiveInt] = 20
    """Ranks of each probe at most, where the last ones still bring relevant chunks."""
    pool_batch: Harmless[PositiveInt] = 10
    """Chunks of a query judged in one call."""
    pool_model: Harmless[Literal["auto", "none", "minilm", "static"]] = "auto"
    """Local model that probes beside BM25 where no embedding model is set; auto is one that is
    installed: minilm up to 20,000 chunks, static beyond."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pool_most < self.pool_k:
            raise ValueError(f"pool_most is {self.pool_most}, below pool_k, which is {self.pool_k}")
        return self


class RetrieveSettings(Section):
    """How runs are made."""

    k: Harmless[PositiveInt] = 10
    """Chunks to retrieve per query."""


class JudgeSettings(Section):
    """How relevance is judged."""

    depth: Harmless[PositiveInt] = 10
    """Ranks of each run that go into the pool."""
    prompt: Harmless[str] = ""
    """Name of the prompt; judge_relevance where unset, judge_relevance_batch with --batch."""
    batch: Harmless[PositiveInt] = 1
    """Chunks of one query shown in one call; 1 shows each alone, which no neighbour can sway."""
    permutations: Harmless[PositiveInt] = 3
    """Orders in which each batch is shown."""
    votes: Harmless[PositiveInt] = 1
    """Replies asked of each model for each pair; more than 1 need a temperature above 0."""
    panel: Annotated[tuple[str, ...], BeforeValidator(_split_at_commas)] = ()
    """Models that all judge, between commas; NAME@URL for one at another address."""
    # Not Harmless[…]: typing takes it for that of "on", "off", and would turn the two round.
    logprobs: Annotated[Literal["off", "on"], AnyFileMaySet()] = "off"
    """Whether to ask for the probabilities of the grades, which give a weighted grade."""
    examples: str = ""
    """JSON Lines of graded pairs shown to the judge first; their queries must not be judged."""
    split: Harmless[Literal["all", "dev", "test"]] = "all"
    """Part of the queries that is judged."""


class EvaluateSettings(Section):
    """Which measures are computed."""

    measures: Harmless[Annotated[tuple[str, ...], BeforeValidator(_split_at_commas)]] = ()
    """Measures such as nDCG@10, P(rel=2)@5, RR; the default set where unset."""
    rel_threshold: Harmless[
        Annotated[Literal["auto"] | PositiveInt, BeforeValidator(_check_threshold)]
    ] = "auto"
    """Lowest grade that counts as relevant; auto is 2 where grades go beyond 1, else 1."""


class RefreshSettings(Section):
    """How a set follows its corpus."""

    dataset: str = ""
    """Directory of the set that is refreshed."""
    documents: tuple[str, ...] = ()
    """Where its documents are: files, folders, git:REPOSITORY@REVISION, sql:URL, or a bucket."""
    max_new: Harmless[Annotated[int, Field(ge=0)]] = 20
    """Queries that are generated in one refresh at most."""
    at_least: Harmless[PositiveInt | None] = None
    """Accepted queries that the set is to have, whether its corpus changed or not; as many as it
    had, and some for new documents, where unset."""
    keep: Annotated[int, Field(ge=2)] = 7
    """Versions that are kept; older ones are removed."""
    vanished_most: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.3
    """Share of the documents that may have vanished; beyond it nothing is refreshed."""
    chunks_gone_most: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.5
    """Share of the chunks whose text may be gone, likewise."""
    churn_most: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.15
    """Share of the queries that one version may change, retire or quarantine."""
    accepted_least: Harmless[Annotated[float, Field(ge=0)]] = 0.8
    """Accepted queries that a version needs, as a share of those of the version before."""
    holes_most: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.1
    """Share of the pooled pairs that may be without a grade."""
    precision_least: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.0
    """Low end of the interval of the set's precision that people's review must reach; 0 asks for
    no review."""
    unanswerable_most: Harmless[Annotated[float, Field(ge=0, le=1)]] = 0.1
    """Share of the queries up to which one whose answer is gone stays, to be abstained from; those
    beyond are retired."""
    similar_least: Harmless[Annotated[float, Field(gt=0, le=1)]] = 0.9
    """Likeness from which another wording counts as the same quote, to be checked again."""
    near_chars: Harmless[Annotated[int, Field(ge=0)]] = 300
    """Characters around a quote within which a change asks for a check."""
    other_judge: Harmless[Literal["refuse", "mix"]] = "refuse"
    """What becomes of a refresh by another judge than the one that graded the set: mix lets grades
    of both stand."""
    notify_command: str = ""
    """Command that is run with a JSON object on its standard input when a version is published or
    rejected, or a gate fails."""
    notify_url: str = ""
    """Address to which that object is posted; put one that holds a secret into
    RAGFORGE_REFRESH_NOTIFY_URL."""


class PromptSettings(Section):
    """Where prompts come from."""

    prompts_dir: str = ""
    """Folder whose prompt files replace the shipped ones of the same name."""


class Settings(Section):
    """All settings, by section."""

    # Nothing is to be validated before it is asked for: that would build all validators.

    model: ModelSettings = ModelSettings.model_construct()
    budget: BudgetSettings = BudgetSettings.model_construct()
    chunk: ChunkSettings = ChunkSettings.model_construct()
    generate: GenerateSettings = GenerateSettings.model_construct()
    pool: PoolSettings = PoolSettings.model_construct()
    retrieve: RetrieveSettings = RetrieveSettings.model_construct()
    judge: JudgeSettings = JudgeSettings.model_construct()
    evaluate: EvaluateSettings = EvaluateSettings.model_construct()
    refresh: RefreshSettings = RefreshSettings.model_construct()
    prompts: PromptSettings = PromptSettings.model_construct()
    retrievers: dict[ServiceName, RetrieverService] = Field(default_factory=dict)
    """Retrievers that are asked over HTTP, by name."""
    systems: dict[ServiceName, SystemService] = Field(default_factory=dict)
    """RAG systems that are asked over HTTP, by name."""
