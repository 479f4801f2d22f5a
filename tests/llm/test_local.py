"""Against the real server and a real, very small model: its replies are fluent, not good."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import openai
import pytest
from openai.types.chat import ChatCompletion
from pydantic import BaseModel, ConfigDict, Field

from ragforge.errors import ConfigError, DataError, EndpointError
from ragforge.llm.local import LocalEndpoint, model_digest, serve

pytestmark = pytest.mark.local_model


class Grade(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str = Field(max_length=12)
    grade: Literal[0, 1, 2, 3]


class Grades(BaseModel):
    model_config = ConfigDict(extra="forbid")

    spans: list[Annotated[list[int], Field(max_length=2)]] = Field(max_length=1)
    grades: list[Grade] = Field(min_length=2, max_length=2)


@pytest.fixture(scope="module")
def client(smollm2: LocalEndpoint) -> Iterator[openai.OpenAI]:
    with connect(smollm2) as opened:
        yield opened


def connect(endpoint: LocalEndpoint) -> openai.OpenAI:
    return openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0, timeout=300)


def ask(client: openai.OpenAI, content: str, **options: object) -> ChatCompletion:
    messages = [{"role": "user", "content": content}]
    return client.chat.completions.create(model="any", messages=messages, **options)


def port(endpoint: LocalEndpoint) -> int:
    return urlsplit(endpoint.base_url).port


def test_server_listens_on_loopback_only(smollm2):
    """Nobody on the network may use the model."""
    assert urlsplit(smollm2.base_url).hostname == "127.0.0.1"


def test_reply_is_the_most_likely_one_unless_asked_otherwise(client):
    """A judge that draws lots gives another grade each time."""
    first, second = (ask(client, "Name a colour.", max_tokens=12) for _ in range(2))

    assert first.choices[0].message.content == second.choices[0].message.content


def test_json_schema_holds_during_decoding(client):
    """References, nested lists, enums and lengths, as pydantic writes them, bind any model."""
    schema = {"name": "grades", "strict": True, "schema": Grades.model_json_schema()}

    reply = ask(
        client,
        "Grade two passages about cats.",
        max_tokens=400,
        response_format={"type": "json_schema", "json_schema": schema},
    )

    assert Grades.model_validate_json(reply.choices[0].message.content)


def test_broken_schema_is_refused(client):
    """A schema that cannot be enforced must not be ignored."""
    schema = {"name": "broken", "schema": {"$ref": "#/$defs/missing"}}

    with pytest.raises(openai.BadRequestError, match="cannot resolve"):
        ask(client, "Hi", response_format={"type": "json_schema", "json_schema": schema})


def test_cut_reply_says_so(client):
    """A truncated reply becomes a failure only if it can be told from a whole one."""
    reply = ask(client, "Tell a long story.", max_tokens=5)

    assert reply.choices[0].finish_reason == "length"


def test_reply_carries_its_usage(client):
    """Token budgets hold for local models too."""
    usage = ask(client, "Tell a long story.", max_tokens=5).usage

    assert usage.completion_tokens == 5
    assert usage.total_tokens == usage.prompt_tokens + 5


def test_prompt_beyond_the_context_is_refused(client):
    """A prompt cut without a word would be judged on what is left of it."""
    with pytest.raises(openai.BadRequestError, match="exceeds the available context size"):
        ask(client, "word " * 6000)


def test_twice_as_many_requests_as_slots_are_all_answered(client):
    """Requests beyond the slots wait; they are not refused."""
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda n: ask(client, f"Count {n}", max_tokens=4), range(8)))

    assert [reply.usage.completion_tokens for reply in replies] == [4] * 8


def test_replies_and_model_list_carry_the_digest(client, smollm2, smollm2_path):
    """Provenance names the weights, and no folder of the machine they were on."""
    assert smollm2.model == model_digest(smollm2_path)
    assert [model.id for model in client.models.list()] == [smollm2.model]
    assert ask(client, "Hi", max_tokens=1).model == smollm2.model


def test_embeddings_are_refused_unless_asked_for(client):
    """A server for judging keeps its memory for judging."""
    with pytest.raises(openai.APIStatusError, match="does not support embeddings"):
        client.embeddings.create(model="any", input=["a"])


def test_embeddings_take_whole_chunks(smollm2_path):
    """llama.cpp's own default refuses inputs beyond 512 tokens."""
    with (
        serve(smollm2_path, parallel=1, context_tokens=1024, embeddings=True) as endpoint,
        connect(endpoint) as client,
    ):
        [cat, chunk] = client.embeddings.create(model="any", input=["a cat", "cat " * 600]).data

    assert len(cat.embedding) == len(chunk.embedding) == 576


def test_nothing_is_written_to_the_standard_streams(smollm2_path, capfd):
    """Stdout is for data."""
    with serve(smollm2_path, parallel=1) as endpoint, connect(endpoint) as client:
        ask(client, "Hi", max_tokens=1)

    assert capfd.readouterr() == ("", "")


def test_servers_run_side_by_side_and_one_after_the_other(smollm2_path, smollm2):
    """A judge and an answerer may be two models."""
    for _ in range(2):
        with serve(smollm2_path, parallel=1) as endpoint, connect(endpoint) as client:
            assert ask(client, "Hi", max_tokens=1).usage.completion_tokens == 1
            assert port(endpoint) != port(smollm2)


def test_server_is_gone_after_the_context(smollm2_path):
    """Its memory is needed for the next model."""
    with serve(smollm2_path, parallel=1) as endpoint:
        pass

    assert falls_silent(endpoint)


def test_leaving_cuts_off_a_call_in_flight(smollm2_path):
    """An error elsewhere in the run must not wait for the model, let alone for ever."""
    outcome: list[Exception] = []
    generating = threading.Event()

    def read_on(client):
        stream = ask(client, "Tell a story.", stream=True, extra_body={"ignore_eos": True})
        try:
            for _ in stream:
                generating.set()
        except Exception as error:  # noqa: BLE001 - which one is what the test is about
            outcome.append(error)

    with serve(smollm2_path, parallel=1) as endpoint:
        client = connect(endpoint)
        thread = threading.Thread(target=read_on, args=[client])
        thread.start()
        generating.wait(timeout=30)
    thread.join(timeout=30)
    client.close()

    assert not thread.is_alive()
    assert len(outcome) == 1


GENERATING = """
import signal
import sys
from pathlib import Path
import openai
from ragforge.llm.local import serve

# A background job starts its programs deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
with serve(Path(sys.argv[1]), parallel=1) as endpoint:
    client = openai.OpenAI(base_url=endpoint.base_url, api_key="none")
    messages = [{"role": "user", "content": "Tell a story."}]
    stream = client.chat.completions.create(
        model="any", messages=messages, stream=True, extra_body={"ignore_eos": True}
    )
    next(stream)
    print(endpoint.base_url, flush=True)
    for _ in stream:
        pass
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_server_ends_with_the_program(smollm2_path, sent):
    """Neither Ctrl-C nor `kill -9` may leave gigabytes of model behind, or hang."""
    command = [sys.executable, "-c", GENERATING, str(smollm2_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        base_url = program.stdout.readline().decode().strip()
        program.send_signal(sent)
        ended = program.wait(timeout=30)

    assert ended == -sent
    assert falls_silent(LocalEndpoint(base_url, "any"))


def falls_silent(endpoint: LocalEndpoint) -> bool:
    """Connect until refused: the system takes a moment to close the ports of a dead process."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port(endpoint))).close()
        except ConnectionError:
            return True
    return False


def lose_the_server(path: Path) -> None:
    others = children()
    with serve(path, parallel=1):
        [server] = children() - others
        os.kill(server, signal.SIGKILL)
        raise EndpointError("connection refused")


def children() -> set[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(child) for child in listed.split()}


@pytest.mark.skipif(sys.platform != "linux", reason="finds the server's process in /proc")
def test_end_of_the_server_is_named_as_the_cause(smollm2_path):
    """'Connection refused' does not tell that the machine ran out of memory."""
    with pytest.raises(EndpointError, match=r"its server ended: stopped by SIGKILL \(out of mem"):
        lose_the_server(smollm2_path)


def test_error_of_the_body_is_kept_while_the_server_lives(smollm2_path):
    """Only what the server caused is put down to it."""
    with (
        pytest.raises(EndpointError, match=r"^the key was refused$"),
        serve(smollm2_path, parallel=1),
    ):
        raise EndpointError("the key was refused")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.gguf", "cannot be read: No such file"),
        ("", "cannot be read: Is a directory"),
        ("page.gguf", "starts with b'<!DO'; a GGUF file starts with b'GGUF'"),
    ],
)
def test_what_is_no_model_file_is_refused(tmp_path, name, message):
    """A download that failed is often a page of HTML under the model's name."""
    (tmp_path / "page.gguf").write_text("<!DOCTYPE html>")

    with pytest.raises(DataError, match=message), serve(tmp_path / name, parallel=1):
        pass


def test_half_a_model_is_refused_with_the_reason(smollm2_path, tmp_path):
    """A download that stopped half-way looks like a model until it is loaded."""
    half = tmp_path / "half.gguf"
    half.write_bytes(smollm2_path.read_bytes()[:50_000_000])

    with (
        pytest.raises(EndpointError, match=r"cannot be served: .* corrupted or incomplete$"),
        serve(half, parallel=1),
    ):
        pass


def test_more_slots_than_possible_are_refused_with_the_reason(smollm2_path):
    """A high concurrency must fail at the start, and say which number is too high."""
    with (
        pytest.raises(EndpointError, match="n_seq_max must be <= 256"),
        serve(smollm2_path, parallel=300, context_tokens=64),
    ):
        pass


def test_missing_package_is_named_with_its_remedy(tmp_path, monkeypatch):
    """The extra is optional, so its absence is the user's most likely error."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")

    with (
        pytest.raises(ConfigError, match=r"pip install 'ragforge\[local\]'"),
        serve(path, parallel=1),
    ):
        pass


def test_digest_knows_the_weights_and_not_the_folder(tmp_path):
    """A model moved to another disk keeps its stored replies."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.gguf").write_bytes(b"GGUF weights")

    assert model_digest(tmp_path / "a/model.gguf") == model_digest(tmp_path / "b/model.gguf")
    assert model_digest(tmp_path / "a/model.gguf") == "model.gguf@57c14f3799486203"


@pytest.mark.parametrize("at", [0, 5_000_000, 9_999_999])
def test_digest_sees_changes_all_along_the_file(tmp_path, at):
    """Fine-tunes share name, size, metadata and vocabulary; replies of one are not the other's."""
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(10_000_000))
    before = model_digest(path)

    with path.open("r+b") as stream:
        stream.seek(at)
        stream.write(b"x" * 200_000)

    assert model_digest(path) != before


def test_digest_of_a_missing_file_is_an_error_of_data(tmp_path):
    """`--dry-run` asks for the name without starting the model."""
    with pytest.raises(DataError, match="cannot be read: No such file"):
        model_digest(tmp_path / "missing.gguf")
