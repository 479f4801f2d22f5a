import base64
import json
import math
from array import array
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fakes import request
from hypothesis import given
from hypothesis import strategies as st

from ragforge.llm.chat import Numeral, call_key
from ragforge.llm.store.sqlite_file import parse_reply, reply_json
from ragforge.llm.wire import (
    Dialect,
    RateLimit,
    RateLimits,
    dumps,
    embeddings_request,
    milder_dialect,
    pack,
    read_embeddings,
    read_rate_limits,
    read_reply,
    request_body,
    retry_after_s,
    unpack,
)

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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_what_is_sent_is_json_of_the_value(value):
    """Fields of `extra_body` are anything."""
    assert repr(json.loads(dumps(value))) == repr(value)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("krill é \u2028", '"krill é \u2028"'),
        ("\ud800", '"\\ud800"'),
        ("\x01\n\x7f", '"\\u0001\\n\x7f"'),
    ],
)
def test_text_is_sent_as_it_is_where_utf_8_can_hold_it(text, sent):
    """Escapes are six bytes a character, and some servers count bytes."""
    assert dumps(text) == sent.encode()


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


SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(SINGLE, min_size=n, max_size=n), min_size=1)
    )
)
def test_vectors_come_out_of_the_store_as_they_went_in(vectors):
    """A rerun must rank as the first run did."""
    assert unpack(pack([array("f", vector) for vector in vectors])) == vectors


def test_vectors_are_kept_as_little_endian_singles():
    """A store is read on another machine than the one it was made on."""
    packed = pack([array("f", [1.0, 2.0])])

    assert packed == f"1 {base64.b64encode(bytes.fromhex('0000803f00000040')).decode()}"


@pytest.mark.parametrize(
    "text", ["", "1", "0 ", "1 ?", "x AACAPw==", "2 AACAPw==", "1 AACA", "fine"]
)
def test_what_holds_no_vectors_is_told(text):
    """A row that somebody imported may hold anything."""
    with pytest.raises(ValueError, match=r"."):
        unpack(text)


def test_a_reply_without_a_count_is_estimated():
    """Local servers tell none, and a budget in tokens must hold all the same."""
    body = {"data": [{"index": 0, "embedding": [1]}]}

    usage = read_embeddings(body, embeddings_request(["eight by"]), 0.0).usage

    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated) == (6, 0, True)


def test_the_order_of_texts_is_part_of_the_key():
    """Vectors belong to texts by their place."""
    one, other = (embeddings_request(texts) for texts in (["a", "b"], ["b", "a"]))

    assert call_key("e", "m", one) != call_key("e", "m", other)


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


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"RETRY-AFTER": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "1e9"}, 1e9),
        ({"Retry-After": "1e308"}, 1e9),
        ({"Retry-After-Ms": "1e308"}, 1e9),
        ({"Retry-After": "9999999999999d"}, 1e9),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, 1e9),
        ({"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"Retry-After": "99999999"}, 99999999.0),
        ({"Retry-After-Ms": "-1"}, None),
        ({"Retry-After-Ms": "never"}, None),
        ({"Retry-After-Ms": "never", "Retry-After": "9"}, 9.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_the_wait_an_endpoint_asks_for_is_read(headers, seconds):
    """Gateways write it in several ways, and some write nonsense."""
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("250ms", 0.25),
        ("7s", 7.0),
        ("1.5s", 1.5),
        ("6m0s", 360.0),
        ("1m30s", 90.0),
        ("1h2m3s", 3723.0),
        ("1d", 86400.0),
        ("1m30", None),
        ("m30s", None),
        ("1m 30s", None),
        ("-1s", None),
        ("1w", None),
        ("9" * 400 + "d", None),
    ],
)
def test_durations_with_units_are_read(value, seconds):
    """OpenAI and Groq write 6m0s and 250ms where others write seconds."""
    assert retry_after_s({"retry-after": value}) == seconds


def test_a_date_to_wait_for_becomes_seconds():
    """RFC 9110 allows a date instead of seconds."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)

    assert retry_after_s({"Retry-After": later}) == pytest.approx(30, abs=2)


@given(st.text(max_size=40))
def test_any_text_to_wait_for_is_a_time_or_nothing(text):
    """Headers come from outside; the pacer counts with what is read."""
    seconds = retry_after_s({"retry-after": text})

    assert seconds is None or 0 <= seconds < float("inf")


def limits(**headers):
    return read_rate_limits(
        {f"x-ratelimit-{name.replace('_', '-')}": value for name, value in headers.items()}
    )


def test_both_limits_are_read():
    """Requests and tokens run out independently."""
    told = limits(
        limit_requests="1200",
        remaining_requests="1199",
        limit_tokens="60000",
        remaining_tokens="59000",
    )

    assert told == RateLimits(RateLimit(1200.0, 1199.0), RateLimit(60000.0, 59000.0))


def test_one_limit_may_be_told_alone():
    """Some endpoints limit requests, some tokens."""
    assert limits(limit_tokens="60000", remaining_tokens="0") == RateLimits(
        None, RateLimit(60000.0, 0.0)
    )


def test_replies_without_limits_tell_nothing():
    """What refusals have shown must not be forgotten for it."""
    assert read_rate_limits({"content-type": "application/json"}) is None


def test_what_is_left_without_a_limit_tells_nothing():
    """Without the limit nobody knows how fast it comes back."""
    assert limits(remaining_requests="5") is None


@pytest.mark.parametrize("remaining", ["", "many", "-1", "nan", "inf"])
def test_a_remainder_that_makes_no_sense_counts_as_all(remaining):
    """The limit is of use all the same."""
    assert limits(limit_requests="60", remaining_requests=remaining) == RateLimits(
        RateLimit(60.0, 60.0), None
    )


@pytest.mark.parametrize("limit", ["0", "-1", "", "none", "nan", "inf", "100, 100;w=60"])
def test_a_limit_that_makes_no_sense_is_none(limit):
    """A limit of 0 or -1 means no limit; it must not stop the run."""
    assert limits(limit_requests=limit, remaining_requests="5") == RateLimits(None, None)
