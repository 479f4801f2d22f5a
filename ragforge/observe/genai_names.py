"""What OpenTelemetry calls things: the one table of names, units and values.

Source: OpenTelemetry semantic conventions v1.41.0, docs/gen-ai/gen-ai-spans.md and
gen-ai-metrics.md (status: development), the last numbered version that defines them. They moved to
github.com/open-telemetry/semantic-conventions-genai, which has released no version so far; its
draft renames `gen_ai.client.operation.duration` to `gen_ai.client.inference.duration` and splits
`gen_ai.client.token.usage` by direction; the attributes of spans below are unchanged in it.
"""

from fnmatch import fnmatchcase
from typing import Final

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

CHAT: Final = "chat"
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


def provider(host: str) -> str:
    """Return the well-known name of the provider at a host, given in lower case.

    Any other host is `openai`: the convention asks for the flavour of the telemetry where the
    provider is not known, and every endpoint here speaks that API.
    """
    names = (name for pattern, name in _PROVIDERS.items() if fnmatchcase(host, pattern))
    return next(names, "openai")
