import json
import math

import pytest
from fakes import request

from ragforge.llm.chat import Numeral, call_key
from ragforge.llm.store.rows import parse_reply, reply_json
from ragforge.llm.wire import Dialect, milder_dialect, read_reply, request_body

TEXT = '{"reasoning": "2 of them", "grade": 3}'


def token(text, **alternatives):
    given = alternatives or {text: 1.0}
    return {
        "token": text,
        "logprob": 0.0,
        "top_logprobs": [
            {"token": name, "logprob": math.log(share)} for name, share in given.items()
        ],
    }


def body(tokens, text=TEXT):
    choice = {"message": {"content": text}, "logprobs": {"content": tokens}}
    return {"choices": [choice]}


TOKENS = [
    token('{"reasoning": "'),
    token("2"),
    token(' of them", "grade":'),
    token(" 3", **{" 3": 0.5, "2": 0.25, " three": 0.25}),
    token("}"),
]


def test_only_digits_keep_their_alternatives():
    """All alternatives of all tokens would be fifty times as long as the reply."""
    reply = read_reply(body(TOKENS), request(logprobs=5), 0.0)

    assert reply.numerals == (
        Numeral(TEXT.index("2"), (("2", 0.0),)),
        Numeral(TEXT.index("3}"), (("3", -0.6931), ("2", -1.3863), ("three", -1.3863))),
    )


def test_tokens_of_a_fence_that_was_taken_off_are_passed_over():
    """llama.cpp gives the object, and the tokens of the fence around it as well."""
    fenced = [token("```"), token("json\n"), *TOKENS, token("\n```")]

    plain = read_reply(body(TOKENS), request(logprobs=5), 0.0)

    assert read_reply(body(fenced), request(logprobs=5), 0.0).numerals == plain.numerals


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        [],
        "none",
        [{"token": "3"}],
        [token("x" * 100), token("3")],
        [{"token": 3, "top_logprobs": []}],
        [{"token": "3", "top_logprobs": [{"token": "3", "logprob": None}]}],
    ],
)
def test_probabilities_that_do_not_fit_the_reply_are_none(tokens):
    """A digit at the wrong place would weigh a grade with the odds of something else."""
    assert read_reply(body(tokens), request(logprobs=5), 0.0).numerals == ()


def test_probabilities_nobody_asked_for_are_passed_over():
    """An endpoint that sends them always must not fill the store."""
    assert read_reply(body(TOKENS), request(), 0.0).numerals == ()


def test_numerals_come_back_from_the_store():
    """A rerun must weigh a grade as the first run did."""
    reply = read_reply(body(TOKENS), request(logprobs=5), 0.0)

    assert parse_reply("k", reply_json(reply)).numerals == reply.numerals


@pytest.mark.parametrize(("logprobs", "sent"), [(0, None), (5, 5)])
def test_probabilities_are_asked_for_on_request_only(logprobs, sent):
    """Some endpoints refuse them, and they make replies long."""
    fields = json.loads(request_body("m", request(logprobs=logprobs), Dialect(), bounded=True))

    assert fields.get("top_logprobs") == sent
    assert fields.get("logprobs") == (True if sent else None)


@pytest.mark.parametrize("param", ["logprobs", "top_logprobs"])
def test_an_endpoint_that_refuses_probabilities_is_asked_without(param):
    """The grade is there without them; they only make it finer."""
    dialect = milder_dialect(Dialect(), "Unsupported parameter", param)

    fields = json.loads(request_body("m", request(logprobs=5), dialect, bounded=True))

    assert "logprobs" not in fields
    assert "top_logprobs" not in fields


def test_the_key_of_a_call_without_probabilities_is_what_it_was():
    """Replies bought before there were any must be found again."""
    assert call_key("e", "m", request()) == call_key("e", "m", request(logprobs=0))
    assert call_key("e", "m", request()) != call_key("e", "m", request(logprobs=5))
