import json
import re

import pytest

from ragforge.errors import DataError, UsageError
from ragforge.files.formats.queries import read_queries
from ragforge.files.formats.row_columns import parse_columns


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def asked(path, *given):
    """Return questions and expected answers of a file."""
    found = read_queries(path, lambda text: f"id of {text}", parse_columns(given))
    return [(item.query.query, item.query.expected_answer) for item in found.queries]


@pytest.mark.parametrize(
    "row",
    [
        {"user_input": "Why?", "reference": "So.", "response": "Dunno."},
        {"question": "Why?", "answer": "Dunno.", "contexts": ["x"], "ground_truth": "So."},
        {"input": "Why?", "expected_output": "So.", "actual_output": "Dunno."},
        {"input": "Why?", "expectedOutput": "So.", "retrievalContext": []},
        {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}, "metadata": {}},
        {"inputs": {"prompt": "Why?"}, "outputs": {"text": "So."}},
        {"inputs": {"input": "Why?"}, "reference_outputs": {"output": "So."}},
        {"vars": {"question": "Why?"}, "expected_output": "So.", "assert": []},
        {"vars": {"question": "Why?"}, "assert": [{"type": "equals", "value": "So."}]},
        {"inputs": {"question": "Why?"}, "expectations": {"expected_response": "So."}},
        {"input": {"question": "Why?"}, "expectedOutput": {"answer": "So."}},
        {"input": "Why?", "expectedOutput": {"answer": "So."}},
    ],
    ids=lambda row: "+".join(row),
)
def test_names_of_known_tools_need_no_map(tmp_path, row):
    """A set exported from ragas, deepeval, LangSmith, promptfoo, MLflow or Langfuse."""
    assert asked(write(tmp_path / "set.jsonl", json.dumps(row))) == [("Why?", "So.")]


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"expectations": {"expected_response": "So."}, "outputs": {"response": "Dunno."}}, "So."),
        ({"expectations": {"guidelines": ["be short"]}, "outputs": {"response": "Dunno."}}, None),
        ({"reference_outputs": {"answer": "So."}, "outputs": {"answer": "Dunno."}}, "So."),
        ({"reference_outputs": {"answer": "So."}, "answer": "Dunno."}, "So."),
        ({"expectedOutput": None, "output": {"answer": "Dunno."}}, None),
        ({"ground_truth": None, "answer": "Dunno."}, None),
        ({"reference": {"answer": "So."}, "outputs": {"answer": "Dunno."}}, "So."),
        ({"reference": {"answer": ""}, "outputs": {"answer": "Dunno."}}, None),
        ({"reference": '{"answer": ""}', "outputs": {"answer": "Dunno."}}, None),
        ({"reference": {"text": "So.", "url": "x.org"}, "outputs": {"answer": "Dunno."}}, None),
        ({"reference": {}, "outputs": {"answer": "Dunno."}}, None),
    ],
    ids=lambda row: "+".join(row) if isinstance(row, dict) else "",
)
def test_what_a_system_said_is_no_expected_answer(tmp_path, row, answer):
    """Rows of an experiment hold both: a system held against its own words is always right."""
    text = json.dumps({"inputs": {"question": "Why?"}, **row})

    assert asked(write(tmp_path / "set.jsonl", text)) == [("Why?", answer)]


@pytest.mark.parametrize("reference", ['{"port": 80}', '{"answer": "So."}'])
def test_an_expected_answer_may_be_json(tmp_path, reference):
    """It was taken apart, and lost."""
    row = {"user_input": "Why?", "reference": reference, "response": "Dunno."}

    assert asked(write(tmp_path / "set.jsonl", json.dumps(row))) == [("Why?", reference)]


@pytest.mark.parametrize(
    "beside",
    [
        {"reference": "https://x.org/y"},
        {"reference": None},
        {"reference": {"doc_id": "a.md"}},
        {"reference": ["a.md"]},
        {"expectations": {"tone": "formal"}},
    ],
    ids=str,
)
def test_a_source_beside_an_answer_is_no_expected_answer(tmp_path, beside):
    """Many sheets call the page that an answer was taken from its reference."""
    text = json.dumps({"question": "Why?", "answer": "So.", **beside})

    assert asked(write(tmp_path / "set.jsonl", text)) == [("Why?", "So.")]


@pytest.mark.parametrize("reference", [{"doc_id": "a.md"}, {"url": "x.org", "title": "Returns"}])
def test_outputs_beside_the_place_they_were_taken_from_are_expected(tmp_path, reference):
    """Fields that only name a document leave no room for another answer."""
    row = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}, "reference": reference}
    path = write(tmp_path / "set.jsonl", json.dumps(row))

    assert asked(path) == [("Why?", "So.")]
    names = ", ".join(f"'reference.{name}'" for name in reference)
    assert read_queries(path, str).left_out == (
        f"{path}: fields that are not read: {names}; --map says what one of them is",
    )


@pytest.mark.parametrize("turned", [False, True])
def test_outputs_without_another_answer_in_one_row_alone_are_refused(tmp_path, turned):
    """A system that answered there would be held against what it said itself."""
    rows = [
        {
            "inputs": {"question": "Why?"},
            "outputs": {"answer": "x"},
            "reference": {"answer": "So."},
        },
        {"inputs": {"question": "When?"}, "outputs": {"answer": "Dunno."}},
    ]
    lines = [json.dumps(row) for row in (reversed(rows) if turned else rows)]
    path = write(tmp_path / "set.jsonl", "\n".join(lines))

    with pytest.raises(
        DataError, match=r"outputs may be what a system said; .* --map answer=PLACE"
    ):
        asked(path)
    assert set(asked(path, "answer=reference.answer")) == {("Why?", "So."), ("When?", None)}


def test_outputs_that_may_be_of_a_system_are_told(tmp_path):
    """Who has his expected answers there gets none of them, and has to know how to say so."""
    row = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}, "reference": {"text": "x"}}
    path = write(tmp_path / "set.jsonl", json.dumps(row))

    assert "say so with --map answer=outputs.KEY" in "\n".join(read_queries(path, str).left_out)
    assert asked(path, "answer=outputs.answer") == [("Why?", "So.")]


def test_outputs_of_an_experiment_in_columns_are_no_expected_answers(tmp_path):
    """LangSmith gives a table of these columns; an empty reference is no reason to take another."""
    rows = "Why?,Dunno.,So.,1\nWhen?,Never.,,0\n"
    table = f"inputs.question,outputs.answer,reference.answer,inputs.k\n{rows}"
    path = write(tmp_path / "set.csv", table)

    assert asked(path) == [("Why?", "So."), ("When?", None)]
    assert read_queries(path, str).left_out == (
        f"{path}: columns that are not read: 'outputs.answer', 'inputs.k'; --map says what one of "
        "them is",
    )


@pytest.mark.parametrize(
    "table",
    [
        "input,expected_output\nWhy?,So.\n",
        "inputs.question,outputs.answer\nWhy?,So.\n",
        'inputs,outputs\n"{""question"": ""Why?""}","{""answer"": ""So.""}"\n',
        "user_input;reference\r\nWhy?;So.\r\n",
        "question,__expected\nWhy?,So.\n",
        "__expected1,__expected2,question\nicontains: o,similar(0.8): So.,Why?\n",
        "question\tground_truth\nWhy?\tSo.\n",
        "question|answer\nWhy?|So.\n",
        "sep=;\r\nquestion;answer\r\nWhy?;So.\r\n",
        b"\xef\xbb\xbfquestion,answer\n\n,\nWhy?,So.\n",
        'question;"answer, short, or long, or none";answer\nWhy?;;So.\n',
    ],
)
def test_tables_of_known_tools_need_no_map(tmp_path, table):
    """Semicolons, tabs, a byte order mark, blank rows and objects in cells are what people have."""
    assert asked(write(tmp_path / "set.csv", table)) == [("Why?", "So.")]


@pytest.mark.parametrize(
    "assertion",
    [
        *("contains: So", "llm-rubric: short", "not-equals: So.", "", "not-equals", "starts-with"),
        *("is-json", "contains-json", "is-refusal", "not-is-refusal", "answer-relevance(0.5)"),
        *("latency(1000)", "cost(0.01)", "context-faithfulness", "context-recall(0.9): So."),
        *("select-best:the shortest", "max-score", "python(0.5)", "file://check.py:assert"),
        *("trajectory:tool-used:search", "promptfoo:redteam:bola", "is-json:{}", "guardrails"),
    ],
)
def test_assertions_that_are_no_answers_are_left_out(tmp_path, assertion):
    """A judge would look for the rubric in what a system says."""
    path = write(tmp_path / "set.csv", f"question,__expected\nWhy?,{assertion}\n")

    assert asked(path) == [("Why?", None)]


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("is-json is a check of promptfoo.", "is-json is a check of promptfoo."),
        ("latency (1000) is too high", "latency (1000) is too high"),
        ("cost-free", "cost-free"),
        ("python", "python"),
        ("Contains: sugar", "Contains: sugar"),
        ("containsall", "containsall"),
        ("For 5 years.", "For 5 years."),
        ("similar(0.8):For 5 years.", "For 5 years."),
        ("similar:cosine(0.8):For 5 years.", "For 5 years."),
        ("similar:cosine similarity", "cosine similarity"),
        ("factuality:Yes: 5 years.", "Yes: 5 years."),
    ],
)
def test_an_answer_that_begins_like_an_assertion_stays_one(tmp_path, cell, answer):
    """Words of assertions are words of answers too."""
    path = write(tmp_path / "set.csv", f"question,__expected\nWhy?,{cell}\n")

    assert asked(path) == [("Why?", answer)]


def test_an_assertion_that_is_read_is_not_told_as_unread(tmp_path):
    """The answer came from the column that was "not read"."""
    text = "question,__expected\nWhy?,equals: So.\nWhat?,contains: pump\n"

    found = read_queries(write(tmp_path / "set.csv", text), str)

    assert [one.query.expected_answer for one in found.queries] == ["So.", None]
    [note] = found.left_out
    assert "not read in 1 query: '__expected' asserts something else" in note


def test_yaml_is_refused_by_name(tmp_path):
    """Its lines were taken for a table of one column."""
    path = write(tmp_path / "promptfooconfig.yaml", "tests:\n  - vars: {question: Why?}\n")

    with pytest.raises(DataError, match="YAML is not read; write its rows as JSON"):
        asked(path)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("frage,antwort\nWhy?,So.\n", ["question=frage,answer=antwort"]),
        ("frage,antwort\nWhy?,So.\n", ["query=frage", "expected_answer=antwort"]),
        ('"Frage, kurz",antwort\nWhy?,So.\n', ["question=Frage, kurz,answer=antwort"]),
        ("question,query,text\nno,Why?,So.\n", ["question=query,answer=text"]),
        ("a.b,c\nWhy?,So.\n", ["question=a.b,answer=c"]),
        ('{"a": {"b.c": [{"d": "Why?"}]}, "e": "So."}', ["question=a.b.c.0.d,answer=e"]),
        ('{"question": "no", "q": "Why?", "answer": "no", "e": "So."}', ["question=q,answer=e"]),
    ],
)
def test_map_says_where_fields_stand(tmp_path, text, given):
    """Names are free; nobody should have to rename columns."""
    path = write(tmp_path / ("set.jsonl" if text.startswith("{") else "set.csv"), text)

    assert asked(path, *given) == [("Why?", "So.")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("question", "--map question: expected NAME=COLUMN"),
        ("qestion=a", "no field is called 'qestion'; did you mean 'question'?"),
        ("question=a,query=b", "--map query=b: 'a' is query already"),
    ],
)
def test_map_that_cannot_be_taken_is_refused(given, message):
    """A slip must not leave a field empty."""
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_columns([given])


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (
            "question,input\nWhy?,So why?\n",
            (),
            "set.csv:2: 'question' and 'input' may both be the question, and differ; say which is "
            "with --map question=question or --map question=input",
        ),
        (
            "frage,antwort\nWhy?,So.\n",
            (),
            "set.csv:2: no column is known to hold questions; there are: 'frage', 'antwort'; say "
            "which with --map question=frage",
        ),
        ("nr,frage,antwort\n1,Why?,So.\n", (), "say which with --map question=frage"),
        (
            "Frage kurz,antwort\nWhy?,So.\n",
            (),
            "say which with --map 'question=Frage kurz'",
        ),
        (
            "frage,antwort\nWhy?,So.\n",
            ("question=fragen",),
            "set.csv:2: has no 'fragen', which --map calls the question; there are: 'frage', ",
        ),
        ('question,answer\nWhy?,"So.\n', (), "set.csv:2: is no line of a table: unexpected end"),
        ('question,answer\n"Why" not?,So.\n', (), "within quotes, a quote is written twice"),
        (
            'question,answer\n"Why?,So.\nHow?,"Thus.\n',
            (),
            "set.csv:2: is no line of a table",
        ),
        (
            'question,answer\n"Why?,So.\nHow?"\n',
            (),
            "set.csv:2: expected 2 cells as in the header, got 1; a cell in quotes runs over 2",
        ),
        (
            "question;answer\nWhy?;So; really.\n",
            (),
            "set.csv:2: expected 2 cells as in the header, got 3; a cell that holds ';' stands in",
        ),
        ("question\nGröße?\n".encode("cp1252"), (), "iconv -f WINDOWS-1252 -t UTF-8"),
        ("question,answer\n,So.\n", (), "set.csv:2: question: expected text, got ''"),
        (
            "question,answer\nWhy?,So.\nwhy?,No.\n",
            (),
            "comes twice, first in",
        ),
    ],
)
def test_faulty_tables_say_what_to_do(tmp_path, text, given, message):
    """Whoever made the table has to mend it, and sees a line and a way out."""
    path = write(tmp_path / "set.csv", text)

    with pytest.raises(DataError, match=re.escape(message)):
        read_queries(path, str.casefold, parse_columns(given))


def test_nested_texts_are_proposed_by_their_path(tmp_path):
    """Chats keep the question in a list of messages."""
    row = {"inputs": {"messages": [{"role": "user", "content": "Why?"}]}, "n": 1}
    path = write(tmp_path / "chat.jsonl", json.dumps(row))

    with pytest.raises(DataError, match=r"'inputs\.messages\.0\.role', .*content', 'n'; say which"):
        read_queries(path, str)

    assert asked(path, "question=inputs.messages.0.content") == [("Why?", None)]


def test_objects_that_were_read_are_not_called_unread(tmp_path):
    """A note on them would send people looking for what is there."""
    row = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}

    found = read_queries(write(tmp_path / "s.jsonl", json.dumps(row)), lambda text: text)

    assert found.left_out == ()


def test_question_that_is_repeated_is_taken_once_and_told(tmp_path):
    """Copied rows would weigh twice in each mean."""
    path = write(tmp_path / "set.csv", "question,answer\nWhy?,So.\nHow?,Thus.\nWhy?,So.\n")

    found = read_queries(path, lambda text: text)

    assert len(found.queries) == 2
    assert found.left_out == (
        f"{path}: 1 row repeats a question word for word and is taken once: line 4",
    )


def test_questions_by_tab_need_no_header(tmp_path):
    """So MS MARCO and TREC keep their topics."""
    path = write(tmp_path / "topics.tsv", 'q1\tWhy "so"?\nq2\tHow?\n')

    found = read_queries(path, lambda text: text).queries

    assert [(item.query.query_id, item.query.query) for item in found] == [
        ("q1", 'Why "so"?'),
        ("q2", "How?"),
    ]


def test_questions_and_answers_by_tab_are_no_ids_and_questions(tmp_path):
    """The header would be the first query, and each answer a question."""
    path = write(tmp_path / "fragen.tsv", "Frage\tAntwort\nWhat is wax?\tA polish.\n")

    with pytest.raises(DataError, match=r"'What is wax\?' is no id.*--map question=Frage"):
        read_queries(path, lambda text: text)


@pytest.mark.parametrize(
    "texts", [["The fee is ten."], "['The fee is ten.']", '["The fee is ten."]']
)
def test_reference_texts_are_quotes_that_need_not_stand(tmp_path, texts):
    """Tools keep texts without ids; pandas writes a list as Python does."""
    path = write(
        tmp_path / "s.jsonl", json.dumps({"user_input": "Why?", "reference_contexts": texts})
    )

    [item] = read_queries(path, lambda text: text).queries

    assert [(one.quote, one.grade, one.must_stand) for one in item.graded_quotes] == [
        ("The fee is ten.", 3, False)
    ]


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("set.csv", "frage,antwort\nWhy?,So.\n", ("question=frage,answer=antwrt",)),
        (
            "set.jsonl",
            '{"inputs": {"q": "Why?"}, "outputs": {"answer": "So."}}\n',
            ("question=inputs.q,answer=outputs.answr",),
        ),
    ],
)
def test_column_that_no_row_has_is_refused(tmp_path, name, text, given):
    """A misspelt answer column lost every expected answer, and nothing was said."""
    with pytest.raises(DataError, match=r"no row has .*which --map calls .*did you mean"):
        asked(write(tmp_path / name, text), *given)


def test_column_that_some_rows_have_is_enough(tmp_path):
    """Not every question has an answer."""
    rows = '{"a": "Why?"}\n{"a": "How?", "b": {"c": "So."}}\n'
    found = asked(write(tmp_path / "set.jsonl", rows), "question=a,answer=b.c")
    assert found == [("Why?", None), ("How?", "So.")]


def test_one_column_is_one_field():
    """A question is not its own answer."""
    with pytest.raises(UsageError, match="'a' is query already"):
        parse_columns(["question=a,answer=a"])


def test_mapped_objects_are_not_called_unread(tmp_path):
    """It is in there that the question stands."""
    path = write(tmp_path / "set.jsonl", '{"inputs": {"q": "Why?", "n": 1}, "more": ["x"]}')
    found = read_queries(path, lambda text: text, parse_columns(["question=inputs.q"]))
    assert "'inputs'" not in " ".join(found.left_out)
    assert "'more'" in " ".join(found.left_out)


SQUAD = {"id": "q1", "context": "It is valid for 5 years.", "question": "How long?"}
TWO = {"text": ["5 years", "for 5 years"], "answer_start": [16, 12]}


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("jsonl", json.dumps({**SQUAD, "answers": {**TWO, "text": ["5 years"]}})),
        (
            "csv",
            "id,context,question,answers\n"
            "q1,It is valid for 5 years.,How long?,\"{'text': ['5 years'], "
            "'answer_start': [16]}\"\n",
        ),
    ],
)
def test_a_row_of_squad_has_its_answer_and_its_passage(tmp_path, suffix, text):
    """The answer was dropped, and the passage alone was kept."""
    found = read_queries(write(tmp_path / f"set.{suffix}", text), str)

    [row] = found.queries
    assert (row.query.expected_answer, row.query.answerable) == ("5 years", True)
    assert [of.quote for of in row.graded_quotes] == ["It is valid for 5 years."]
    assert found.left_out == ()


@pytest.mark.parametrize("said", [{}, {"is_impossible": True}])
def test_a_question_of_squad_without_answers_has_no_relevant_passage(tmp_path, said):
    """Its context is what does not answer it."""
    row = {**SQUAD, "answers": {"text": [], "answer_start": []}, **said}

    [found] = read_queries(write(tmp_path / "set.jsonl", json.dumps(row)), str).queries

    assert (found.query.answerable, found.query.expected_behaviour) == (False, "abstain")
    assert (found.query.expected_answer, found.graded_quotes) == (None, ())


def test_squad_as_it_is_published_is_read(tmp_path):
    """Annotation tools write this form: articles with paragraphs with questions."""
    answered = {"id": "q1", "question": "How long?", "answers": [{"text": "5 years"}]}
    open_question = {"id": "q2", "question": "Since when?", "is_impossible": True, "answers": []}
    paragraph = {"context": SQUAD["context"], "qas": [answered, open_question]}
    other = {"context": "Oak.", "qas": [{"id": "q3", "question": "Which?", "answers": []}]}
    articles = [{"title": "a.md", "paragraphs": [paragraph, other]}]
    text = json.dumps({"version": "v2.0", "data": articles})

    found = read_queries(write(tmp_path / "set.json", text), str)

    assert [
        (item.query.query_id, item.query.expected_answer, [of.quote for of in item.graded_quotes])
        for item in found.queries
    ] == [("q1", "5 years", [SQUAD["context"]]), ("q2", None, []), ("q3", None, [])]
    assert [item.query.answerable for item in found.queries] == [True, False, False]


def test_a_squad_to_be_answered_has_no_question_to_refuse(tmp_path):
    """Test sets come without their answers; that there is none they say otherwise."""
    qas = [
        {"id": "q1", "question": "How long?"},
        {"id": "q2", "question": "Until when?", "answers": None},
        {"id": "q3", "question": "Since when?", "is_impossible": True},
    ]
    paragraphs = [{"context": SQUAD["context"], "qas": qas}]
    text = json.dumps({"data": [{"title": "a.md", "paragraphs": paragraphs}]})

    found = read_queries(write(tmp_path / "set.json", text), str).queries

    assert [item.query.answerable for item in found] == [True, True, False]
    assert [len(item.graded_quotes) for item in found] == [1, 1, 0]


def test_half_a_squad_is_told_as_any_other_file(tmp_path):
    """A paragraph without a context, and a question without words."""
    for paragraph in ({"qas": []}, {"context": "Oak.", "qas": [{"id": "q1"}]}):
        text = json.dumps({"data": [{"title": "a", "paragraphs": [paragraph]}]})
        with pytest.raises(DataError, match="no column is known to hold questions"):
            read_queries(write(tmp_path / "set.json", text), str)


def test_further_answers_of_squad_are_told(tmp_path):
    """One is the expected answer; a judge is shown no other."""
    found = read_queries(write(tmp_path / "set.jsonl", json.dumps({**SQUAD, "answers": TWO})), str)

    assert found.queries[0].query.expected_answer == "5 years"
    assert found.left_out == (
        f"{tmp_path / 'set.jsonl'}: not read in 1 query: of several texts in 'answers' the first "
        "is the expected answer",
    )


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        ("jsonl", '{"question": "Why?", "answer": "Hm.", "ground_truths": ["So."]}', "So."),
        ("jsonl", '{"question": "Why?", "answer": "Hm.", "ground_truths": ["A", "B"]}', "A\nB"),
        ("jsonl", '{"question": "Why?", "answer": "Hm.", "ground_truths": []}', None),
        ("csv", "question,answer,ground_truths\nWhy?,Hm.,['So.']\n", "So."),
        ("csv", "question,answer,ground_truths\nWhy?,Hm.,So.\n", "So."),
    ],
)
def test_the_answer_beside_a_list_of_truths_is_what_a_system_said(tmp_path, suffix, text, expected):
    """Files of ragas before 0.1 have both: the system was to be measured by its own words."""
    found = read_queries(write(tmp_path / f"set.{suffix}", text), str)

    assert found.queries[0].query.expected_answer == expected
    assert any("it is what a system said" in note for note in found.left_out)


@pytest.mark.parametrize("labels", [{}, {"relevant": [{"chunk_id": "n", "grade": 2}]}])
def test_keys_that_are_not_read_are_named_as_columns_are(tmp_path, labels):
    """With a label in the row they were dropped without a word."""
    row = {
        "query": "And to Norway?",
        "history": [{"role": "user", "text": "Do you ship?"}],
        "standalone": "Do you ship to Norway?",
        "irrelevant_doc_ids": ["gc"],
        "notes": "",
        **labels,
    }

    found = read_queries(write(tmp_path / "set.jsonl", json.dumps(row)), str)

    told = " ".join(found.left_out)
    assert all(told.count(f"'{name}'") == 1 for name in ("history", "standalone"))
    assert ("fields that are not read: 'standalone'" in told) is (not labels)
    assert ("'irrelevant_doc_ids'" in told, "'notes'" in told) == (True, False)


def test_keys_that_a_map_names_are_read(tmp_path):
    """What the answer came from is no unread key."""
    row = {"query": "Why?", "gold": {"text": "So."}, "more": 1, "chunk_id": "c1"}

    found = read_queries(
        write(tmp_path / "set.jsonl", json.dumps(row)), str, parse_columns(["answer=gold.text"])
    )

    assert found.left_out == (
        f"{tmp_path / 'set.jsonl'}: fields that are not read: 'more'; --map says what one of them "
        "is",
    )
