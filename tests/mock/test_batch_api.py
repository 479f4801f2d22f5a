"""Files and batches, as the official client asks for them."""

import json

import openai
import pytest

from ragforge.mock import Script, serving


@pytest.fixture
def client_for():
    """Serve a script; return the official client of it."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def make(**script):
            running = stack.enter_context(serving(Script(**script)))
            client = openai.OpenAI(base_url=running.url, api_key="k", max_retries=0)
            return stack.enter_context(client), running

        yield make


def line(number):
    messages = [{"role": "user", "content": f"hello {number}"}]
    asked = {"custom_id": f"k{number}", "method": "POST", "url": "/v1/chat/completions"}
    return {**asked, "body": {"model": "m", "messages": messages}}


@pytest.fixture
def submit(tmp_path):
    """Send requests as a batch."""

    def go(client, n=6, **metadata):
        path = tmp_path / "in.jsonl"
        path.write_text("".join(json.dumps(line(number)) + "\n" for number in range(n)))
        file = client.files.create(file=path, purpose="batch")
        return client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata=metadata,
        )

    return go


def replies(client, batch):
    return [
        json.loads(text)
        for text in client.files.content(batch.output_file_id).text.split("\n")
        if text
    ]


def test_a_batch_gives_the_replies_of_live_calls(client_for, submit):
    """What is rehearsed must be what is done."""
    client, running = client_for()
    batch = submit(client)
    found = {one["custom_id"]: one["response"]["body"] for one in replies(client, batch)}
    live = client.chat.completions.create(**line(3)["body"])

    assert sorted(found) == [f"k{number}" for number in range(6)]
    assert found["k3"]["choices"][0]["message"]["content"] == live.choices[0].message.content
    assert running.ledger()["dup"] == 1


def test_a_batch_takes_its_time(client_for, submit):
    """A client that does not wait must be seen to."""
    client, _ = client_for(batch_s=60)
    batch = submit(client)

    assert (batch.status, batch.output_file_id) == ("in_progress", None)


def test_batches_are_listed_the_newest_first_page_by_page(client_for, submit):
    """After a crash a batch is found by its metadata, however many there are."""
    client, _ = client_for()
    for number in range(5):
        submit(client, n=1, name=f"b{number}")

    listed = [batch.metadata["name"] for batch in client.batches.list(limit=2)]

    assert listed == ["b4", "b3", "b2", "b1", "b0"]


def test_a_cancelled_batch_has_a_part_of_its_output(client_for, submit):
    """What was done is paid for."""
    client, _ = client_for(batch_s=60)
    batch = client.batches.cancel(submit(client).id)

    assert (batch.status, len(replies(client, batch))) == ("cancelled", 3)


@pytest.mark.parametrize(
    ("fault", "status", "done", "failed"),
    [
        ("failed", "failed", 0, 0),
        ("expired", "expired", 3, 3),
        ("half", "completed", 3, 0),
        ("errors", "completed", 0, 6),
        ("duplicated", "completed", 13, 0),
    ],
)
def test_a_script_says_what_becomes_of_a_batch(client_for, submit, fault, status, done, failed):
    """Each of these has cost somebody money."""
    client, running = client_for(batch_fault=(fault,))
    batch = submit(client)

    assert (batch.status, bool(batch.output_file_id)) == (status, done > 0)
    assert (batch.request_counts.completed, batch.request_counts.failed) == (done, failed)
    assert running.ledger()["billed"] == {"failed": 0, "errors": 0, "half": 3, "expired": 3}.get(
        fault, 6
    )


def test_a_torn_file_ends_in_the_middle_of_a_line(client_for, submit):
    """Connections break, and disks fill up."""
    client, _ = client_for(batch_fault=("torn",))
    text = client.files.content(submit(client).output_file_id).text

    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(text.split("\n")[-1])


def test_a_file_that_is_cut_on_its_way_is_whole_the_second_time(client_for, submit):
    """A proxy cut it, and the provider has it all."""
    client, _ = client_for(batch_fault=("cut",))
    file_id = submit(client).output_file_id
    first, second = (client.files.content(file_id).text for _ in range(2))

    assert (second.startswith(first), len(second.splitlines())) == (True, 6)
    assert len(first) < len(second)


def test_bodies_of_a_batch_can_be_of_no_use(client_for, submit):
    """They are billed all the same."""
    client, running = client_for(p_empty=1.0)
    bodies = [line["response"]["body"] for line in replies(client, submit(client))]

    assert [body["choices"] for body in bodies] == [[]] * 6
    assert running.ledger()["billed"] == 6


def test_an_untold_batch_is_there_all_the_same(client_for, submit):
    """The connection broke, and the provider works."""
    client, running = client_for(batch_fault=("untold",))
    with pytest.raises(openai.APIConnectionError):
        submit(client, name="lost")

    assert [batch.metadata["name"] for batch in client.batches.list()] == ["lost"]
    assert running.stats()["batches"] == 1


def test_what_is_no_batch_is_refused(client_for, tmp_path):
    """A client's mistake must not look like a batch that takes long."""
    client, _ = client_for()
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(openai.BadRequestError, match="batch as its purpose"):
        client.files.create(file=empty, purpose="assistants")
    with pytest.raises(openai.NotFoundError, match="No such batch"):
        client.batches.retrieve("batch_9")
    with pytest.raises(openai.NotFoundError, match="No such File"):
        client.files.content("file-9")
