import gzip
import json
import math
import re

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.run_hits import read_located
from ragforge.files.formats.runs import Run, each_ranking, read_run

SCORED = {"q1": {"d7": 2.5, "d2": 1.0}, "q2": {"d1": 3.0}}
LISTED = {"q1": ["d7", "d2"], "q2": ["d1"]}


FILLER = "".join(f"{n // 10} Q0 {n} 1 1.5 t\n" for n in range(20_000))
"""More lines than are read at a time."""


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.trec", "q1 Q0 d7 1 2.5 t\nq1 Q0 d2 2 1 t\nq2 Q0 d1 1 3 t\n"),
        ("r.txt", "q1 Q0 d7 1 2.5 t\nq2 Q0 d1 1 3 t\nq1 Q0 d2 2 1 t\n"),
        (
            "r.jsonl",
            '{"query_id": "q1", "ranking": [{"chunk_id": "d7", "score": 2.5},'
            ' {"chunk_id": "d2", "score": 1.0}], "latency_s": null}\n'
            '{"query_id": "q2", "ranking": [{"chunk_id": "d1", "score": 3}]}\n',
        ),
        (
            "r.jsonl",
            '{"query_id": "q1", "ids": ["d7", "d2"], "scores": [2.5, 1]}\n'
            '{"query_id": "q2", "chunk_ids": ["d1"], "scores": [3]}\n',
        ),
        ("r.json", '{"q1": {"d7": 2.5, "d2": 1}, "q2": {"d1": 3}}'),
        ("r.json", '{"q1": [["d7", 2.5], ["d2", 1]], "q2": [["d1", 3]]}'),
        (
            "r.json",
            '{"results": [{"id": "q1", "hits": [{"id": "d7", "score": 2.5},'
            ' {"id": "d2", "score": 1}]}, {"id": "q2", "hits": [{"id": "d1", "score": 3}]}]}',
        ),
        ("r.csv", "query_id,rank,chunk_id,score\nq1,2,d2,1\nq1,1,d7,2.5\nq2,1,d1,3\n"),
        ("r.tsv", "qid\tdocno\tscore\nq1\td7\t2.5\nq1\td2\t1\nq2\td1\t3\n"),
        (
            "hits.jsonl",
            '{"query_id": "q1", "doc_id": "d7", "score": 2.5}\n'
            '{"query_id": "q1", "doc_id": "d2", "score": 1}\n'
            '{"query_id": "q2", "doc_id": "d1", "score": 3}\n',
        ),
    ],
)
def test_scores_are_read_from_the_shapes_of_the_field(tmp_path, name, text):
    """Any retriever's output should be measured without writing a converter."""
    assert read_run(write(tmp_path / name, text)).rankings == SCORED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.json", '{"q1": ["d7", "d2"], "q2": ["d1"]}'),
        (
            "r.json",
            '[{"id": "q1", "retrievedDocs": ["d7", "d2"]}, {"id": "q2", "results": ["d1"]}]',
        ),
        ("r.json", '[{"query": "q1", "retrieved": ["d7", "d2"]}, {"query": "q2", "hits": ["d1"]}]'),
        (
            "r.jsonl",
            '{"query_id": "q1", "retrieved_docs": [{"id": "d7"}, {"id": "d2"}]}\n'
            '{"query_id": "q2", "retrieved_docs": [{"id": "d1"}]}\n',
        ),
        (
            "r.jsonl",
            '{"query_id": "q1", "ids": ["d7", "d2"]}\n{"query_id": "q2", "chunk_ids": ["d1"]}\n',
        ),
        ("r.csv", "id,retrieved_docs\nq1,d7;d2\nq2,d1\n"),
        ("r.csv", "query_id,doc_id,rank\nq1,d2,10\nq1,d7,2\nq2,d1,1\n"),
        (
            "r.jsonl",
            '{"query_id": "q1", "ranking": [{"id": "d2", "rank": 10}, {"id": "d7", "rank": "2"}]}\n'
            '{"query_id": "q2", "ranking": [{"id": "d1", "rank": null}]}\n',
        ),
        (
            "r.json",
            '{"q1": [{"id": "d2", "position": 1}, {"id": "d7", "position": 0}], "q2": ["d1"]}',
        ),
        (
            "r.json",
            '{"q1": [{"id": "d7", "position": 90}, {"id": "d2", "position": 7}], "q2": ["d1"]}',
        ),
    ],
)
def test_lists_without_scores_keep_their_order(tmp_path, name, text):
    """Made-up scores would look like the retriever's own."""
    assert read_run(write(tmp_path / name, text)).rankings == LISTED


@pytest.mark.parametrize(
    ("name", "expected"), [("run.bm25.trec", "run.bm25"), ("bm25.txt", "bm25"), ("v1.2", "v1.2")]
)
def test_run_is_called_as_its_file(tmp_path, name, expected):
    """Tags of TREC runs are often all alike, so two runs would share a column."""
    assert read_run(write(tmp_path / name, "q Q0 d 1 1 STANDARD\n")).name == expected


def test_gzip_is_unpacked_and_not_part_of_the_name(tmp_path):
    """Runs are published packed."""
    file = write(tmp_path / "run.bm25.trec.gz", gzip.compress(b"q Q0 d 1 1.5 t\n"))

    assert read_run(file) == Run("run.bm25", {"q": {"d": 1.5}}, {})


def test_latencies_are_in_seconds(tmp_path):
    """Reports compare them, so one unit must hold."""
    text = (
        '[{"id": "a", "results": [], "latency_s": 0.5},'
        ' {"id": "b", "results": [], "latencyMs": 20}, {"id": "c", "results": []}]'
    )

    assert read_run(write(tmp_path / "r.json", text)).latencies_s == {"a": 0.5, "b": 0.02}


def test_empty_ranking_is_there(tmp_path):
    """A retriever that found nothing has answered, with nothing."""
    assert read_run(write(tmp_path / "r.json", '{"q": []}')).rankings == {"q": []}


def test_trec_runs_with_tabs_comments_and_further_fields_are_read(tmp_path):
    """trec_eval reads them."""
    text = "# header\n\n1\tQ0\ta\t1\t2.0\tt\r\n   \n1 Q0 b 2 1.5 t extra fields\n1 Q0 c 3 1e0 t"

    assert read_run(write(tmp_path / "r.txt", text)).rankings == {"1": {"a": 2, "b": 1.5, "c": 1}}


def test_lines_of_a_query_need_not_stand_together(tmp_path):
    """Runs that were merged from shards are sorted by nothing."""
    text = f"7 Q0 a 1 9 t\n{FILLER}7 Q0 b 2 8 t\n# comment\n7 Q0 c 3 7 t\n"

    ranking = read_run(write(tmp_path / "r.txt", text)).rankings["7"]

    assert ranking == {"a": 9.0, "b": 8.0, "c": 7.0} | {str(n): 1.5 for n in range(70, 80)}


def test_ids_keep_blanks_that_are_not_ascii(tmp_path):
    """Columns are cut at blanks and tabs; a no-break space belongs to an id."""
    text = "1 Q0 a\u00a0b 1 2.0 t\n1 Q0 a\u2003b 2 1.0 t\n"

    assert read_run(write(tmp_path / "r.txt", text)).rankings == {
        "1": {"a\u00a0b": 2.0, "a\u2003b": 1.0}
    }


@pytest.mark.parametrize("separator", ["\x1c", "\x1d", "\x1e", "\x1f"])
@pytest.mark.parametrize("line", ["", "# comment\n", "2 Q0 \u00e9 1 2.0 t\n"])
def test_separators_that_are_no_blanks_belong_to_an_id(tmp_path, separator, line):
    """Python parts words there, trec_eval does not: the score would come from another column."""
    text = f"1 Q0 a{separator}7 1 2.0 t\n1 Q0 b 2 1.5 {separator}t\n{line}"

    rankings = read_run(write(tmp_path / "r.txt", text)).rankings

    assert rankings["1"] == {f"a{separator}7": 2.0, "b": 1.5}


def test_a_line_is_not_cut_off_where_a_separator_is_no_blank(tmp_path):
    """It has five columns, whatever stands in them, so its tag is missing."""
    file = write(tmp_path / "r.txt", "1 Q0 a\x1fb 1 2.0\n")

    with pytest.raises(DataError, match=r"r\.txt:1: expected 6 columns .*, got 5"):
        read_run(file)


def test_infinite_scores_are_scores(tmp_path):
    """They order normally, and trec_eval takes them."""
    text = "1 Q0 a 1 -inf t\n1 Q0 b 2 inf t\n1 Q0 c 3 0.5 t\n"

    assert read_run(write(tmp_path / "r.txt", text)).rankings == {
        "1": {"a": -math.inf, "b": math.inf, "c": 0.5}
    }


def test_numbers_are_read_in_all_spellings(tmp_path):
    """Each of them occurs in published runs."""
    text = "1 Q0 a 1 1e308 t\n1 Q0 b 2 5e-324 t\n1 Q0 c 3 +1.5 t\n1 Q0 d 4 1E2 t\n1 Q0 e 5 .25 t\n"

    assert read_run(write(tmp_path / "r.txt", text)).rankings == {
        "1": {"a": 1e308, "b": 5e-324, "c": 1.5, "d": 100, "e": 0.25}
    }


def test_ids_are_any_unicode(tmp_path):
    """Paths and titles serve as ids."""
    assert read_run(write(tmp_path / "r.txt", "ö Q0 日本 1 1 t\n")).rankings == {"ö": {"日本": 1}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.txt", "", "r.txt: is empty"),
        ("r.jsonl", "\n", "r.jsonl: is empty"),
        ("r.json", "[]", "r.json: holds no ranking"),
        ("r.txt", "1 Q0 a 1 abc t\n", "r.txt:1: score: expected a number, got 'abc'"),
        ("r.txt", "1 Q0 a 1 nan t\n1 Q0 b 2 1 t\n", "r.txt:1: score: expected a number, got 'nan'"),
        ("r.txt", "1 Q0 a 1 1_0 t\n", "r.txt:1: score: expected a number, got '1_0'"),
        ("r.txt", "1 Q0 a 1 2.0 t\n1 Q0 a 2 1.0 t\n", "r.txt:2: query '1': chunk 'a' comes twice"),
        ("r.txt", "1 Q0 a 1 2.0\n", "r.txt:1: expected 6 columns"),
        ("r.txt", "1 Q0 a 1 2.0 t\n1 Q0 b 2 1.\n", "r.txt:2: expected 6 columns"),
        ("r.txt", "1 Q0 a 1 2\n1 Q0 b 2 1.0 t more\n", "r.txt:1: expected 6 columns"),
        ("r.txt", "1 Q0 a 1 2 t2 Q0 a 1 2 t\n", "r.txt:1: expected one row of 6 columns on a line"),
        ("r.txt", "1 Q0 a 1 2 t\r2 Q0 a 1 2 t\r", "r.txt:1: expected one row of 6 columns"),
        ("r.txt", "1 1 1 1 1\n1 1 1 1 1 1 1\n", "r.txt:1: expected 6 columns"),
        ("r.txt", "1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n1 Q0 a 1 2 t\n", "r.txt:3: query '1': chunk 'a'"),
        ("r.txt", f"{FILLER}1 Q0 a 1 abc t\n", "r.txt:20001: score: expected a number"),
        ("r.txt", f"{FILLER}0 Q0 7 1 1 t\n", "r.txt:20001: query '0': chunk '7' comes twice"),
        (
            "r.jsonl",
            '{"query_id": "q", "ids": ["a"], "scores": [1, 2]}',
            "expected 1 scores or none",
        ),
        ("r.jsonl", '{"query_id": "q", "ids": ["a"], "scores": 1}', "scores: expected a list of"),
        (
            "r.jsonl",
            '{"query_id": "q", "ids": ["a"], "scores": ["x"]}',
            "expected a number, got 'x'",
        ),
        ("r.txt", b"1 Q0 a 1 2.0 t\n1 Q0 b\0 2 1 t\n", "r.txt:2: is binary"),
        ("r.txt", b"1 Q0 \xe4 1 2.0 t\n", "r.txt:1: byte 5 (0xe4) is not UTF-8"),
        ("r.json", '{"q": {"a": null}}', "'q': ranking: expected a number, got None"),
        ("r.json", '{"q": {"a": NaN}}', "NaN is not a JSON number"),
        ("r.json", '{"q": {"a": 1, "a": 2}}', "'a' comes twice in one object"),
        ("r.json", '{"q": ["a", "b", "a"]}', "'q': query 'q': chunk 'a' comes twice"),
        ("r.json", '{"q": [["a", 1], "b"]}', "'q': ranking: expected 2 scores or none, got 1"),
        ("r.json", '{"q": [["a", "x"]]}', "ranking: score: expected a number, got 'x'"),
        ("r.json", '{"q": [3.5]}', "ranking: id: expected an id"),
        ("r.json", '[{"id": "q", "results": []}, {"id": "q", "results": []}]', "item 2: query 'q'"),
        ("r.json", '[{"id": "q", "results": 3}]', "item 1: results: expected a list of chunks"),
        ("r.json", '[{"id": "q", "results": [{"title": "x"}]}]', "ranking: id: expected one of"),
        ("r.json", '[{"id": "q", "results": [], "latency_s": -1}]', "latency_s: expected a number"),
        ("r.jsonl", '{"query_id": "q", "ranking": [{"chu', "r.jsonl:1: is not one complete JSON"),
        (
            "r.jsonl",
            '{"query_id": "q", "ranking": []}\n{"query_id": "r", "rankings": []}\n',
            "r.jsonl:2: ranking: expected one of ranking, retrieved_chunk_ids",
        ),
        ("r.csv", "query_id,chunk_id,score\nq,a,\n", "r.csv:2: score: expected a number, got ''"),
        ("r.csv", "query_id,chunk_id,score\nq,a,1\nq,a,2\n", "r.csv:3: query 'q': chunk 'a' comes"),
        ("r.csv", "query_id,chunk_id\nq,a\n", "r.csv:2: rank: expected one of rank, position"),
    ],
)
def test_faults_are_refused_with_their_place(tmp_path, name, text, message):
    """Peers read these as score 0, as the last of two, or order at random."""
    file = write(tmp_path / name, text)

    with pytest.raises(DataError, match=re.escape(message)):
        read_run(file)


def test_scores_that_rise_along_a_list_are_refused(tmp_path):
    """They are distances, or the list is not sorted; either reading could turn the ranking over."""
    text = '[{"id": "q", "results": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.7}]}]'
    file = write(tmp_path / "r.json", text)

    with pytest.raises(
        DataError, match=r"expected scores that fall along the list, got 0\.1 befor"
    ):
        read_run(file)


def test_quotes_are_no_ranking(tmp_path):
    """Two quotes of a document are two passages, but would be one id."""
    text = '{"query_id": "q", "retrieved": [{"doc_id": "a.md", "quote": "x"}]}\n'
    file = write(tmp_path / "r.jsonl", text)

    with pytest.raises(DataError, match="quote: expected chunk ids, not quotes"):
        read_run(file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.txt", "q1 0 d7 2\n"),
        ("r.csv", "a,b\n1,2\n"),
        ("r.json", '{"name": "x"}'),
        ("r.jsonl", '{"id": "q1", "text": "?"}\n'),
    ],
)
def test_unknown_shape_is_answered_with_those_accepted(tmp_path, name, text):
    """Qrels given for a run are the likeliest mistake."""
    file = write(tmp_path / name, text)

    with pytest.raises(DataError, match=r"accepted:\n  TREC run: q1 Q0 d7 1 12\.5 bm25\n"):
        read_run(file)


def test_folder_is_refused(tmp_path):
    """A dataset has many runs."""
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_run(tmp_path)


def test_ranks_that_contradict_scores_are_refused(tmp_path):
    """Distances turned every ranking over, and nothing was said."""
    table = "query_id,doc_id,score,rank\nq1,d1,0.1,1\nq1,x1,0.9,2\n"
    with pytest.raises(DataError, match=r"rank 2 has a higher score than rank 1, .* distances"):
        read_run(write(tmp_path / "r.csv", table))

    alike = "query_id,doc_id,score,rank\nq1,a,0.5,2\nq1,b,0.5,1\nq1,c,0.4,3\nq1,d,0.3,\n"
    assert list(read_run(write(tmp_path / "r.csv", alike)).rankings["q1"]) == ["a", "b", "c", "d"]


def test_ranks_in_a_list_are_read_as_in_a_table(tmp_path):
    """Hits of a database come in any order, and their ranks were passed over."""
    hits = '{"id": "b", "score": 0.4, "rank": 2}, {"id": "a", "score": 0.5, "rank": 1}'
    file = write(tmp_path / "r.json", f'{{"q1": [{hits}]}}')
    assert read_run(file).rankings["q1"] == {"a": 0.5, "b": 0.4}

    distances = write(tmp_path / "d.json", f'{{"q1": [{hits.replace("0.4", "0.9")}]}}')
    with pytest.raises(DataError, match=r"rank 2 has a higher score than rank 1, 0\.9 after 0\.5"):
        read_run(distances)

    missing = write(tmp_path / "m.json", '{"q1": [{"id": "a", "rank": 1}, {"id": "b"}]}')
    with pytest.raises(DataError, match="ranking: rank: expected a number, got None"):
        list(each_ranking(missing))


@pytest.mark.parametrize("n_queries", [3, 400])
def test_trec_run_of_distances_is_refused(tmp_path, n_queries):
    """It goes by its scores, so every ranking was turned over, and nothing was said."""
    lines = (f"q{n} Q0 d{rank} {rank} 0.{rank} x\n" for n in range(n_queries) for rank in (1, 2, 3))
    path = write(tmp_path / "r.trec", "".join(lines))

    match = r"r\.trec:2: query 'q0': rank 2 has a higher score than rank 1, 0\.2 .* negative"
    with pytest.raises(DataError, match=match):
        read_run(path)
    with pytest.raises(DataError, match=match):
        list(each_ranking(path))
    with pytest.raises(DataError, match=match):
        read_located(path, {"q0": {"d1": 1}})


@pytest.mark.parametrize(
    "text",
    [
        "q Q0 a 1 5 x\nq Q0 b 2 5 x\nq Q0 c 3 5 x\n",
        "".join(f"q Q0 {n} 0 {n} x\n" for n in range(9)),
        "".join(f"q Q0 {n} 1 {n // 2} x\n" for n in range(9)),
        "q Q0 a 1 9 x\nr Q0 b 2 12 x\n",
        "".join(f"q Q0 {n} {n} {n} x\n" for n in range(9)) + "r Q0 a 1 2 x\nr Q0 b 2 1 x\n",
        "q Q0 a 1 1 x\nq Q0 b 2 2 x\n",
        "".join(f"q Q0 {n} {9 - n} {n} x\n" for n in range(9)),
        "".join(f"q Q0 {n} - {n} x\n" for n in range(9)),
    ],
    ids=["ties", "rank 0", "rank 1", "queries", "one query", "few", "last first", "no ranks"],
)
def test_trec_run_whose_ranks_say_nothing_else_is_read(tmp_path, text):
    """trec_eval passes ranks over, and many tools write them as they please."""
    path = write(tmp_path / "r.trec", text)

    run = read_run(path).rankings

    assert sum(map(len, run.values())) == text.count("\n")
    assert read_located(path, {"q": {"a": 1}}) is not None


def test_hits_go_by_their_own_ids_beside_those_of_their_documents(tmp_path):
    """Two chunks of one document were refused as one that comes twice."""
    hits = [{"id": "c1", "doc_id": "a.md"}, {"id": "c2", "doc_id": "a.md"}]
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"query_id": "q1", "results": hits}), encoding="utf-8")

    assert read_run(path).rankings == {"q1": ["c1", "c2"]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.jsonl", '{"query_id": "q", "ranking": [["a", 1], ["c", 1], ["b", 1]]}\n'),
        ("columns.jsonl", '{"query_id": "q", "ids": ["a", "c", "b"], "scores": [1, 1, 1]}\n'),
        (
            "ranks.jsonl",
            '{"query_id": "q", "ranking": [{"id": "b", "rank": 3, "score": 1}, '
            '{"id": "a", "rank": 1, "score": 1}, {"id": "c", "rank": 2, "score": 1}]}\n',
        ),
        ("ranks.csv", "query_id,chunk_id,rank,score\nq,b,3,1\nq,a,1,1\nq,c,2,1\n"),
    ],
)
def test_scores_that_are_all_alike_leave_the_order_as_it_is_told(tmp_path, name, text):
    """A search that scores each match with 1 was ranked by ids: 0.88 in nDCG@10 came to 0.58."""
    path = write(tmp_path / name, text)

    assert list(read_run(path).rankings["q"]) == ["a", "c", "b"]
    assert not isinstance(read_run(path).rankings["q"], dict)


def test_scores_that_are_all_alike_and_ranks_too_go_by_id(tmp_path):
    """Nothing else is told; rows of a table have no order."""
    path = write(tmp_path / "r.csv", "query_id,chunk_id,rank,score\nq,b,0,1\nq,a,0,1\n")

    assert read_run(path).rankings["q"] == {"b": 1.0, "a": 1.0}
