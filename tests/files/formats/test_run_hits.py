import os
import random

import pytest

import ragforge
from ragforge.errors import DataError, UsageError
from ragforge.files.formats.run_hits import LARGE_BYTES, read_located
from ragforge.files.formats.runs import read_run

pytestmark = pytest.mark.slow


MEASURES = ["nDCG@10", "AP", "RR", "Judged@10"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A run file above the size from which files are scanned, and qrels of some of its chunks."""
    generator = random.Random(7)
    path = tmp_path_factory.mktemp("large") / "run.trec"
    qrels, lines, size = {}, [], 0
    while size <= LARGE_BYTES:
        query_id = f"query-{len(qrels)}"
        chunk_ids = [str(number) for number in generator.sample(range(10**7), 1000)]
        qrels[query_id] = {chunk_id: generator.randrange(4) for chunk_id in chunk_ids[::50]}
        ranked = (f"{query_id} Q0 {c} 0 {generator.random():.3f} run\n" for c in chunk_ids)
        lines.append("".join(ranked))
        size += len(lines[-1])
    path.write_text("".join(lines), encoding="utf-8")
    return path, qrels


@pytest.mark.parametrize("n_threads", [1, 2, None])
def test_large_files_give_what_the_line_reader_gives(large, n_threads):
    """The size of a file must not show in a value, not in its last bit."""
    path, qrels = large

    scanned = ragforge.evaluate(qrels, path, MEASURES, n_threads=n_threads)

    expected = ragforge.evaluate(qrels, read_run(path).rankings, MEASURES)
    assert scanned.to_dict(per_query=True) == expected.to_dict(per_query=True)
    assert read_located(path, qrels) is not None


def test_a_fault_in_a_large_file_is_named_by_its_line(large, tmp_path):
    """Of a million lines, one has to be found."""
    path, qrels = large
    broken = tmp_path / "run.trec"
    broken.write_text(path.read_text() + "query-0 Q0 7 1 high run\n", encoding="utf-8")
    n_lines = 1 + path.read_text().count("\n")

    with pytest.raises(DataError, match=rf"run\.trec:{n_lines}: score: expected a number"):
        ragforge.evaluate(qrels, broken, MEASURES)


@pytest.mark.parametrize("last", ["other Q0 7 1 2.5 run more", "other Q0 7 1 2.5 \x1frun", "# end"])
def test_odd_lines_in_a_large_file_are_read(large, tmp_path, last):
    """One of them must not make the whole file unreadable, or another one."""
    path, qrels = large
    odd = tmp_path / "run.trec"
    odd.write_text(f"{path.read_text()}{last}\n", encoding="utf-8")

    scores = ragforge.evaluate(qrels, odd, MEASURES)

    assert scores.per_query == ragforge.evaluate(qrels, path, MEASURES).per_query


def test_a_query_in_two_places_of_a_large_file_is_one_query(large, tmp_path):
    """Runs that were merged from shards are sorted by nothing."""
    path, qrels = large
    scattered = tmp_path / "run.trec"
    scattered.write_text(f"{path.read_text()}query-0 Q0 best 1 2.5 run\n", encoding="utf-8")

    scores = ragforge.evaluate(qrels | {"query-0": {"best": 3}}, scattered, ["RR"])

    assert scores.per_query["query-0"]["RR"] == 1.0


def test_hits_one_a_line_are_read_from_a_large_file(tmp_path):
    """Tables of hits are the simplest export of all."""
    path = tmp_path / "run.jsonl"
    row = '{"query_id": "q", "chunk_id": "%d", "score": %d, "text": "' + "x" * 900 + '"}\n'
    path.write_text("".join(row % (n, n) for n in range(9000)), encoding="utf-8")

    scores = ragforge.evaluate({"q": {"8998": 1}}, path, ["RR"])

    assert (path.stat().st_size > LARGE_BYTES, scores.mean("RR")) == (True, 0.5)


def test_a_pipe_is_read_though_it_cannot_be_read_twice(tmp_path):
    """Shells give `<(zcat run.gz)` so."""
    reading, writing = os.pipe()
    os.write(writing, b"q Q0 a 1 2 t\n")
    os.close(writing)

    scores = ragforge.evaluate({"q": {"a": 1}}, f"/dev/fd/{reading}", ["RR"])

    os.close(reading)
    assert scores.mean("RR") == 1.0


def test_a_missing_file_is_named(tmp_path):
    """Who misspells a name wants to read it back."""
    with pytest.raises(DataError, match=r"none\.trec: cannot be read: No such file"):
        ragforge.evaluate({"q": {"a": 1}}, tmp_path / "none.trec")


def test_less_than_one_thread_is_refused(tmp_path):
    """It would read nothing."""
    with pytest.raises(UsageError, match="n_threads: expected a whole number of at least 1, got 0"):
        ragforge.evaluate({"q": {"a": 1}}, tmp_path / "run.trec", n_threads=0)
