"""The keywords that calls take: one class a section of settings, and one a call.

A keyword has the name of the flag of the command line, with `_` for `-`; what it means stands at
its field in `ragforge.config.sections`. One that is None counts as not given. A flag without a
value is given as True.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from ragforge.observe import Observer

if TYPE_CHECKING:
    from ragforge.evaluating.gate import Allowance, FailOn
    from ragforge.mock.script import Embeddings, Refusable, RetryAfter

Several: TypeAlias = str | Sequence[str]
"""One or several, in a list or between commas where the flag takes commas."""
Shares: TypeAlias = str | Sequence[str] | Mapping[str, float]
"""Names with percentages: `{"fact": 60, "why": 40}` or `["fact=60", "why=40"]`."""


class Common(TypedDict, total=False):
    """What every call takes."""

    config: str | PathLike[str] | None
    quiet: bool
    observer: "Observer | str | Iterable[Observer | str] | None"


class Paid(TypedDict, total=False):
    """What every call takes that may ask a model."""

    retry_failed: bool
    offline_replay: bool


class Model(TypedDict, total=False):
    """Section `model`."""

    model: str | None
    base_url: str | None
    endpoint_id: str | None
    api_key_env: str | None
    embedding_model: str | None
    offline_model: Literal["auto", "none", "minilm"] | None
    temperature: float | None
    seed: int | None
    max_output_tokens: int | None
    timeout_s: float | None
    max_attempts: int | None
    max_wait_s: float | None
    concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    extra_body: str | Mapping[str, object] | None
    transport: Literal["auto", "httpx2", "aiohttp"] | None
    proxy: str | None


class Budget(TypedDict, total=False):
    """Section `budget`."""

    max_calls: int | None
    max_tokens: int | None
    max_cost_usd: float | None
    input_usd_per_mtok: float | None
    output_usd_per_mtok: float | None


class Chunks(TypedDict, total=False):
    """Section `chunk`."""

    max_chars: int | None
    chunker: str | None
    include: Several | None
    exclude: Several | None
    follow_links: bool | None
    source_code: bool | None


class Generating(TypedDict, total=False):
    """Section `generate`."""

    n: int | None
    language: Shares | None
    types: Shares | None
    difficulties: Shares | None
    personas: Shares | None
    per_call: int | None
    per_chunk: int | None
    like: str | PathLike[str] | None
    checks: Literal["on", "off"] | None
    checker: str | None
    complete: Literal["auto", "on", "off"] | None
    licence: str | None
    dev_share: float | None


class Pool(TypedDict, total=False):
    """Section `pool`."""

    pool_k: int | None
    pool_most: int | None
    pool_batch: int | None
    pool_model: Literal["auto", "none", "minilm", "static"] | None


class Retrieving(TypedDict, total=False):
    """Section `retrieve`."""

    k: int | None


class Judging(TypedDict, total=False):
    """Section `judge`."""

    depth: int | None
    prompt: str | None
    batch: int | None
    permutations: int | None
    votes: int | None
    panel: Several | None
    logprobs: Literal["off", "on"] | None
    examples: str | PathLike[str] | None
    split: Literal["all", "dev", "test"] | None


class Threshold(TypedDict, total=False):
    """Section `evaluate` without the measures, which are an argument of their own."""

    rel_threshold: int | Literal["auto"] | None


class Refreshing(TypedDict, total=False):
    """Section `refresh` without dataset and documents, which are arguments of their own."""

    max_new: int | None
    at_least: int | None
    keep: int | None
    vanished_most: float | None
    chunks_gone_most: float | None
    churn_most: float | None
    accepted_least: float | None
    holes_most: float | None
    precision_least: float | None
    unanswerable_most: float | None
    similar_least: float | None
    near_chars: int | None
    other_judge: Literal["refuse", "mix"] | None
    notify_command: str | None
    notify_url: str | None


class Prompts(TypedDict, total=False):
    """Section `prompts`."""

    prompts_dir: str | PathLike[str] | None


class GateKeywords(TypedDict, total=False):
    """Rules of a gate, with what it is held against and what does not refuse it."""

    min: Mapping[str, float] | None
    max: Mapping[str, float] | None
    max_drop: Mapping[str, float | Literal["auto"]] | None
    max_failures: float | str | None
    min_queries: int | None
    max_holes: float | str | None
    point: bool
    fail_on: "FailOn"
    baseline: str | PathLike[str] | None
    baseline_file: str | PathLike[str] | None
    answers: str | None
    allow: "Allowance | Collection[Allowance]"


class MockKeywords(TypedDict, total=False):
    """What a mock endpoint does; what each means stands at its field in `ragforge.mock.script`."""

    seed: int
    latency: str
    reject_latency_ms: float
    rpm: float | None
    tpm: float | None
    burst_s: float
    rl_headers: Literal["on", "off"]
    retry_after: "RetryAfter"
    max_inflight: int | None
    p429: float
    p500: float
    p502_html: float
    p503: float
    p_hang: float
    p_slow: float
    slow_s: float
    p_reset: float
    p_abort: float
    p_badbody: float
    p_html200: float
    p_empty: float
    p_no_usage: float
    p_badjson: float
    p_fence: float
    p_think: float
    p_schema: float
    p_length: float
    p_filter: float
    p_refusal: float
    p_hostile: float
    quota_after: int | None
    auth: str
    always_status: int | None
    bad_text: str
    down_from_s: float | None
    down_to_s: float | None
    redirect_to: str
    refuse: "Refusable | Sequence[Refusable]"
    embeddings: "Embeddings"


class AskKeywords(Common, Paid, Model, Budget, Prompts, total=False):
    """Keywords of calls that ask a model and have no section of their own."""


class GenerateKeywords(AskKeywords, Generating, Pool, Chunks, total=False):
    """Keywords of generating."""


class ChunkKeywords(Common, Chunks, total=False):
    """Keywords of cutting documents."""


class RetrieveKeywords(Common, Retrieving, Model, total=False):
    """Keywords of retrieving."""


class SweepKeywords(AskKeywords, Judging, total=False):
    """Keywords of sweeping."""


class JudgeKeywords(AskKeywords, Judging, Pool, total=False):
    """Keywords of judging."""


class EvaluateKeywords(Common, Threshold, total=False):
    """Keywords of evaluating, comparing and reporting."""


class ComparingKeywords(JudgeKeywords, EvaluateKeywords, total=False):
    """Keywords of comparing: those of judging go with `judge_as_needed`."""


class RefreshKeywords(AskKeywords, Refreshing, Generating, Pool, Chunks, total=False):
    """Keywords of refreshing."""


class PromptKeywords(AskKeywords, Judging, Generating, total=False):
    """Keywords of rendering a prompt: those of the jobs that ask it."""


class EveryKeyword(RefreshKeywords, JudgeKeywords, RetrieveKeywords, EvaluateKeywords, total=False):
    """All keywords: what a set can be told once for all of its calls."""
