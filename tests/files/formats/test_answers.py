import gzip
import re
from pathlib import Path

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.answers import (
    AnswerRow,
    ContextRow,
    QuotedPassage,
    TrafficRow,
    read_answers,
    read_traffic,
)
from ragforge.files.shipped_folders import shipped


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"query_id": "1", "answer": "So.", "chunk_ids": ["7", "8"]}\n'),
        ("a.jsonl", '{"id": 1, "generatedAnswer": "So.", "retrievedDocs": [7, {"id": "8"}]}\n'),
        ("a.json", '[{"id": "1", "generated_answer": "So.", "retrieved_docs": ["7", "8"]}]'),
        ("a.json", '{"answers": [{"qid": "1", "response": "So.", "results": ["7", "8"]}]}'),
        ("a.csv", "query_id,answer,chunk_ids\n1,So.,7;8\n"),
    ],
)
def test_answers_are_read_from_near_shapes(tmp_path, name, text):
    """Each RAG system logs its answers under other names."""
    assert list(read_answers(write(tmp_path / name, text))) == [AnswerRow("1", "So.", ("7", "8"))]


def test_context_is_named_by_quotes(tmp_path):
    """Quotes outlive chunking, ids of chunks do not."""
    text = '{"query_id": "1", "answer": "", "retrieved": [{"doc_id": "a.md", "quote": "so"}]}\n'

    assert list(read_answers(write(tmp_path / "a.jsonl", text))) == [
        AnswerRow("1", "", passages=(QuotedPassage("a.md", "so"),))
    ]


@pytest.mark.parametrize(
    "item", ['"Whales eat."', '{"text": "Whales eat."}', '{"page_content": "Whales eat."}']
)
@pytest.mark.parametrize("field", ["contexts", "retrieved_contexts", "retrieved"])
def test_context_is_named_by_texts(tmp_path, field, item):
    """Most systems log what they read, and not what it is called."""
    text = f'{{"query_id": "1", "answer": "So.", "{field}": [{item}]}}\n'

    assert list(read_answers(write(tmp_path / "a.jsonl", text))) == [
        AnswerRow("1", "So.", ("Whales eat.",))
    ]


def test_what_is_known_of_unknown_passages_is_read(tmp_path):
    """A dataset's own file of answers says that some were in no chunk."""
    text = '{"query_id": "1", "answer": "So.", "chunk_ids": ["7"], "n_unknown_passages": 2}\n'

    assert list(read_answers(write(tmp_path / "a.jsonl", text))) == [
        AnswerRow("1", "So.", ("7",), n_unknown_passages=2)
    ]


@pytest.mark.parametrize("name", ["careful", "hasty"])
def test_shipped_answers_are_read_whole(name):
    """They are the example users start from."""
    file = Path(shipped("datasets")) / "helpcentre" / "answers" / f"{name}.jsonl"

    found = list(read_answers(file))

    assert (len(found), sum(len(one.passages) for one in found)) == (57, 171)


@pytest.mark.parametrize("field", ['"latency_s": 0.25', '"latencyMs": 250'])
def test_the_time_an_answer_took_is_read(tmp_path, field):
    """It is part of how good a system is, and must outlive a copy of the file."""
    text = f'{{"query_id": "1", "answer": "So.", {field}}}\n'

    assert list(read_answers(write(tmp_path / "a.jsonl", text))) == [
        AnswerRow("1", "So.", latency_s=0.25)
    ]


@pytest.mark.parametrize("field", ['"cost_usd": 0.002', '"costUsd": "0.002"', '"usd": 2e-3'])
def test_what_an_answer_cost_is_read(tmp_path, field):
    """A better system that costs ten times as much is another decision."""
    text = f'{{"query_id": "1", "answer": "So.", {field}}}\n'

    [row] = read_answers(write(tmp_path / "a.jsonl", text))

    assert row.cost_usd == 0.002


@pytest.mark.parametrize("value", ["-1", '"free"', "true", "1e999"])
def test_a_cost_that_is_no_amount_is_refused(tmp_path, value):
    """It would be lost in a mean."""
    text = f'{{"query_id": "1", "answer": "So.", "cost_usd": {value}}}\n'

    with pytest.raises(DataError, match="cost_usd"):
        list(read_answers(write(tmp_path / "a.jsonl", text)))


def test_answer_without_context_is_taken(tmp_path):
    """Some systems do not say what they had."""
    text = '{"query_id": "1", "answer": "So."}\n'

    assert list(read_answers(write(tmp_path / "a.jsonl", text))) == [AnswerRow("1", "So.")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.jsonl: is empty"),
        ('{"query_id": "1", "answer": null}\n', "a.jsonl:1: answer: expected text, got None"),
        ('{"query_id": "1", "answer": ["x"]}\n', "a.jsonl:1: answer: expected text"),
        ('{"query_id": "1", "anwser": "x"}\n', "a.jsonl:1: answer: expected one of answer"),
        ('{"query_id": "", "answer": "x"}\n', "a.jsonl:1: query_id: expected an id"),
        ('{"query_id": "1", "answer": "\\ud800"}\n', "a.jsonl:1: answer: expected text"),
        ('{"query_id": "1", "answer": "x"}\n' * 2, "a.jsonl:2: query '1' comes twice"),
        ('{"query_id": "1", "answ', "a.jsonl:1: is not one complete JSON object"),
        ('{"query_id": "1", "answer": "x", "chunk_ids": 3}\n', "chunk_ids: expected a list of ids"),
        (
            '{"query_id": "1", "answer": "x", "retrieved": ["7", {"doc_id": "a", "quote": "b"}]}\n',
            "retrieved: expected either ids or quotes",
        ),
        (
            '{"query_id": "1", "answer": "x", "n_unknown_passages": -1}\n',
            "n_unknown_passages: expected a whole number of at least 0",
        ),
        ('{"text": "x"}\n', "accepted:\n  JSON Lines or a JSON list"),
    ],
)
def test_faults_are_refused_with_their_place(tmp_path, text, message):
    """An answer that is lost silently changes every mean."""
    file = write(tmp_path / "a.jsonl", text)

    with pytest.raises(DataError, match=re.escape(message)):
        list(read_answers(file))


def test_answers_may_name_their_query_by_its_question(tmp_path):
    """Evaluation tools write a list of questions with answers below their totals."""
    text = '{"totalQuestions": 1, "perQuestion": [{"query": "Why?", "aiAnswer": "So."}]}'

    [row] = read_answers(write(tmp_path / "a.json", text))

    assert (row.query_id, row.question, row.answer) == ("", "Why?", "So.")


TRAFFIC = TrafficRow("1", "Why?", "So.", (ContextRow("1", "one"), ContextRow("2", "two")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"id": 1, "query": "Why?", "answer": "So.", "contexts": ["one", "two"]}\n'),
        (
            "a.jsonl",
            '{"query_id": "1", "question": "Why?", "response": "So.", "retrieved_contexts": '
            '[{"text": "one"}, {"content": "two"}]}\n',
        ),
        (
            "a.json",
            '[{"id": "1", "user_input": "Why?", "actual_output": "So.", "retrieval_context": '
            '[{"page_content": "one", "metadata": {}}, "two"]}]',
        ),
        (
            "a.json",
            '{"answers": [{"id": "1", "input": "Why?", "output": "So.", "passages": '
            '[{"id": 1, "passage": "one"}, {"chunk_id": "2", "snippet": "two"}]}]}',
        ),
        ("a.csv", 'id,query,answer,contexts\n1,Why?,So.,"[""one"", ""two""]"\n'),
    ],
)
def test_traffic_is_read_from_near_shapes(tmp_path, name, text):
    """Each framework logs its answers under other names."""
    assert list(read_traffic(write(tmp_path / name, text))) == [TRAFFIC]


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ("[]", ()),
        ("null", ()),
        ('"one, two; three"', (ContextRow("1", "one, two; three"),)),
        ('"[1] one"', (ContextRow("1", "[1] one"),)),
        ('["one", ""]', (ContextRow("1", "one"), ContextRow("2", ""))),
        (
            '[{"doc_id": "d", "text": "one"}, {"doc_id": "d", "text": "two"}]',
            (ContextRow("d", "one"), ContextRow("d", "two")),
        ),
    ],
)
def test_a_context_is_kept_in_its_order(tmp_path, contexts, expected):
    """Footnotes count places; nothing may move, and prose is not cut at its commas."""
    text = f'{{"id": "1", "answer": "So.", "contexts": {contexts}}}\n'

    [row] = read_traffic(write(tmp_path / "a.jsonl", text))

    assert row.contexts == expected


def test_a_chunk_may_come_twice(tmp_path):
    """Systems that search several times log what each search found."""
    chunk = '{"chunk_id": "c", "text": "one"}'
    text = f'{{"id": "1", "answer": "So.", "contexts": [{chunk}, {chunk}]}}\n'

    [row] = read_traffic(write(tmp_path / "a.jsonl", text))

    assert row.contexts == (ContextRow("c", "one"), ContextRow("c", "one"))


def test_deep_nesting_is_refused_with_its_line(tmp_path):
    """An attacker's log must not end in a message about the parser."""
    deep = "[" * 100_000 + "]" * 100_000
    text = f'[\n{{"id": "1", "answer": "[[[[\\"", "contexts": []}},\n{deep}]'

    with pytest.raises(DataError, match=r"a\.json:3: is nested too deeply"):
        list(read_traffic(write(tmp_path / "a.json", text)))


def test_the_question_stands_in_for_an_id(tmp_path):
    """Logs often have none."""
    text = '{"query": "Why?", "answer": "So.", "contexts": []}\n'

    assert next(read_traffic(write(tmp_path / "a.jsonl", text))).query_id == "Why?"


def test_packed_traffic_is_read(tmp_path):
    """Logs are kept packed."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "1", "answer": "So.", "contexts": []}\n'))

    assert [row.query_id for row in read_traffic(path)] == ["1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.jsonl: is empty"),
        ('{"text": "x"}\n', "accepted:\n  JSON Lines or a JSON list"),
        ('{"id": "1", "answer": "x"}\n', "a.jsonl:1: contexts: expected one of contexts, context"),
        ('{"id": "1", "answer": null, "contexts": []}\n', "answer: expected text, got None"),
        ('{"id": "1", "answer": "x", "contexts": 3}\n', "contexts: expected a list of texts"),
        ('{"id": "1", "answer": "x", "contexts": [3]}\n', "expected a text as item 1, got 3"),
        ('{"id": "1", "answer": "x", "contexts": [{"id": 1}]}\n', "item 1: text: expected one of"),
        ('{"id": "1", "answer": "x", "contexts": ["\\ud800"]}\n', "expected a text as item 1"),
        ('{"answer": "x", "contexts": []}\n', "query_id: expected one of"),
        (
            '{"query": "Why?", "answer": "x", "contexts": []}\n' * 2,
            "a.jsonl:2: query 'Why?' comes twice; give each answer an id of its own",
        ),
        ('{"id": "1", "answ', "a.jsonl:1: is not one complete JSON object"),
        (
            '{"id": "1", "answer": "x", "contexts": [{"id": "c", "text": "one"}, '
            '{"id": "c", "text": "two"}]}\n',
            "a.jsonl:1: contexts: item 2: 'c' is also the id of another text",
        ),
        (
            '{"id": "1", "answer": "x", "contexts": ["one", {"chunk_id": "1", "text": "two"}]}\n',
            "a.jsonl:1: contexts: item 1 has no id, and another has the id '1'",
        ),
        ("\n" + "[" * 100_000, "a.jsonl:2: is nested too deeply"),
    ],
)
def test_faults_of_traffic_are_refused_with_their_place(tmp_path, text, message):
    """An answer that is lost silently changes every mean."""
    with pytest.raises(DataError, match=re.escape(message)):
        list(read_traffic(write(tmp_path / "a.jsonl", text)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"query_id": "q1", "answer": "", "error": "503"}\n'),
        ("a.jsonl", '{"query_id": "q1", "answer": null, "error": "503"}\n'),
        ("a.csv", "query_id,answer,error\nq1,,503\n"),
    ],
)
def test_an_error_in_the_place_of_an_answer_is_a_failure(tmp_path, name, text):
    """A system that was down did not say nothing."""
    path = tmp_path / name
    path.write_text(text)

    [row] = read_answers(path)

    assert (row.answer, row.failure) == ("", "503")


@pytest.mark.parametrize("rest", ['"answer": null', '"answer": "", "contexts": ["So."]'])
def test_an_error_in_the_place_of_an_answer_of_traffic_is_a_failure(tmp_path, rest):
    """Logs of a service have timeouts, and one must not refuse all of the file."""
    ok = '{"id": "1", "answer": "So.", "contexts": ["So."]}\n'
    text = f'{ok}{{"id": "2", {rest}, "error": "timeout"}}\n'

    first, second = read_traffic(write(tmp_path / "a.jsonl", text))

    assert (first.failure, second.answer, second.failure) == ("", "", "timeout")


def test_an_answer_beside_an_error_is_an_answer(tmp_path):
    """A column of warnings takes nothing from what was said."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"query_id": "q1", "answer": "Five.", "error": "slow"}\n')

    [row] = read_answers(path)

    assert (row.answer, row.failure) == ("Five.", "")


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("Correct", "correct"),
        ("PARTIAL", "partial"),
        ("partially correct", "partial"),
        ("Not attempted", "not_attempted"),
    ],
)
def test_a_verdict_is_read_however_it_is_written(tmp_path, word, verdict):
    """Else the answer has no grade, and the offline baseline says that it is wrong."""
    text = f'{{"query_id": "1", "answer": "So.", "verdict": "{word}"}}\n'

    [row] = read_answers(write(tmp_path / "a.jsonl", text))

    assert (row.grade.verdict, row.other_verdict) == (verdict, "")


def test_a_verdict_of_another_kind_is_no_grade(tmp_path):
    """Tools say "pass" of what they check, which need not be whether an answer is right."""
    text = '{"query_id": "1", "answer": "So.", "verdict": "pass"}\n'

    [row] = read_answers(write(tmp_path / "a.jsonl", text))

    assert (row.grade, row.other_verdict) == (None, "'pass'")
