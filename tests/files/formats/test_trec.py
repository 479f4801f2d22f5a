import math
import re

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.files.formats.trec import write_trec_qrels, write_trec_run

REFUSED = [
    ("a b", "x", "id 'a b': expected text without blanks in it"),
    ("a", "x\ty", "id 'x\\ty': expected text without blanks in it"),
    ("a", "x\u00a0y", "expected text without blanks in it"),
    ("", "x", "id '': expected text without blanks in it"),
    ("a", "\ud800", "is not text"),
    ("#1", "x", "a query id that starts with #"),
]


def test_qrels_are_written_sorted(tmp_path):
    """The same judgments must give the same bytes."""
    file = tmp_path / "q.txt"

    write_trec_qrels(file, {"b": {"y": 1, "x": -2}, "a": {"z": 3}})

    assert file.read_bytes() == b"a 0 z 3\nb 0 x -2\nb 0 y 1\n"


def test_failed_judgments_are_left_out_and_counted(tmp_path):
    """A failure is never a value, and the caller has to be able to say how many there are."""
    file = tmp_path / "q.txt"

    n_left_out = write_trec_qrels(file, {"a": {"x": None, "y": 0}, "b": {"z": None}})

    assert (n_left_out, file.read_text()) == (2, "a 0 y 0\n")


def test_run_is_written_in_the_order_of_trec_eval(tmp_path):
    """Of equal scores the larger id comes first, and the ranks must say so."""
    file = tmp_path / "r.txt"

    write_trec_run(file, {"q": {"a": 1.0, "c": 0.5, "b": 1.0}}, "mine")

    assert file.read_text() == "q Q0 b 1 1.0 mine\nq Q0 a 2 1.0 mine\nq Q0 c 3 0.5 mine\n"


def test_ranking_without_scores_gets_falling_ones(tmp_path):
    """Other tools order by score alone."""
    file = tmp_path / "r.txt"

    write_trec_run(file, {"q": ["c", "a", "b"]}, "mine")

    assert file.read_text() == "q Q0 c 1 3.0 mine\nq Q0 a 2 2.0 mine\nq Q0 b 3 1.0 mine\n"


def test_written_run_comes_back_to_the_last_digit(tmp_path):
    """A rounded score makes ties where there were none."""
    run = {"ö": {"b": 0.1 + 0.2, "c": 5e-324, "d": math.inf, "e": -math.inf}}
    file = tmp_path / "r.txt"

    write_trec_run(file, run, "t")

    assert read_run(file).rankings == run


def test_written_qrels_come_back(tmp_path):
    """What is exported must be what is measured."""
    qrels = {"q#1": {"d#1": 2, "ü": 0}}
    file = tmp_path / "q.txt"

    write_trec_qrels(file, qrels)

    assert read_qrels(file) == qrels


@pytest.mark.parametrize(("query_id", "chunk_id", "message"), REFUSED)
def test_qrels_with_ids_that_would_not_come_back_are_refused(tmp_path, query_id, chunk_id, message):
    """A blank in an id moves every column behind it."""
    with pytest.raises(DataError, match=re.escape(message)):
        write_trec_qrels(tmp_path / "q.txt", {query_id: {chunk_id: 1}})


@pytest.mark.parametrize(("query_id", "chunk_id", "message"), REFUSED)
def test_run_with_ids_that_would_not_come_back_is_refused(tmp_path, query_id, chunk_id, message):
    """A blank in an id moves every column behind it."""
    with pytest.raises(DataError, match=re.escape(message)):
        write_trec_run(tmp_path / "r.txt", {query_id: [chunk_id]}, "t")


def test_refused_write_leaves_the_old_file(tmp_path):
    """Half an export is worse than none."""
    file = tmp_path / "r.txt"
    file.write_text("old")

    with pytest.raises(DataError, match="query 'q': chunk 'b': score: expected a number, got nan"):
        write_trec_run(file, {"q": {"a": 1.0, "b": math.nan}}, "t")

    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_tag_with_blanks_is_refused(tmp_path):
    """It would be more columns than one."""
    with pytest.raises(DataError, match="tag 'my run': expected text without blanks"):
        write_trec_run(tmp_path / "r.txt", {"q": ["a"]}, "my run")
