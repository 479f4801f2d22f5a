import gzip
import re
from itertools import islice

import pytest

from ragforge.errors import DataError
from ragforge.files.pairs import PairRow, read_pairs

PAIR = PairRow("1", "Why?", "7", "So.")
LINE = '{"query_id": "1", "query": "Why?", "chunk_id": "7", "text": "So.", "grade": 2}\n'


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.jsonl", LINE),
        ("p.jsonl.gz", gzip.compress(LINE.encode())),
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
