import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError
from ragforge.files.formats.qrels import read_qrels
from ragforge.files.scan import Irregular, scan_trec_run
from ragforge.files.scan.parts import Sizes

CASES = Path(__file__).parents[2] / "data/conformance"
NAMES = sorted(
    case.parent.name
    for case in CASES.glob("*/case.json")
    if json.loads(case.read_text())["expect"] == "values"
    and case.with_name("qrels.txt").exists()
    and case.parent.name != "interleaved_topics"
)
PLAIN = "q1 Q0 a 1 3.5 t\nq1 Q0 b 2 2.5 t\nq2 Q0 a 1 1.5 t\n"
QRELS = {"q1": {"a": 1, "b": None}, "q2": {"x": 2}}
SPELLINGS = ["{:.6f}", "{:.1f}", "{!r}", "{:g}", "{:.17g}", "{:.0f}"]

ids = st.text("aé\u3000\u00a0#-𝄞019", min_size=1, max_size=20)
scores = st.one_of(st.integers(-2, 2).map(float), st.floats(allow_nan=False))
sizes = st.builds(Sizes, st.sampled_from([16, 100, 1 << 19]), st.sampled_from([16, 90, 500]))


@st.composite
def runs(draw):
    """A run and qrels that share queries and chunks, not always."""
    run = draw(
        st.dictionaries(
            ids.filter(lambda text: text[0] != "#"),
            st.dictionaries(ids, scores, min_size=1, max_size=12),
            min_size=1,
            max_size=6,
        )
    )
    chunk_ids = sorted({chunk_id for ranking in run.values() for chunk_id in ranking} | {"0"})
    grades = st.one_of(st.none(), st.integers(-1, 3))
    judgments = st.dictionaries(st.sampled_from(chunk_ids), grades, max_size=8)
    return run, draw(st.dictionaries(st.sampled_from([*sorted(run), "other"]), judgments))


def write(file, run, blank, end):
    file.write_text(
        "".join(
            blank.join([query_id, "Q0", chunk_id, "0", repr(score), "t"]) + end
            for query_id, ranking in run.items()
            for chunk_id, score in ranking.items()
        ),
        encoding="utf-8",
        newline="",
    )
    return file


def many(n_queries, n_chunks, spelling, seed):
    generator = random.Random(seed)
    lines, qrels = [], {}
    for query in generator.sample(range(10**6), n_queries):
        chunks = generator.sample(range(10**7), n_chunks)
        lines += [
            f"{query} Q0 {chunk} 0 {spelling.format(generator.gauss(0, 3))} t\n" for chunk in chunks
        ]
        qrels[str(query)] = dict.fromkeys(map(str, chunks[::7]), 1)
    return "".join(lines), qrels


@pytest.mark.parametrize("name", NAMES)
def test_conformance_case_has_the_hits_of_the_line_reader(name, hits_in):
    """What trec_eval reads has to be regular, however it is spelled."""
    [run], qrels = (CASES / name).glob("run.txt*"), read_qrels(CASES / name / "qrels.txt")

    assert scan_trec_run(run, qrels, n_threads=1) == hits_in(run, qrels)


@pytest.mark.slow
@given(run=runs(), blank=st.sampled_from([" ", "\t", " \t "]), end=st.sampled_from(["\n", "\r\n"]))
def test_any_run_has_the_hits_of_the_line_reader(tmp_path_factory, run, blank, end, hits):
    """Order, ties, ids and scores of any kind must come out the same."""
    rankings, qrels = run
    file = write(tmp_path_factory.mktemp("run") / "r.txt", rankings, blank, end)

    assert scan_trec_run(file, qrels, n_threads=1) == hits(rankings, qrels)


@pytest.mark.slow
@given(run=runs(), cut=sizes, n_threads=st.integers(1, 3))
@settings(deadline=None)
def test_hits_do_not_depend_on_how_the_file_is_cut_up(tmp_path_factory, run, cut, n_threads, hits):
    """A query must be whole, once, wherever windows and parts end."""
    rankings, qrels = run
    file = write(tmp_path_factory.mktemp("run") / "r.txt", rankings, " ", "\n")

    assert scan_trec_run(file, qrels, n_threads=n_threads, sizes=cut) == hits(rankings, qrels)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_run_of_many_windows_has_the_hits_of_the_line_reader(tmp_path, spelling, hits_in):
    """Most of a large file is read by code that small files do not reach."""
    file = tmp_path / "r.txt"
    text, qrels = many(60, 300, spelling, seed=1)
    file.write_text(text)
    found = scan_trec_run(file, qrels, n_threads=2, sizes=Sizes(1 << 14, 1 << 16))

    assert found == hits_in(file, qrels)


def test_query_larger_than_the_window_is_read(tmp_path, hits_in):
    """One query may have more chunks than any other."""
    file = tmp_path / "r.txt"
    text, qrels = many(3, 20_000, "{:.3f}", seed=2)
    file.write_text(text)
    found = scan_trec_run(file, qrels, n_threads=3, sizes=Sizes(1 << 12, 1 << 14))

    assert found == hits_in(file, qrels)


def test_many_tied_chunks_are_ranked_by_id(tmp_path, hits_in):
    """Pairs of tied chunks are too many to be compared at once."""
    file = tmp_path / "r.txt"
    text, qrels = many(2, 3000, "{:.0f}", seed=3)
    file.write_text(text)

    assert scan_trec_run(file, qrels, n_threads=1) == hits_in(file, qrels)


def test_packed_run_is_read(tmp_path, hits_in):
    """Runs are published packed."""
    file = tmp_path / "r.txt.gz"
    text, qrels = many(20, 100, "{:.6f}", seed=4)
    file.write_bytes(gzip.compress(text.encode()))
    found = scan_trec_run(file, qrels, n_threads=2, sizes=Sizes(1 << 12, 1 << 12))

    assert found == hits_in(file, qrels)


def test_cut_off_packed_run_is_an_error(tmp_path):
    """Half a file has values, but not those of the run."""
    file = tmp_path / "r.txt.gz"
    file.write_bytes(gzip.compress(PLAIN.encode())[:-12])

    with pytest.raises(DataError, match=r"r\.txt\.gz: is not a whole \.gz file"):
        scan_trec_run(file, QRELS, n_threads=1)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(" ", "  \t"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", " further columns\n"),
        PLAIN.replace("\n", " \n"),
        PLAIN.replace("q1", " q1", 1),
        PLAIN.rstrip("\n"),
        "# comment\n" + PLAIN,
        PLAIN.replace("q2", "# q1 Q0 c 1 9.5 t\nq2"),
        "\n" + PLAIN.replace("q2", "\n \nq2") + "\n\n",
        PLAIN.replace("q1", "\u00e9\u3000"),
        PLAIN.replace("3.5", "+3.5e0"),
        PLAIN.replace("3.5", "inf"),
    ],
)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_untidy_file_is_read(tmp_path, text, n_threads, hits_in):
    """Other tools write tabs, comments and the ends of other lines."""
    file = tmp_path / "r.txt"
    file.write_bytes(text.encode())
    found = scan_trec_run(file, QRELS, n_threads=n_threads, sizes=Sizes(20, 12))

    assert found == hits_in(file, QRELS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# comment\n",
        PLAIN.replace("3.5", "nan"),
        PLAIN.replace("3.5", "3_5"),
        PLAIN.replace("3.5", "0x3"),
        PLAIN.replace("3.5", "high"),
        PLAIN.replace("Q0 b", "Q0 a"),
        PLAIN.replace(" t\nq2", "\nq2"),
        PLAIN.replace(" 2 2.5", "  2.5"),
        PLAIN + "q1 Q0 c 1 0.5 t\n",
        PLAIN + "q2 Q0",
        "\ufeff" + PLAIN,
        PLAIN.replace("b", "b\0"),
        PLAIN.replace("b", "b\x1c"),
        PLAIN.replace("Q0 b", "Q0\x1db"),
        PLAIN.replace("2.5", "2\x1e5"),
        PLAIN.replace("2.5 t", "2.5 \x1ft"),
        PLAIN.replace("b", "b\v"),
        PLAIN.replace("b", "b" * 300),
    ],
)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_the_line_reader_refuses_or_reads_otherwise_is_irregular(tmp_path, text, n_threads):
    """Only the line reader can say which line is wrong."""
    file = tmp_path / "r.txt"
    file.write_bytes(text.encode())

    with pytest.raises(Irregular, match=r"^$"):
        scan_trec_run(file, QRELS, n_threads=n_threads, sizes=Sizes(20, 12))


def test_other_encoding_is_irregular(tmp_path):
    """Ids would be compared that nobody wrote."""
    file = tmp_path / "r.txt"
    file.write_bytes(PLAIN.replace("b", "\u00e9").encode("latin-1"))

    with pytest.raises(Irregular, match=r"^$"):
        scan_trec_run(file, QRELS, n_threads=1)


def test_query_that_comes_back_in_another_part_is_irregular(tmp_path):
    """Each thread has seen it once."""
    file = tmp_path / "r.txt"
    file.write_text("".join(f"q{n} Q0 a 1 1.5 t\n" for n in [*range(300), 5]))

    with pytest.raises(Irregular, match=r"^$"):
        scan_trec_run(file, {}, n_threads=2, sizes=Sizes(100, 100))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_missing_file_is_an_error(tmp_path, n_threads):
    """It is no question of shape."""
    with pytest.raises(DataError, match="cannot be read"):
        scan_trec_run(tmp_path / "r.txt", QRELS, n_threads=n_threads)
