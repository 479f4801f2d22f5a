import gzip
import re
from itertools import islice

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.pairs import PairRow, read_pairs

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

    assert found == PAIR.model_copy(update={"human_grade": grade})


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
    made_id = "t_5068012f3019e53a"

    pairs = list(read_pairs(write(tmp_path / "p.json", NESTED)))

    assert pairs == [
        PairRow(query_id="Why?", query="Why?", chunk_id="7", text="So.", human_grade=2),
        PairRow(query_id="Why?", query="Why?", chunk_id=made_id, text="Since then."),
    ]


def test_the_id_of_a_query_stands_beside_its_chunks(tmp_path):
    """Judgments are joined with runs by it."""
    text = '[{"id": "q1", "question": "Why?", "chunks": ["So."]}]'

    assert [pair.query_id for pair in read_pairs(write(tmp_path / "p.json", text))] == ["q1"]


def test_pairs_without_any_id_get_ids_from_their_texts(tmp_path):
    """A table of questions and passages is enough to be judged."""
    text = "question,passage\nWhy?,So.\n"

    [pair] = read_pairs(write(tmp_path / "p.csv", text))

    assert (pair.query_id, pair.chunk_id) == ("Why?", "t_12984637383b7b9c")


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
