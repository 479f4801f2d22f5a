"""RAG systems that settings describe: answers with contexts, whole or as a stream of events."""

import asyncio
import json

import pytest
from scripted_service import Answer

from ragforge.config import SystemService
from ragforge.errors import CallError, EndpointError
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.services.system import ServiceSystem


def stream(*events, ending="\n\n"):
    """Return server-sent events; what is no text is written as JSON."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return Answer(
        "".join(f"data: {line}{ending}" for line in lines), kind="text/event-stream; charset=utf-8"
    )


def piece(text, finish=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def test_an_answer_is_read_by_its_paths(scripted, system, answer):
    """With what it was written from."""
    scripted.answer = Answer(
        {
            "out": {"text": "Within 30 days."},
            "refs": [{"cid": "c1", "snip": "thirty days", "src": "returns.md"}],
        }
    )

    found = answer(
        system(answer="out.text", contexts="refs", id="cid", text="snip", document="src")
    )

    assert found.text == "Within 30 days."
    assert found.context == (ContextPassage(("c1",), ("thirty days",), ("returns.md",)),)
    assert scripted.seen[0].json == {"query": "Why?"}


def test_without_paths_the_usual_names_are_looked_for(scripted, system, answer):
    """ragforge's own dialect needs none."""
    scripted.answer = Answer({"answer": "Yes.", "sources": ["c1"]})

    found = answer(system())

    assert (found.text, found.context[0].ids) == ("Yes.", ("c1",))


def test_an_empty_answer_is_an_answer_and_none_is_a_failure(scripted, system, answer):
    """What a system said is graded; what it did not say is not."""
    scripted.answers(Answer({"text": ""}), Answer({"text": None}))
    asked = system(answer="text")

    assert answer(asked).text == ""
    with pytest.raises(CallError, match="answer = 'text': matches nothing in the reply"):
        answer(asked)


def test_an_answer_to_another_question_is_refused(scripted, system, answer):
    """It would be graded as this one's."""
    scripted.answer = Answer({"query": "How?", "answer": "So."})

    with pytest.raises(CallError, match=r"another query: 'How\?' where 'Why\?' was asked"):
        answer(system())


def test_contexts_that_are_no_list_are_refused(scripted, system, answer):
    """One text would count as so many passages as it has letters."""
    scripted.answer = Answer({"a": "x", "c": "one text"})

    with pytest.raises(CallError, match="matches the text 'one text' where a list is wanted"):
        answer(system(answer="a", contexts="c"))


def test_a_chat_completion_is_an_answer_with_citations(scripted, system, answer):
    """As Azure OpenAI On Your Data replies, by its documentation."""
    scripted.answer = Answer(
        {
            "id": "x",
            "object": "extensions.chat.completion",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {
                        "role": "assistant",
                        "content": "Thirty days [doc1].",
                        "context": {
                            "citations": [
                                {
                                    "content": "Goods go back within thirty days.",
                                    "title": "Returns",
                                    "filepath": "returns.md",
                                    "url": "https://shop.example/returns",
                                    "chunk_id": "0",
                                }
                            ],
                            "intent": "returns",
                        },
                    },
                }
            ],
        }
    )

    found = answer(system(url=scripted.url, dialect="openai-chat", model="rag-1"))

    [seen] = scripted.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.json == {"model": "rag-1", "messages": [{"role": "user", "content": "Why?"}]}
    assert found.text == "Thirty days [doc1]."
    assert found.context == (
        ContextPassage(("0",), ("Goods go back within thirty days.",), ("returns.md",)),
    )


@pytest.mark.parametrize(
    ("extra", "passage"),
    [
        (
            {"citations": ["https://shop.example/returns"]},
            ContextPassage(
                ("https://shop.example/returns",),
                ("https://shop.example/returns",),
                ("https://shop.example/returns",),
            ),
        ),
        (
            {"search_results": [{"title": "Returns", "url": "https://shop.example/returns"}]},
            ContextPassage(
                ("https://shop.example/returns",), (), ("https://shop.example/returns",)
            ),
        ),
        (
            {
                "sources": [
                    {
                        "source": {"id": "f1", "name": "returns.pdf", "type": "file"},
                        "document": ["Thirty days."],
                        "metadata": [{"source": "returns.pdf", "page": 0}],
                        "distances": [0.1],
                    }
                ]
            },
            ContextPassage(("Thirty days.",), ("Thirty days.",), ("Thirty days.",)),
        ),
    ],
)
def test_citations_beside_the_choices_are_read(scripted, system, answer, extra, passage):
    """As Perplexity's API gives them: addresses, or search results; as Open WebUI does: texts."""
    choices = [{"message": {"content": "Yes."}, "finish_reason": "stop"}]
    scripted.answer = Answer({"choices": choices, **extra})

    assert answer(system(url=scripted.url, dialect="openai-chat")).context == (passage,)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "quota"}}, "quota"),
        (
            {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
            "content_filter",
        ),
        ({"choices": [{"message": {"content": None}}]}, "matches nothing"),
    ],
)
def test_a_chat_completion_without_an_answer_is_a_failure(scripted, system, answer, body, told):
    """A filter that blanked it is no answer of the system."""
    scripted.answer = Answer(body)

    with pytest.raises(CallError, match=told):
        answer(system(url=scripted.url, dialect="openai-chat"))


def test_the_pieces_of_a_stream_are_one_answer(scripted, system, answer):
    """As OpenAI streams, with the citations in the first chunk."""
    first = piece("")
    first["choices"][0]["delta"] = {
        "role": "assistant",
        "context": {"citations": [{"content": "thirty days", "filepath": "returns.md"}]},
    }
    usage = {"choices": [], "usage": {"total_tokens": 3}}
    scripted.answer = stream(first, piece("Thirty"), piece(" days.", "stop"), usage, "[DONE]")

    body = {"messages": [{"role": "user", "content": "{query}"}], "stream": True}
    found = answer(system(url=scripted.url, dialect="openai-chat", body=body))

    assert found.text == "Thirty days."
    assert found.context[0].doc_ids == ("returns.md",)


def test_a_stream_of_plain_texts_is_an_answer(scripted, system, answer):
    """Small services send nothing but text; a lone number is text too."""
    scripted.answer = Answer(
        ": hello\r\n\r\ndata: Thirty \r\n\r\ndata: 30\r\n\r\ndata: first\r\ndata: second\r\n\r\n",
        kind="text/event-stream",
    )

    assert answer(system()).text == "Thirty 30first\nsecond"


def test_a_stream_of_objects_ends_with_its_sources(scripted, system, answer):
    """Frameworks stream tokens, and at last what they were made from."""
    scripted.answer = stream({"token": "Thirty"}, {"token": " days"}, {"sources": ["c1"]})

    found = answer(system())

    assert (found.text, [passage.ids for passage in found.context]) == ("Thirty days", [("c1",)])


@pytest.mark.parametrize(
    "events",
    [
        # Chains of LangChain, and Dify: pieces under the name of the answer.
        (
            {"context": []},
            {"answer": ""},
            {"answer": "Thirty"},
            {"answer": " days"},
            {"answer": ""},
        ),
        ({"answer": "Thirty"}, {"answer": "Thirty days"}),
        ({"answer": "Thirty"}, {"answer": " days"}, {"answer": "Thirty days"}),
        ({"token": "Thirty"}, {"answer": "Thirty days"}),
        (
            {"answer": "Thirty"},
            {"answer": "Thirty d"},
            {"answer": "Thirty days ["},
            {"answer": "Thirty days"},
        ),
        ({"answer": "Thirty d"}, {"answer": "Thirty days"}, {"answer": ""}),
        ({"answer": "Four"}, {"event": "message_replace", "answer": "Thirty days"}),
    ],
)
def test_an_answer_may_come_in_pieces_or_grow(scripted, system, answer, events):
    """The last of its words would be graded as all of it."""
    scripted.answer = stream(*events)

    assert answer(system()).text == "Thirty days"
    assert answer(system(answer="answer")).text == "Thirty days"


@pytest.mark.parametrize(
    "events",
    [
        (
            {"type": "response.reasoning_summary_text.delta", "delta": "Let me see"},
            {"type": "response.output_text.delta", "delta": "Yes"},
            {"type": "response.output_text.done", "text": "Yes"},
        ),
        (
            {"type": "reasoning-delta", "delta": "Let me see"},
            {"type": "text-delta", "delta": "Yes"},
            {"type": "text-end"},
        ),
    ],
)
def test_thoughts_and_repetitions_in_a_stream_are_no_answer(scripted, system, answer, events):
    """OpenAI's Responses API and the AI SDK have events of many types."""
    scripted.answer = stream(*events)

    assert answer(system()).text == "Yes"


def named(*events):
    """Return server-sent events with their names."""
    lines = (f"event: {name}\ndata: {data}\n\n" for name, data in events)
    return Answer("".join(lines), kind="text/event-stream")


@pytest.mark.parametrize(
    "events",
    [
        named(("status", "Searching …"), ("message", "Yes"), ("ping", "1")),
        named(("progress", '{"text": "Searching …"}'), ("token", '{"text": "Yes"}')),
        named(("search_status", '{"answer": "Searching …"}'), ("message", '{"answer": "Yes"}')),
        stream({"type": "status", "text": "Searching …"}, {"type": "token", "text": "Yes"}),
        stream({"event": "retrieval", "token": "3 hits"}, {"event": "text", "token": "Yes"}),
    ],
)
def test_what_a_system_is_doing_is_no_answer(scripted, system, answer, events):
    """It was graded as the first words of the answer."""
    scripted.answer = events

    assert answer(system()).text == "Yes"


@pytest.mark.parametrize(
    ("events", "delta"),
    [
        (named(("first", "Searching …"), ("then", "Yes")), "event == 'then' && data"),
        (
            named(("first", '{"text": "Searching …"}'), ("then", '{"text": "Yes"}')),
            "event == 'then' && text",
        ),
        (
            stream({"kind": "first", "text": "Searching …"}, {"kind": "then", "text": "Yes"}),
            "kind == 'then' && text",
        ),
    ],
)
def test_which_events_hold_the_answer_can_be_said(scripted, system, answer, events, delta):
    """Nobody else can tell what the events of a service are called."""
    scripted.answer = events

    assert answer(system(delta=delta)).text == "Yes"


def test_where_the_pieces_stand_can_be_said(scripted, system, answer):
    """Names differ."""
    scripted.answer = stream({"d": {"t": "Thir"}}, {"d": {"t": "ty"}}, {"refs": [{"k": "c1"}]})

    found = answer(system(delta="d.t", contexts="refs", id="k"))

    assert (found.text, found.context[0].ids) == ("Thirty", ("c1",))


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (stream(piece("Thir")), "the stream broke off before its end"),
        (
            Answer('data: {"token": "a"}\n\ndata: {"tok', kind="text/event-stream"),
            "the stream broke off within an event",
        ),
        (
            Answer("event: error\ndata: overloaded\n\n", kind="text/event-stream"),
            "the stream tells of an error: overloaded",
        ),
        (stream({"token": "a"}, {"error": "quota"}), "tells of an error: quota"),
        (
            stream({"delta": "a"}, {"type": "error", "errorText": "busy"}, "[DONE]"),
            "tells of an error: type is error: busy",
        ),
        (
            stream({"token": "a"}, {"event": "error", "message": "busy"}),
            "tells of an error: event is error: busy",
        ),
        (stream({"step": "search"}), "no event of the stream holds a piece of an answer"),
        (Answer("", kind="text/event-stream"), "no event of the stream holds a piece"),
        (
            Answer('data: {"token": "a"}\n\n', kind="text/event-stream", length=900),
            "the reply ended 878 bytes before its end",
        ),
    ],
)
def test_a_stream_that_is_not_whole_is_a_failure(scripted, system, answer, reply, told):
    """Half an answer would be graded as a bad one."""
    scripted.answer = reply

    with pytest.raises(CallError, match=told):
        answer(system())


def test_a_system_that_wants_contexts_is_not_asked_without(scripted, system, answer):
    """It would answer from nothing, and be graded for that."""
    with pytest.raises(EndpointError, match=r"its request holds \{contexts\}, which a sweep gives"):
        answer(system(body={"q": "{query}", "c": "{contexts}"}))

    assert scripted.seen == []


@pytest.mark.local_model
@pytest.mark.parametrize("streamed", [False, True])
def test_a_real_server_of_chats_is_read(smollm2, client_of, streamed):
    """llama.cpp replies as OpenAI does, and streams as OpenAI does."""
    body = {
        "messages": [{"role": "user", "content": "{query}"}],
        "max_tokens": 8,
        "temperature": 0,
        "stream": streamed,
    }
    service = SystemService(url=smollm2.base_url, dialect="openai-chat", body=body, timeout_s=60)
    exchanges = []

    found = asyncio.run(
        ServiceSystem("rag", service, client=client_of("systems.rag", service, {})).answer(
            "What is two plus two?", exchanges.append
        )
    )

    assert exchanges[0].content_type == ("text/event-stream" if streamed else "application/json")
    assert found.text.strip()
    assert found.context == ()


def test_a_stream_that_breaks_off_after_an_event_of_usage_is_no_answer(scripted, system, answer):
    """An event without choices ends nothing: half an answer would be graded as a whole one."""
    usage = {"choices": [], "usage": {"total_tokens": 3}}
    scripted.answer = stream(piece("Thirty"), usage)

    body = {"messages": [{"role": "user", "content": "{query}"}], "stream": True}
    with pytest.raises(CallError, match="the stream broke off before its end"):
        answer(system(url=scripted.url, dialect="openai-chat", body=body))


def test_an_answer_cut_off_at_a_limit_is_told_once(scripted, system, answer):
    """It is the system's answer, and its grade is that of half of one."""
    scripted.answer = stream(piece("Thirty"), piece(" da", "length"), "[DONE]")
    told = []
    body = {"messages": [{"role": "user", "content": "{query}"}], "stream": True}
    made = system(url=scripted.url, dialect="openai-chat", body=body, notes=told)

    assert answer(made).text == "Thirty da"
    assert answer(made).text == "Thirty da"
    assert [text.partition(": ")[2] for text in told] == [
        "an answer was cut off at the service's limit of tokens, and is graded as it came "
        "(said once)"
    ]


@pytest.mark.parametrize(
    ("fields", "reply", "usd"),
    [
        ({}, {"answer": "So.", "cost_usd": 0.002}, 0.002),
        ({"answer": "answer"}, {"answer": "So.", "cost_usd": 0.002}, 0.002),
        ({"contexts": "refs"}, {"answer": "So.", "refs": [], "cost_usd": 0.002}, 0.002),
        ({"cost": "usage.cost"}, {"answer": "So.", "usage": {"cost": 0.002}}, 0.002),
        ({"usd_per_query": 0.01}, {"answer": "So.", "cost_usd": 0.002}, 0.002),
        ({"usd_per_query": 0.01}, {"answer": "So."}, 0.01),
        ({}, {"answer": "So."}, None),
    ],
)
def test_what_an_answer_cost_is_told_by_the_reply_or_else_the_settings(
    scripted, system, answer, fields, reply, usd
):
    """A service with one price need not repeat it; one that counts tokens knows better."""
    scripted.answer = Answer(reply)

    assert answer(system(**fields)).cost_usd == usd


def test_a_stream_tells_what_it_cost_at_its_end(scripted, system, answer):
    """Usage comes in the last event."""
    scripted.answer = stream(piece("So."), piece("", "stop"), {"usage": {"cost": 0.002}}, "[DONE]")

    found = answer(system(cost="usage.cost"))

    assert (found.text, found.cost_usd) == ("So.", 0.002)


def test_a_path_of_costs_that_fails_takes_no_answer_away(scripted, system, answer):
    """It was paid for; that nothing is known of its price is told, once."""
    scripted.answer = Answer({"answer": "So.", "usage": {"cost": "dear"}})
    notes = []
    asked = system(notes, cost="abs(usage.cost)")

    found = [answer(asked), answer(asked)]

    assert [(item.text, item.cost_usd) for item in found] == [("So.", None)] * 2
    assert len(notes) == 1
    assert "what answers cost is not known" in notes[0]
