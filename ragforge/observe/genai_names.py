"""The names, kinds, units and values that OpenTelemetry has for events, and events in that form.

Source: OpenTelemetry semantic conventions v1.41.0, docs/gen-ai/gen-ai-spans.md, gen-ai-metrics.md
and gen-ai-events.md (status: development), the last numbered version that defines them. They moved
to github.com/open-telemetry/semantic-conventions-genai, which has released no version so far; its
draft renames `gen_ai.client.operation.duration` to `gen_ai.client.inference.duration` and splits
`gen_ai.client.token.usage` by direction; the attributes of spans below are unchanged in it.
"""

import json
import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.observe import Event

Value: TypeAlias = str | bool | int | float | list[str]
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_SEED: Final = "gen_ai.request.seed"
OUTPUT_TYPE: Final = "gen_ai.output.type"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
RETRIEVAL_QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
EVALUATION_RESULT: Final = "gen_ai.evaluation.result"
"""Name of an event, through the Logs API; what follows are its attributes."""
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
TEST_SUITE_NAME: Final = "test.suite.name"
TEST_CASE_NAME: Final = "test.case.name"
CHAT: Final = "chat"
RETRIEVAL: Final = "retrieval"
JSON: Final = "json"
INPUT: Final = "input"
OUTPUT: Final = "output"
OTHER_ERROR: Final = "_OTHER"
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
OPERATION_DURATION_UNIT: Final = "s"
OPERATION_DURATION_BUCKETS: Final = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
    *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105
TOKEN_USAGE_UNIT: Final = "{token}"  # noqa: S105
TOKEN_USAGE_BUCKETS: Final = tuple(4**power for power in range(14))
# No convention names these.
STAGE: Final = "ragforge.stage"
STAGE_TOTAL: Final = "ragforge.stage.total"
OUTCOME: Final = "ragforge.outcome"
CACHED: Final = "ragforge.cached"
SCHEMA: Final = "ragforge.schema"
ATTEMPTS: Final = "ragforge.attempts"
COST_USD: Final = "ragforge.cost_usd"
UNITS: Final = "ragforge.units"
RETRIES: Final = "ragforge.retries"
COST: Final = "ragforge.cost"
DATASET: Final = "ragforge.dataset"
DATASET_VERSION: Final = "ragforge.dataset.version"
RUN: Final = "ragforge.run"
ONLY_RETRIEVED: Final = "ragforge.only_retrieved"
"""True where queries that the run lacks were left out; else it is not there."""
EVALUATION_ID: Final = "ragforge.evaluation.id"
QUERY_ID: Final = "ragforge.query.id"
CHUNK_ID: Final = "ragforge.chunk.id"
SYSTEM: Final = "ragforge.system"
MEASURE: Final = "ragforge.measure"
"""Name of a gauge, its attribute, and before ".nDCG@10" that of a value in a span."""
FIRST_RELEVANT_RANK: Final = "ragforge.query.first_relevant_rank"
N_QUERIES: Final = "ragforge.evaluation.n_queries"
DEPTH: Final = "ragforge.evaluation.depth"
"""Chunks of the longest ranking."""
N_RELEVANT: Final = "ragforge.query.n_relevant"
N_RETRIEVED: Final = "ragforge.query.n_retrieved"
EXCEPTION: Final = "exception"
"""Name of an event of a span; what follows are its attributes."""
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EVALUATION_SPAN: Final = "ragforge evaluate"
QUERY_SPAN: Final = "ragforge query"
_PROVIDERS: Final = {
    "api.openai.com": "openai",
    "*.api.openai.com": "openai",
    "*.openai.azure.com": "azure.ai.openai",
    "*.services.ai.azure.com": "azure.ai.inference",
    "*.models.ai.azure.com": "azure.ai.inference",
    "api.anthropic.com": "anthropic",
    "bedrock-runtime.*.amazonaws.com": "aws.bedrock",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "*-aiplatform.googleapis.com": "gcp.vertex_ai",
    "*.ml.cloud.ibm.com": "ibm.watsonx.ai",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
}


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric of the application's meter."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    description: str
    buckets: tuple[float, ...] = ()
    """Upper ends, of a histogram."""


MEASURE_MEAN: Final = Instrument(MEASURE, "gauge", "1", "Latest mean of a measure over queries")
MEASURE_LOW: Final = Instrument(
    f"{MEASURE}.low", "gauge", "1", "Lower end of the 95 % interval of that mean"
)
MEASURE_HIGH: Final = Instrument(
    f"{MEASURE}.high", "gauge", "1", "Upper end of the 95 % interval of that mean"
)
EVALUATIONS: Final = Instrument(
    "ragforge.evaluations", "counter", "{evaluation}", "Runs that were measured"
)
QUERIES: Final = Instrument(
    "ragforge.evaluation.queries",
    "counter",
    "{query}",
    "Queries measured, by outcome: done, or failed and without a value",
)
HOLES: Final = Instrument(
    "ragforge.evaluation.holes", "counter", "{chunk}", "Chunks in the top 10 without a grade"
)
RETRIEVAL_DURATION: Final = Instrument(
    "ragforge.retrieval.duration",
    "histogram",
    "s",
    "How long the retriever took for a query of the run that is measured",
    (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
)


def number(event: Event, key: str) -> float | None:
    """Return a number of an event; None where it has none, or none that is finite."""
    value = event.numbers.get(key)
    return value if value is not None and math.isfinite(value) else None


def clean(text: str) -> str:
    """Return the text without lone surrogates, at which exporters fail with the whole batch."""
    return text.encode(errors="replace").decode()


def error_type(event: Event) -> str:
    """Return the kind of a failure."""
    return clean(event.labels.get("kind", OTHER_ERROR))


def whole_numbers(event: Event, keys: Mapping[str, str]) -> dict[str, Value]:
    """Return the whole numbers that an event has, under the names of their attributes.

    Args:
        event: With numbers.
        keys: Their names in the event, to those of the attributes.
    """
    values = {name: number(event, key) for key, name in keys.items()}
    return {name: int(value) for name, value in values.items() if value is not None}


def messages(event: Event) -> dict[str, Value]:
    """Return the turns and the reply as JSON, in the form of the convention."""
    turns, reply = list(event.content), None
    if turns and turns[-1][0] == "assistant":
        reply = _message(*turns.pop())
        reply["finish_reason"] = event.labels.get("finish_reason", "unknown")
    attributes: dict[str, Value] = {}
    if turns:
        attributes[INPUT_MESSAGES] = _dumped(_message(role, text) for role, text in turns)
    if reply:
        attributes[OUTPUT_MESSAGES] = _dumped([reply])
    return attributes


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _dumped(messages: Iterable[dict[str, object]]) -> str:
    return clean(json.dumps(list(messages), ensure_ascii=False))


def provider(host: str) -> str:
    """Return the well-known name of the provider at a host, given in lower case.

    Any other host is `openai`: the convention asks for the flavour of the telemetry where the
    provider is not known, and every endpoint here speaks that API.
    """
    known = (name for pattern, name in _PROVIDERS.items() if fnmatchcase(host, pattern))
    return next(known, "openai")
