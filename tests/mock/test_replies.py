"""Good replies: their shape, and that they say the same to the same."""

import base64
import json
import math
import struct

import openai
import pytest

from ragforge.llm.structured import reply_schema
from ragforge.mock.content import body_sha256, good_content
from ragforge.stages.judge.llm import RelevanceReply


def test_a_reply_has_all_that_openai_sends(start, plain):
    """Clients validate it."""
    body = start().chat(plain()).json

    assert set(body) == {
        "id",
        "object",
        "created",
        "model",
        "system_fingerprint",
        "choices",
        "usage",
    }
    assert (body["object"], body["created"], body["system_fingerprint"]) == (
        "chat.completion",
        0,
        "mock",
    )


def test_the_model_is_the_one_asked_for(start, plain):
    """Whoever compares models relies on it."""
    assert start().chat(plain(model="big")).json["model"] == "big"


def test_the_choice_ends_by_itself(start, plain):
    """The reply is whole."""
    choice = start().chat(plain()).choice

    assert (choice["index"], choice["finish_reason"], choice["message"]["refusal"]) == (
        0,
        "stop",
        None,
    )


def test_each_reply_has_a_request_id(start, plain):
    """It is what one tells a provider's support."""
    client = start()
    first, second = (client.chat(plain()).headers["x-request-id"] for _ in range(2))

    assert first != second


def test_equal_requests_get_equal_bodies(start, plain):
    """Byte by byte, also from another endpoint."""
    assert start().chat(plain()).content == start().chat(plain()).content


def test_other_requests_get_other_replies(start, plain):
    """A reply that went to the wrong request shows."""
    client = start()

    assert client.chat(plain("a")).text != client.chat(plain("b")).text


def test_another_seed_gives_another_reply(start, plain):
    """As another model would."""
    assert start(seed=1).chat(plain()).text != start(seed=2).chat(plain()).text


def test_the_good_reply_can_be_computed(start, judging):
    """A test can compare what was stored with what was said."""
    body = judging()

    assert start(seed=3).chat(body).text == good_content(body, body_sha256(body), 3).text


def test_a_small_limit_on_tokens_is_passed_over(start, judging):
    """Cut replies are a fault of their own."""
    assert start().chat(judging(max_tokens=1)).choice["finish_reason"] == "stop"


def test_paths_are_served_without_v1_too(start, plain):
    """Base URLs are written either way."""
    assert start().ask("POST", "/chat/completions", plain()).status == 200


def test_models_are_listed(start):
    """Clients ask for them to see whether the endpoint is there."""
    assert [model["id"] for model in start().ask("GET", "/v1/models").json["data"]] == ["mock"]


@pytest.mark.parametrize("form", [{"type": "json_object"}, None])
def test_a_schema_in_the_prompt_is_obeyed(start, judging, form):
    """So is asked where the endpoint enforces nothing."""
    body = judging(response_format=form)
    schema = json.dumps(reply_schema(RelevanceReply))
    body["messages"][0]["content"] += f"It must hold to this JSON schema:\n{schema}"
    reply = start().chat(body)

    assert RelevanceReply.model_validate_json(reply.text, strict=True).grade in {0, 1, 2, 3}


def test_json_without_a_schema_is_an_object(start, plain):
    """It is all that was asked for."""
    reply = start().chat(plain(response_format={"type": "json_object"}))

    assert isinstance(json.loads(reply.text), dict)


def test_content_in_parts_is_read(start, plain):
    """The other form that messages have."""
    body = plain()
    body["messages"][0]["content"] = [{"type": "text", "text": "x" * 40}]

    assert start().chat(body).json["usage"]["prompt_tokens"] == 10


def test_a_repair_turn_gets_a_good_reply(start, judging):
    """A second try must be able to help."""
    body = judging()
    body["messages"] += [
        {"role": "assistant", "content": "3"},
        {"role": "user", "content": "That reply cannot be used."},
    ]
    reply = json.loads(start().chat(body).text)

    assert (reply["grade"], reply["contains_answer"]) == (2, True)


@pytest.fixture
def embed(start):
    """Embed texts; return the reply's rows."""
    client = start()

    def go(texts, **more):
        body = {"model": "m", "input": texts, **more}
        return client.ask("POST", "/v1/embeddings", body).json["data"]

    return go


def test_vectors_have_length_one(embed):
    """Retrievers take the inner product for the cosine."""
    [row] = embed("a")

    assert math.hypot(*row["embedding"]) == pytest.approx(1)


def test_equal_texts_have_equal_vectors(embed):
    """A rerun builds the same index."""
    first, second, third = embed(["a", "b", "a"])

    assert first["embedding"] == third["embedding"] != second["embedding"]


def test_rows_have_the_index_of_their_text(embed):
    """Clients sort by it."""
    assert [row["index"] for row in embed(["a", "b"])] == [0, 1]


@pytest.mark.parametrize(("more", "size"), [({}, 64), ({"dimensions": 8}, 8)])
def test_vectors_have_as_many_dimensions_as_asked(embed, more, size):
    """Many indexes are laid out for one size."""
    assert len(embed("a", **more)[0]["embedding"]) == size


def test_packed_vectors_are_the_same(embed):
    """The openai client asks for base64 unless told otherwise."""
    [row], [packed] = embed("a"), embed("a", encoding_format="base64")
    unpacked = struct.unpack("<64f", base64.b64decode(packed["embedding"]))

    assert list(unpacked) == pytest.approx(row["embedding"])


def test_token_ids_are_embedded_as_one_text(embed):
    """A list of numbers is one input."""
    assert len(embed([1, 2, 3])) == 1


def test_embeddings_are_billed(start):
    """They cost money too."""
    client = start()
    client.ask("POST", "/v1/embeddings", {"model": "m", "input": "x" * 40})
    ledger = client.running.ledger()

    assert (ledger["billed"], ledger["prompt_tokens"], ledger["completion_tokens"]) == (1, 10, 0)


def test_the_official_client_is_served(start, plain):
    """It is what users' programs use."""
    with openai.OpenAI(base_url=start().running.url, api_key="none") as client:
        chat = client.chat.completions.create(**plain())
        vectors = client.embeddings.create(model="m", input=["a"])

    assert chat.choices[0].message.content.startswith("This is reply")
    assert len(vectors.data[0].embedding) == 64
