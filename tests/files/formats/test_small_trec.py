import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError
from ragforge.files.formats.run_hits import locate_trec_run
from ragforge.files.formats.runs import read_run
from ragforge.measures.run_evaluation import evaluate, evaluate_hits

PLAIN = "q1 Q0 a 1 3.5 t\nq1 Q0 b 2 2.5 t\nq2 Q0 a 1 1.5 t\n"
QRELS = {"q1": {"a": 1, "b": None, "c": 2}, "q2": {"x": 2}}
MEASURES = ["nDCG", "RR", "P@2", "NumRet"]
WORDS = ["q1", "q2", "Q0", "a", "b", "c", "1", "2.5", "1e3", "t", "nan", "1_0", "#", ""]


def told(scores):
    return scores.to_dict(per_query=True)


def located(path, qrels, block_bytes=1 << 14):
    hits = locate_trec_run(path, qrels, block_bytes)
    return None if hits is None else told(evaluate_hits(qrels, hits, MEASURES))


def read(path, qrels):
    return told(evaluate(qrels, read_run(path).rankings, MEASURES))


lines = st.tuples(
    st.sampled_from(["q1", "q2", "q3", "#q"]),
    st.just("Q0"),
    st.sampled_from(["a", "b", "c", "d_1", "d\x1f1", "é"]),
    st.just("0"),
    st.sampled_from(["3.5", "2", "2.0", "-1e1", "inf", "nan", "1_0", "x"]),
    st.just("t"),
).map(" ".join)
broken = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", " \n"])


@settings(max_examples=400)
@given(text=st.lists(st.tuples(st.one_of(lines, lines, lines, broken), ends), min_size=1))
def test_a_file_is_located_as_it_is_read_or_not_at_all(tmp_path_factory, text):
    """A short cut that reads another number is worse than none."""
    path = tmp_path_factory.mktemp("run") / "run.txt"
    path.write_text("".join(line + end for line, end in text), encoding="utf-8", newline="")
    found = located(path, QRELS, 32)

    try:
        expected = read(path, QRELS)
    except DataError:
        expected = None

    assert found in (None, expected)


@pytest.mark.parametrize("block_bytes", [1, 7, 16, 17, 1 << 14])
@pytest.mark.parametrize("text", [PLAIN, PLAIN[:-1], PLAIN.replace("2.5", "3.5")])
def test_regular_files_are_located_whatever_the_blocks(tmp_path, text, block_bytes):
    """Nearly all files are regular; a query may begin in one block and end in another."""
    path = tmp_path / "run.txt"
    path.write_text(text, encoding="utf-8")

    assert located(path, QRELS, block_bytes) == read(path, QRELS)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(" ", "\t"),
        PLAIN.replace("2.5", "nan"),
        PLAIN.replace("2.5", "2_5"),
        PLAIN.replace("a 1 3.5", "a  3.5"),
        PLAIN.replace("Q0 b 2", "Q0 a 2"),
        PLAIN + "q1 Q0 c 3 1 t\n",
        PLAIN.replace("Q0 b", "Q0 b\x1c"),
        PLAIN.replace("Q0 b 2", "Q0\x1db 2"),
        PLAIN.replace("2.5", "2\x1e5"),
        PLAIN.replace("2.5 t", "2.5 \x1ft"),
        "1 1 1 1 1\n1 1 1 1 1 1 1\n",
        "1 1 1 1 1 1\n1\n1 1 1 1 1 1 1 1 1 1 1\n",
        "q Q0 a 1 2 t\nb\nt Q0 d 1 2 x Q0 d 1 2 t\n",
        "# q Q0 a 1 2\n",
    ],
)
def test_what_is_irregular_is_left_to_the_line_reader(tmp_path, text):
    """It knows the other blanks, and where the fault is."""
    path = tmp_path / "run.txt"
    path.write_text(text, encoding="utf-8")

    assert locate_trec_run(path, QRELS) is None


def test_a_run_of_unknown_queries_is_told_by_examples(tmp_path):
    """Zeros all over are mostly ids that are spelled differently."""
    path = tmp_path / "run.txt"
    path.write_text(re.sub("^q", "query", PLAIN, flags=re.MULTILINE), encoding="utf-8")

    assert located(path, QRELS) == read(path, QRELS)
