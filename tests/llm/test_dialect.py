import pytest

from ragforge.llm.wire import Dialect, milder_dialect

REFUSALS = {
    "openai temperature": (
        "Unsupported value: 'temperature' does not support 0 with this model. "
        "Only the default (1) value is supported.",
        "temperature",
        Dialect(omit=("temperature",)),
    ),
    "openai max_tokens": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "max_tokens",
        Dialect(tokens_field="max_completion_tokens"),
    ),
    "openai response_format": (
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
        "model.",
        "response_format",
        Dialect(mode="json_object"),
    ),
    "deepseek response_format": (
        "This response_format type is unavailable now",
        "",
        Dialect(mode="json_object"),
    ),
    "vllm seed": (
        "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs'}]",
        "",
        Dialect(omit=("seed",)),
    ),
    "llama.cpp grammar": ("failed to parse grammar", "", Dialect(mode="json_object")),
}


@pytest.mark.parametrize(("message", "param", "expected"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_of_the_form_names_the_next_form(message, param, expected):
    """Endpoints say in many words what they do not take, and a user should not have to know."""
    assert milder_dialect(Dialect(), message, param) == expected


def test_the_plainest_form_has_no_milder_one():
    """Learning must end."""
    assert milder_dialect(Dialect(mode="plain"), "response_format is not supported", "") is None


def test_a_refused_parameter_is_left_out_once():
    """An endpoint that goes on refusing for the same word must not be asked for ever."""
    left_out = Dialect(omit=("temperature",))

    assert milder_dialect(left_out, "'temperature' is not supported", "temperature") is None


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, you requested 9000",
        "The high temperature alarm in the text is not allowed",
        "Your request was flagged by our moderation system",
    ],
)
def test_other_refusals_change_nothing(message):
    """A request refused for what it holds must fail alone, not change how all are asked."""
    assert milder_dialect(Dialect(), message, "") is None
