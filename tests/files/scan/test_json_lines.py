import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.files.record_files import write_records
from ragforge.files.scan import Irregular, scan_json_lines_run
from ragforge.files.scan.parts import Sizes
from ragforge.records import Hit, Ranking

COMPACT, SPACED = (",", ":"), (", ", ": ")
OBJECTS = '{"query_id":"q1","ranking":[{"chunk_id":"a","score":3.5},{"chunk_id":"b","score":2}]}\n'
COLUMNS = '{"query_id":"q1","ids":["a","b"],"scores":[3.5,2]}\n'
OTHER = '{"query_id":"q2","ranking":[{"chunk_id":"a","score":1.5}]}\n'
QRELS = {"q1": {"a": 1, "b": None}, "q2": {"x": 2}}
RANKINGS = {"q1": {"a": 3.5, "b": 2.0}}

# Blanks around ids count, but an id has to hold more than blanks; no control characters.
ids = st.text("aé\u3000\u00a0 #-𝄞019[]{},:", min_size=1, max_size=20).filter(str.strip)
scores = st.one_of(st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False))
plain_ids = ids.filter(lambda text: not set(text) & set("[]{},:"))


def falling(ranking):
    return dict(sorted(ranking.items(), key=lambda item: item[1], reverse=True))


def runs(of_ids):
    rankings = st.dictionaries(of_ids, scores, max_size=12).map(falling)
    return st.dictionaries(of_ids, rankings, min_size=1, max_size=6)


def judgments(run):
    chunk_ids = sorted({chunk_id for ranking in run.values() for chunk_id in ranking} | {"0"})
    grades = st.one_of(st.none(), st.integers(-1, 3))
    judged = st.dictionaries(st.sampled_from(chunk_ids), grades, max_size=8)
    return st.dictionaries(st.sampled_from([*sorted(run), "other"]), judged)


def objects(query_id, ranking):
    hits = [{"chunk_id": chunk_id, "score": score} for chunk_id, score in ranking.items()]
    return {"query_id": query_id, "ranking": hits}


def columns(query_id, ranking):
    return {"query_id": query_id, "ids": list(ranking), "scores": list(ranking.values())}


def listed(run):
    """Return a run with other scores where all of a query are alike, which leave it to the list."""
    return {
        query_id: dict(zip(ranking, range(0, -len(ranking), -1), strict=True))
        if len(set(ranking.values())) == 1
        else ranking
        for query_id, ranking in run.items()
    }


def write(file, run, shape, separators):
    lines = (
        json.dumps(shape(*item), separators=separators, ensure_ascii=False) for item in run.items()
    )
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return file


def many(n_queries, n_chunks, seed):
    generator = random.Random(seed)
    return {
        str(query): falling(
            {str(chunk): generator.random() for chunk in generator.sample(range(10**7), n_chunks)}
        )
        for query in generator.sample(range(10**6), n_queries)
    }


def scan(text, tmp_path, n_threads=1, sizes=None):
    file = tmp_path / "r.jsonl"
    file.write_bytes(text.encode())
    return scan_json_lines_run(file, QRELS, n_threads=n_threads, sizes=sizes)


@pytest.mark.parametrize("text", [OBJECTS, COLUMNS])
def test_the_list_decides_where_all_scores_are_alike(text, tmp_path, hits):
    """One query without a match, all 0, had a file of 700,000 hits read in eight times the time."""
    found = scan(text.replace("3.5", "2") + text.replace("q1", "q3"), tmp_path)

    assert found.hits == hits(RANKINGS | {"q3": RANKINGS["q1"]}, QRELS)


def test_written_records_have_the_hits_of_the_line_reader(tmp_path, hits_in):
    """What ragforge writes has to be regular."""
    file, qrels = tmp_path / "r.jsonl", {"b": {"x": 1, "y": 2}, "c": {"x": 1}}
    hits = (Hit(chunk_id="y", score=12.25), Hit(chunk_id="x", score=1e-7))
    write_records(
        file,
        [
            Ranking(query_id="b", ranking=hits, latency_s=0.25),
            Ranking(query_id="a", ranking=hits[:1]),
            Ranking(query_id="c", ranking=()),
        ],
        lambda record: record.query_id,
    )
    found = scan_json_lines_run(file, qrels, n_threads=1)

    assert (found.hits, found.latencies_s) == (hits_in(file, qrels), {"b": 0.25})


@pytest.mark.slow
@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@given(data=st.data(), cut=st.sampled_from([16, 200, 1 << 19]), n_threads=st.integers(1, 3))
@settings(deadline=None)
def test_any_objects_have_their_hits(tmp_path_factory, data, cut, n_threads, separators, hits):
    """Order, ties, ids and scores of any kind must come out the same, wherever windows end."""
    run = data.draw(runs(plain_ids))
    qrels = data.draw(judgments(run))
    file = write(tmp_path_factory.mktemp("run") / "r.jsonl", run, objects, separators)
    found = scan_json_lines_run(file, qrels, n_threads=n_threads, sizes=Sizes(cut, cut))

    assert found.hits == hits(listed(run), qrels)


@pytest.mark.slow
@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@given(data=st.data(), cut=st.sampled_from([16, 200, 1 << 19]), n_threads=st.integers(1, 3))
@settings(deadline=None)
def test_any_columns_have_their_hits(tmp_path_factory, data, cut, n_threads, separators, hits):
    """Order, ties, ids and scores of any kind must come out the same, wherever windows end."""
    run = data.draw(runs(plain_ids))
    qrels = data.draw(judgments(run))
    file = write(tmp_path_factory.mktemp("run") / "r.jsonl", run, columns, separators)
    found = scan_json_lines_run(file, qrels, n_threads=n_threads, sizes=Sizes(cut, cut))

    assert found.hits == hits(listed(run), qrels)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [objects, columns])
@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@given(data=st.data())
@settings(deadline=None)
def test_brackets_and_commas_in_ids_never_mislead(tmp_path_factory, data, shape, separators, hits):
    """They may make a file irregular, but not give it other hits."""
    run = data.draw(runs(ids))
    qrels = data.draw(judgments(run))
    file = write(tmp_path_factory.mktemp("run") / "r.jsonl", run, shape, separators)
    try:
        found = scan_json_lines_run(file, qrels, n_threads=1).hits
    except Irregular:
        found = hits(listed(run), qrels)

    assert found == hits(listed(run), qrels)


@pytest.mark.parametrize("shape", [objects, columns])
def test_run_of_many_windows_has_its_hits(tmp_path, shape, hits):
    """Most of a large file is read by code that small files do not reach."""
    run = many(60, 300, seed=1)
    qrels = {query_id: dict.fromkeys(list(ranking)[::7], 1) for query_id, ranking in run.items()}
    file = write(tmp_path / "r.jsonl", run, shape, COMPACT)
    found = scan_json_lines_run(file, qrels, n_threads=2, sizes=Sizes(1 << 14, 1 << 16))

    assert found.hits == hits(listed(run), qrels)


def test_packed_run_is_read(tmp_path):
    """Runs are published packed."""
    file = tmp_path / "r.jsonl.gz"
    file.write_bytes(gzip.compress(OBJECTS.encode()))

    assert scan_json_lines_run(file, QRELS, n_threads=2).hits.by_query["q1"].ranks == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        OBJECTS,
        OBJECTS.rstrip("\n"),
        f"\n{OBJECTS}\n",
        OBJECTS.replace("query_id", "qid").replace("ranking", "results"),
        OBJECTS.replace("chunk_id", "docid").replace("docid", "doc_id"),
        OBJECTS.replace("score", "similarity"),
        OBJECTS.replace('"query_id"', '"query":"text, with {braces}: yes","tag":null,"query_id"'),
        OBJECTS.replace("]}", '],"meta":{"k":10}}'),
        OBJECTS.replace("}\n", ',"latency_s":null}\n'),
        OBJECTS.replace("3.5", "35e-1"),
        COLUMNS,
        COLUMNS.replace('"ids"', '"chunk_ids"'),
        COLUMNS.replace("]}", '],"tags":["x"]}'),
        COLUMNS.replace('"ids":["a","b"],"scores":[3.5,2]', '"scores":[3.5,2],"ids":["a","b"]'),
        COLUMNS.replace('"ids"', '"k":10,"ids"').replace('"scores"', '"run":"x","scores"'),
    ],
)
def test_line_of_known_fields_has_its_hits(tmp_path, text, hits):
    """Fields around the hits are those of the line readers."""
    assert scan(text, tmp_path).hits == hits(RANKINGS, QRELS)


@pytest.mark.parametrize(
    ("field", "latency_s"),
    [('"latency_s":0.25', 0.25), ('"latency_ms":250', 0.25), ('"latency_seconds":0', 0.0)],
)
def test_latency_is_read(tmp_path, field, latency_s):
    """Reports compare how long runs took."""
    text = OBJECTS.replace("]}", f"],{field}}}")

    assert scan(text, tmp_path).latencies_s == {"q1": latency_s}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        OBJECTS * 2,
        OBJECTS + OTHER + OBJECTS,
        OBJECTS + COLUMNS.replace("q1", "q2"),
        OBJECTS.replace("3.5", "1.5"),
        OBJECTS.replace("3.5", "NaN"),
        OBJECTS.replace("3.5", "Infinity"),
        OBJECTS.replace("3.5", "null"),
        OBJECTS.replace("3.5", "true"),
        OBJECTS.replace("3.5", '"3.5"'),
        OBJECTS.replace("3.5", "+3.5"),
        OBJECTS.replace("3.5", "03.5"),
        OBJECTS.replace("3.5", "3."),
        OBJECTS.replace("3.5", "3.e1"),
        OBJECTS.replace("3.5", "3_5"),
        OBJECTS.replace("3.5", "1" + "0" * 400),
        OBJECTS.replace(":2}", ":.5}"),
        OBJECTS.replace(":2}", ":-}"),
        OBJECTS.replace(":2}", ":2.5.5}"),
        OBJECTS.replace(":2}", ":}"),
        OBJECTS.replace('"b"', '"a"'),
        OBJECTS.replace('"b"', '""'),
        OBJECTS.replace('"b"', '" \u3000"'),
        OBJECTS.replace('"b"', '"\\u0062"'),
        OBJECTS.replace('"b"', '"b}"'),
        OBJECTS.replace('"b"', '"b\t"'),
        OBJECTS.replace('"b"', '"b\0"'),
        OBJECTS.replace('"b"', '"\ufeffb"'),
        OBJECTS.replace('"b"', "7"),
        OBJECTS.replace("},{", "},\r{"),
        OBJECTS.replace("},{", "},,{"),
        OBJECTS.replace("},{", "}{"),
        OBJECTS.replace("}]", "},]"),
        OBJECTS.replace("}]", "}"),
        OBJECTS.replace("}]", "},7]"),
        OBJECTS.replace("}]", "}]]"),
        OBJECTS.replace("]}\n", "]\n"),
        OBJECTS.replace("]}", "]}}"),
        OBJECTS.replace("2}]", '2,"rank":2}]'),
        OBJECTS.replace('"score":2', '"quote":2'),
        OBJECTS.replace('"score"', '"label"'),
        OBJECTS.replace('"chunk_id"', '"text"'),
        OBJECTS.replace('"chunk_id":"b","score":2', '"score":2,"chunk_id":"b"'),
        OBJECTS.replace('"query_id":"q1"', '"query_id":""'),
        OBJECTS.replace('"query_id":"q1",', ""),
        OBJECTS.replace('"query_id":"q1"', '"query_id":"q1","query_id":"q2"'),
        OBJECTS.replace('"ranking"', '"tags":["x"],"ranking"'),
        OBJECTS.replace("}]}", '}],"tags":["x"]}'),
        OBJECTS.replace("}]}", '}],"tags":[]}'),
        OBJECTS.replace('"ranking"', '"tags"'),
        OBJECTS.replace("}]}", '}],"results":null}'),
        OBJECTS.replace('"ranking":', '"nested":{"ranking":').replace("]}", "]}}"),
        OBJECTS.replace("}]}", '}],"latency_s":-1}'),
        OBJECTS.replace("}]}", '}],"latency_s":true}'),
        OBJECTS.replace("}]}", '}],"latency_s":"soon"}'),
        "\ufeff" + OBJECTS,
        f"[{OBJECTS}]",
        COLUMNS.replace("[3.5,2]", "[3.5]"),
        COLUMNS.replace("[3.5,2]", "[3.5,2,1]"),
        COLUMNS.replace("[3.5,2]", "[]"),
        COLUMNS.replace("[3.5,2]", "[3.5,]"),
        COLUMNS.replace("[3.5,2]", "[3.5;2]"),
        COLUMNS.replace("[3.5,2]", "[1.5,2]"),
        COLUMNS.replace("[3.5,2]", "[3.5,null]"),
        COLUMNS.replace("[3.5,2]", "[3.5,02]"),
        COLUMNS.replace('["a","b"]', "[]"),
        COLUMNS.replace('["a","b"]', '["a","a"]'),
        COLUMNS.replace('["a","b"]', '["a" "b"]'),
        COLUMNS.replace('["a","b"]', '["a,b"]'),
        COLUMNS.replace('["a","b"]', '["a","b""]'),
        COLUMNS.replace('["a","b"]', '["a",""]'),
        COLUMNS.replace('["a","b"]', '["a"," "]'),
        COLUMNS.replace('["a","b"]', '["a",b]'),
        COLUMNS.replace('["a","b"]', '["a",["b"]]'),
        COLUMNS.replace('"scores"', '"chunk_ids"'),
        COLUMNS.replace(',"scores":[3.5,2]', ""),
        COLUMNS.replace("]}", '],"ranking":null}'),
    ],
)
def test_what_the_line_reader_refuses_or_reads_otherwise_is_irregular(tmp_path, text):
    """Only the line reader can say which line is wrong."""
    with pytest.raises(Irregular, match=r"^$"):
        scan(text, tmp_path)


def test_query_that_comes_twice_is_irregular_in_another_part(tmp_path):
    """Each thread has seen it once."""
    text = "".join(COLUMNS.replace("q1", f"q{n}") for n in [*range(100), 5])

    with pytest.raises(Irregular, match=r"^$"):
        scan(text, tmp_path, n_threads=2, sizes=Sizes(100, 500))
