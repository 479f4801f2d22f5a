import gzip
import json
import re
from dataclasses import replace
from itertools import islice

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.pairs import MOST_EXAMPLES, Example, PairRow, load_examples, read_pairs
from ragforge.records import is_text_id

PAIR = PairRow(query_id="1", query="Why?", chunk_id="7", text="So.")
LINE = '{"query_id": "1", "query": "Why?", "chunk_id": "7", "text": "So.", "note": "x"}\n'
GRADED = LINE.replace('"note": "x"', '"grade": 2')


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.jsonl", LINE),
        ("p.jsonl.gz", gzip.compress(LINE.encode(), mtime=0)),
        ("p.json", f"[{LINE}]"),
        ("p.csv", "query_id,query,chunk_id,text\r\n1,Why?,7,So.\r\n"),
        ("p.tsv", "qid\tquestion\tdoc_id\tpassage\n1\tWhy?\t7\tSo.\n"),
        ("p.jsonl", '{"qid": 1, "question": "Why?", "docId": 7, "passage": "So."}\n'),
        ("p.jsonl", LINE.replace("\n", "\r\n")),
    ],
)
def test_pairs_are_read_from_near_shapes(tmp_path, name, text):
    """Pairs are cut out of other tools' tables."""
    assert list(read_pairs(write(tmp_path / name, text))) == [PAIR]


@pytest.mark.parametrize(
    ("name", "text", "grade"),
    [
        ("p.jsonl", GRADED, 2),
        ("p.jsonl", GRADED.replace("grade", "humanGrade"), 2),
        ("p.jsonl", GRADED.replace("2}", "0}"), 0),
        ("p.jsonl", GRADED.replace("2}", "null}"), None),
        ("p.jsonl", GRADED.replace("2}", '2, "source": "human"}'), 2),
        ("p.jsonl", GRADED.replace("2}", '2, "source": "judge"}'), None),
        ("p.jsonl", GRADED.replace("grade", "score"), None),
        ("p.csv", "query_id,query,chunk_id,text,grade\n1,Why?,7,So.,3\n", 3),
        ("p.csv", "query_id,query,chunk_id,text,grade\n1,Why?,7,So.,\n", None),
    ],
)
def test_the_grade_of_a_person_is_read(tmp_path, name, text, grade):
    """The judge is held against it; another judge's grade or a retriever's score is no person's."""
    [found] = read_pairs(write(tmp_path / name, text))

    assert found == replace(PAIR, human_grade=grade)


def test_lines_are_read_one_at_a_time(tmp_path):
    """A file of pairs may be larger than memory: the fault behind must not be met yet."""
    file = write(tmp_path / "p.jsonl", LINE + "torn")

    assert list(islice(read_pairs(file), 1)) == [PAIR]


def test_cells_hold_lines_and_quotes(tmp_path):
    """Passages have both."""
    text = 'query_id,query,chunk_id,text\n1,Why?,7,"a ""b""\nc"\n2,How?,7,d\n'

    assert [pair.text for pair in read_pairs(write(tmp_path / "p.csv", text))] == ['a "b"\nc', "d"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.jsonl", "", "p.jsonl: is empty"),
        ("p.json", "[]", "p.json: holds no pair"),
        ("p.jsonl", LINE + LINE, "p.jsonl:2: query '1': chunk '7' comes twice"),
        ("p.jsonl", LINE + LINE[:30], "p.jsonl:2: is not one complete JSON object"),
        ("p.jsonl", LINE.replace('"So."', '" "'), "p.jsonl:1: text: expected text, got ' '"),
        ("p.jsonl", LINE.replace('"So."', "NaN"), "p.jsonl:1: NaN is not a JSON number"),
        ("p.jsonl", LINE.replace('"1"', "null"), "p.jsonl:1: query_id: expected an id"),
        ("p.jsonl", LINE.replace("query_id", "id"), "p.jsonl:1: query_id: expected one of"),
        ("p.jsonl", b'{"text": "\xff"}\n', "p.jsonl:1: byte 10 (0xff) is not UTF-8"),
        ("p.jsonl", GRADED.replace("2}", "4}"), "p.jsonl:1: grade: expected a person's grade"),
        ("p.jsonl", GRADED.replace("2}", "-1}"), "from 0 to 3, got -1"),
        ("p.jsonl", GRADED.replace("2}", "1.5}"), "from 0 to 3, got 1.5"),
        ("p.jsonl", GRADED.replace("2}", "true}"), "from 0 to 3, got True"),
        ("p.csv", "query_id,query,chunk_id,text\n1,Why?,7\n", "p.csv:2: expected 4 cells"),
        ("p.csv", "a,b\n1,2\n", "accepted:\n  JSON Lines or a JSON list"),
    ],
)
def test_faults_are_refused_with_their_place(tmp_path, name, text, message):
    """A pair that is judged wrongly is paid for."""
    file = write(tmp_path / name, text)

    with pytest.raises(DataError, match=re.escape(message)):
        list(read_pairs(file))


def test_missing_file_is_named(tmp_path):
    """A typing error in a path is the most common fault."""
    with pytest.raises(DataError, match=r"none\.jsonl: cannot be read: No such file"):
        list(read_pairs(tmp_path / "none.jsonl"))


NESTED = (
    '{"query": "Why?", "chunks": [{"id": "7", "text": "So.", "grade": 2}, {"text": "Since then."},'
    ' "Since  then."]}'
)


def test_a_query_with_its_chunks_is_taken_apart(tmp_path):
    """What one request retrieved is judged as it was logged, a list below its query."""
    made_id = "text_5068012f3019e53a"

    pairs = list(read_pairs(write(tmp_path / "p.json", NESTED)))

    assert pairs == [
        PairRow(query_id="Why?", query="Why?", chunk_id="7", text="So.", human_grade=2),
        PairRow(query_id="Why?", query="Why?", chunk_id=made_id, text="Since then."),
    ]


def test_the_id_of_a_query_stands_beside_its_chunks(tmp_path):
    """Judgments are joined with runs by it."""
    text = '[{"id": "q1", "question": "Why?", "chunks": ["So."]}]'

    assert [pair.query_id for pair in read_pairs(write(tmp_path / "p.json", text))] == ["q1"]


def test_no_made_id_is_taken_for_that_of_a_retrieved_text(tmp_path):
    """Measures leave the grades of such texts out where chunks are measured."""
    # One in a hundred digests has none of the digits 0, 1, 8 and 9, as ids of such texts have none.
    texts = [f"Text {number}." for number in range(400)]
    path = write(tmp_path / "p.json", json.dumps([{"query": "Why?", "chunks": texts}]))

    assert not any(is_text_id(pair.chunk_id) for pair in read_pairs(path))


def test_pairs_without_any_id_get_ids_from_their_texts(tmp_path):
    """A table of questions and passages is enough to be judged."""
    text = "question,passage\nWhy?,So.\n"

    [pair] = read_pairs(write(tmp_path / "p.csv", text))

    assert (pair.query_id, pair.chunk_id) == ("Why?", "text_12984637383b7b9c")


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ('"So."', "chunks: expected a list of chunks, got 'So.'"),
        ("[7]", "chunks: expected chunks with a text, got 7"),
        ('[{"id": "7"}]', "chunks: item 1: text: expected one of"),
        ('[{"id": "7", "text": "a"}, {"id": "7", "text": "b"}]', "chunk '7' comes twice"),
        ('[{"text": "a", "grade": 1}, {"text": "a", "grade": 2}]', "comes twice"),
    ],
)
def test_faulty_chunks_of_a_query_are_refused(tmp_path, chunks, message):
    """A chunk that is passed over in silence lowers a measure."""
    file = write(tmp_path / "p.json", f'[{{"query": "Why?", "chunks": {chunks}}}]')

    with pytest.raises(DataError, match=re.escape(message)):
        list(read_pairs(file))


ROW = {
    "query_id": "q7",
    "query": "What is wax?",
    "text": "Wax is a solid fat.\nIt melts.",
    "grade": 3,
    "evidence": "Wax is a solid fat.",
    "reasoning": "defines it",
}
EXAMPLE = Example(
    query_id="q7",
    query="What is wax?",
    text="Wax is a solid fat.\nIt melts.",
    grade=3,
    evidence="Wax is a solid fat.",
    reasoning="defines it",
)


@pytest.fixture
def load(tmp_path):
    """Load examples from a file of some rows."""

    def go(*rows, name="shots.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return load_examples(path)

    return go


def test_an_example_is_read_whole(load):
    """Each of its fields is shown to the judge."""
    assert load(ROW) == (EXAMPLE,)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"query_id": None}, "query_id", ""),
        ({"grade": 2}, "contains_answer", True),
        ({"contains_answer": True}, "contains_answer", True),
        ({"grade": 1, "evidence": ""}, "contains_answer", False),
        ({"grade": 1, "evidence": None}, "evidence", ""),
        ({"grade": 1, "evidence": "It melts."}, "evidence", "It melts."),
        ({"grade": 0, "evidence": "", "contains_answer": False}, "grade", 0),
        ({"evidence": "fat.\nIt melts."}, "evidence", "fat.\nIt melts."),
    ],
)
def test_what_a_reply_may_say_an_example_may_say(load, changes, field, value):
    """An example shows a reply that would be accepted, of any grade."""
    [example] = load({**ROW, **changes})

    assert getattr(example, field) == value


def test_the_text_may_be_called_passage(load):
    """The prompt calls it so."""
    row = {name: value for name, value in ROW.items() if name != "text"}

    assert load({**row, "passage": ROW["text"]}) == (EXAMPLE,)


def test_examples_keep_their_order(load):
    """The last one is nearest to the question, and weighs most."""
    grades = [example.grade for example in load(ROW, {**ROW, "text": "Wax is a solid fat."})]
    texts = [example.text for example in load({**ROW, "text": "Wax is a solid fat. B"}, ROW)]

    assert grades == [3, 3]
    assert texts == ["Wax is a solid fat. B", ROW["text"]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grade": 4}, "grade: expected 0, 1, 2 or 3, got 4"),
        ({"grade": True}, "grade: expected 0, 1, 2 or 3, got True"),
        ({"grade": 2.5}, "grade: expected 0, 1, 2 or 3, got 2.5"),
        ({"grade": None}, "grade: expected 0, 1, 2 or 3, got None"),
        ({"grade": 0}, 'evidence: expected "" for grade 0, got'),
        ({"evidence": ""}, "evidence: expected words of the text for grade 3, got ''"),
        ({"evidence": "wax is"}, "evidence: expected words that stand in the text exactly so, got"),
        ({"evidence": "fat. It melts."}, "evidence: expected words that stand in the text exactly"),
        (
            {"grade": 1, "evidence": "zebra"},
            "evidence: expected words that stand in the text exactly",
        ),
        ({"contains_answer": False}, "contains_answer: expected true for grade 3, got False"),
        ({"contains_answer": 1}, "contains_answer: expected true for grade 3, got 1"),
        ({"reasoning": ""}, "reasoning: expected text, got ''"),
        ({"query": " "}, "query: expected text, got ' '"),
        ({"text": 7}, "text: expected text, got 7"),
    ],
)
def test_an_example_that_breaks_a_rule_is_named_by_its_line(load, changes, message):
    """A judge that is shown a wrong reply learns to give wrong replies."""
    with pytest.raises(DataError, match=rf"shots\.jsonl:2: {message}"):
        load({**ROW, "query": "Other?"}, {**ROW, **changes})


@pytest.mark.parametrize("field", ["query", "text", "grade", "reasoning"])
def test_an_example_that_lacks_a_field_is_named_by_its_line(load, field):
    """What is missing is told with the names it may have."""
    row = {name: value for name, value in ROW.items() if name != field}

    with pytest.raises(DataError, match=rf"shots\.jsonl:1: {field}: expected one of {field}"):
        load(row)


def test_a_pair_that_comes_twice_is_refused(load):
    """Two grades for one pair teach nothing."""
    with pytest.raises(DataError, match=r"shots\.jsonl:2: query 'What is wax\?': this pair comes"):
        load(ROW, {**ROW, "grade": 2})


def test_more_examples_than_anybody_pays_for_are_refused(load):
    """A file of judgments that is given by mistake would go into every call."""
    rows = [{**ROW, "query": f"What is wax no. {n}?"} for n in range(MOST_EXAMPLES + 1)]

    assert len(load(*rows[:MOST_EXAMPLES])) == MOST_EXAMPLES
    with pytest.raises(
        DataError, match=rf"shots\.jsonl:{MOST_EXAMPLES + 1}: expected at most 20 examples"
    ):
        load(*rows)


def test_a_file_of_something_else_is_shown_the_shape(load):
    """The path of another file is soon given."""
    with pytest.raises(DataError, match=r'none of the shapes accepted:\n  JSON Lines .*"grade"'):
        load({"name": "x"})


@pytest.mark.parametrize(("name", "text"), [("shots.jsonl", ""), ("shots.json", "[]")])
def test_a_file_without_examples_is_an_error(tmp_path, name, text):
    """Judging would go on as if none had been asked for."""
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match="example"):
        load_examples(tmp_path / name)
