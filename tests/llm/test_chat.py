import pytest
from fakes import request

from ragforge.llm.chat import Message, call_key, estimate_tokens


@pytest.mark.parametrize(
    "other",
    [
        call_key("http://b/v1", "m", request()),
        call_key("http://a/v1", "m2", request()),
        call_key("http://a/v1", "m", request(temperature=0.5)),
        call_key("http://a/v1", "m", request(seed=1)),
        call_key("http://a/v1", "m", request(max_output_tokens=9)),
        call_key("http://a/v1", "m", request(vote=1)),
        call_key("http://a/v1", "m", request(schema_name="other")),
        call_key("http://a/v1", "m", request(schema={"type": "array"})),
        call_key("http://a/v1", "m", request("other text")),
        call_key("http://a/v1", "m", request(messages=(Message("user", "hello"),))),
    ],
)
def test_whatever_changes_the_question_changes_the_key(other):
    """A shared key would answer one model's question with another model's reply."""
    assert other != call_key("http://a/v1", "m", request())


def test_the_order_of_keys_in_a_schema_does_not_matter():
    """The same question must not be bought twice because a dict was built in another order."""
    one = request(schema={"a": {"x": 1, "y": 2}, "b": 3})
    other = request(schema={"b": 3, "a": {"y": 2, "x": 1}})

    assert call_key("e", "m", one) == call_key("e", "m", other)


def test_a_key_is_the_same_in_every_process():
    """Stores outlive processes, and shards on several machines must agree."""
    assert call_key("e", "m", request()) == (
        "5d8e82bbb6277f4b84e4bc00e8fda00b18b0df34233117ed89930221a96a1c51"
    )


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 4 + 2), ("a" * 400, 4 + 2 + 100), ("文" * 10, 4 + 2 + 5)]
)
def test_prompt_tokens_are_estimated_from_characters(text, tokens):
    """Estimates of cost must work without a tokeniser, for every script."""
    prompt = request(messages=(Message("system", "a" * 8), Message("user", text)))

    assert estimate_tokens(prompt) == tokens + 4
