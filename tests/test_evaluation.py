import gzip
import json
from collections import defaultdict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest

import ragforge
from ragforge.errors import DataError
from ragforge.records import Hit, Judgment, Ranking

QRELS = {"1": {"a": 3, "b": 0, "c": 1}, "2": {"d": 2}}
RUN = {"1": {"b": 3.0, "a": 2.0, "x": 1.0}, "2": {"d": 0.5}}
MEASURES = ["nDCG@10", "RR", "P@2"]
TRIPLES = [(q, c, value) for q, chunks in RUN.items() for c, value in chunks.items()]
GRADED = [(q, c, grade) for q, chunks in QRELS.items() for c, grade in chunks.items()]

ScoredDoc = namedtuple("ScoredDoc", ["query_id", "doc_id", "score"])


@dataclass(frozen=True, slots=True)
class Retrieved:
    qid: str
    docno: str
    score: float


class Frame:
    """What pandas and polars have in common."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self._values = columns

    def __getitem__(self, name):
        return Column(self._values[name])


class Column:
    def __init__(self, values):
        self._values = values

    def to_list(self):
        return self._values


class Index:
    def __init__(self, *names, labels=()):
        self.names, self.name = names, names[0]
        self._labels = labels

    def __iter__(self):
        return iter(self._labels)


class Series(Column):
    """A series of pandas."""

    def __init__(self, values, index=None, name=None):
        super().__init__(values)
        self.index = Index(name, labels=range(len(values)) if index is None else index)

    def __iter__(self):
        return iter(self._values)

    def items(self):
        return zip(self.index, self._values, strict=True)

    def reset_index(self):
        raise NotImplementedError


class Indexed(Frame):
    """A frame of pandas with a column for its index."""

    def __init__(self, index, **columns):
        super().__init__(**columns)
        self.index = Index(index)
        self.columns = [name for name in columns if name != index]

    def reset_index(self, level):
        assert level == list(self.index.names)
        return Frame(**self._values)


def columns(rows, *names):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def by_row(table):
    """Return columns as `to_dict` of pandas has them: values by index."""
    return {name: dict(enumerate(column)) for name, column in table.items()}


def values(qrels, run, **options):
    return ragforge.evaluate(qrels, run, MEASURES, **options).per_query


EXPECTED = values(QRELS, RUN)


@pytest.mark.parametrize(
    "run",
    [
        {"1": ["b", "a", "x"], "2": ["d"]},
        {"1": np.array(["b", "a", "x"]), "2": ("d",)},
        {"1": [("b", 3.0), ("a", 2.0), ("x", 1.0)], "2": [("d", 0.5)]},
        {"1": [{"id": "b", "score": 3}, {"id": "a", "score": 2}], "2": [{"id": "d"}]},
        MappingProxyType({"1": MappingProxyType(RUN["1"]), "2": RUN["2"]}),
        defaultdict(dict, RUN),
        TRIPLES,
        iter(TRIPLES),
        [ScoredDoc(*row) for row in TRIPLES],
        [Retrieved(*row) for row in TRIPLES],
        [{"query_id": q, "chunk_id": c, "score": s} for q, c, s in TRIPLES],
        [
            Ranking(query_id=q, ranking=tuple(Hit(chunk_id=c, score=s) for c, s in chunks.items()))
            for q, chunks in RUN.items()
        ],
        [{"query_id": "1", "retrieved_ids": ["b", "a", "x"]}, {"id": "2", "retrieved_ids": ["d"]}],
        columns(TRIPLES, "query_id", "doc_id", "score"),
        Frame(**columns(TRIPLES, "qid", "docno", "score")),
        Frame(query_id=["1", "2"], retrieved=[["b", "a", "x"], ["d"]]),
        np.array(TRIPLES, dtype=[("query_id", "U8"), ("chunk_id", "U8"), ("score", "f8")]),
        columns([(q, c, str(s)) for q, c, s in TRIPLES], "query_id", "chunk_id", "score"),
        columns([(q, c, str(9 - s)) for q, c, s in TRIPLES], "query_id", "chunk_id", "rank"),
        {"query_id": ["1", "2"], "ranking": [("b", "a", "x"), np.array(["d"])]},
        columns(TRIPLES, "query_id", "chunk_id", "score") | {f"f{i}": [0] * 4 for i in range(136)},
        by_row(columns(TRIPLES, "query_id", "chunk_id", "score")),
        {"1": Series(["b", "a", "x"]), "2": Series([0.5], index=["d"])},
        {"1": Series(["b", "a", "x"], name="rank"), "2": Series(["d"], index=["first"])},
        {"1": Frame(chunk_id=["b", "a", "x"], score=[3.0, 2.0, 1.0]), "2": Frame(docno=["d"])},
        Indexed("query_id", **columns(TRIPLES, "query_id", "chunk_id", "score")),
    ],
)
def test_a_run_may_come_in_any_shape_that_names_its_parts(run):
    """Whoever has results in memory should not have to write them to a file first."""
    assert values(QRELS, run) == EXPECTED


@pytest.mark.parametrize(
    "qrels",
    [
        GRADED,
        [Judgment(query_id=q, chunk_id=c, grade=g) for q, c, g in GRADED],
        [{"qid": q, "docno": c, "rel": g} for q, c, g in GRADED],
        columns(GRADED, "query_id", "chunk_id", "grade"),
        Frame(**columns([(q, c, float(g)) for q, c, g in GRADED], "query_id", "chunk_id", "grade")),
        np.array(GRADED, dtype=[("query_id", "U8"), ("chunk_id", "U8"), ("grade", "i8")]),
        columns([(q, c, str(g)) for q, c, g in GRADED], "query_id", "chunk_id", "grade"),
        by_row(columns(GRADED, "query_id", "chunk_id", "grade")),
        {q: Series([*of.values()], index=[*of], name="chunk_id") for q, of in QRELS.items()},
        {q: Frame(chunk_id=[*of], grade=[*of.values()]) for q, of in QRELS.items()},
        Indexed("query_id", **columns(GRADED, "query_id", "chunk_id", "grade")),
    ],
)
def test_qrels_may_come_in_any_shape_that_names_its_parts(qrels):
    """The same holds for judgments."""
    assert values(qrels, RUN) == EXPECTED


@pytest.mark.parametrize("relevant", [{"a", "c"}, ["a", "c"], ("c", "a")])
def test_relevant_ids_without_grades_are_binary_qrels(relevant):
    """Golden sets often say which chunks are relevant, and no more."""
    assert values({"1": relevant}, RUN) == values({"1": {"a": 1, "c": 1}}, RUN)


def test_records_may_hold_their_relevant_ids_in_a_set():
    """A set is how Python code keeps ids without an order."""
    records = [{"query_id": "1", "relevant": {"a", "c"}}]

    assert values(records, RUN) == values({"1": {"a": 1, "c": 1}}, RUN)


@pytest.mark.parametrize("name", ["queries", "test_cases", "data"])
def test_what_a_file_holds_may_be_given_as_it_was_loaded(name):
    """Whoever loads the file first must not get 0 for one query called "queries"."""
    loaded = {"version": 2, name: [{"id": "1", "query": "?", "relevant_doc_ids": ["a", "c"]}]}

    assert values(loaded, RUN) == values({"1": ["a", "c"]}, RUN)


def test_a_run_may_be_given_as_it_was_loaded():
    """The same holds for what was retrieved."""
    loaded = {"results": [{"id": "1", "retrieved_docs": ["b", "a"]}]}

    assert values(QRELS, loaded) == values(QRELS, {"1": ["b", "a"]})


@pytest.mark.parametrize(
    "run",
    [
        {"1": {"a", "b"}},
        {"1": frozenset("ab")},
        [{"query_id": "1", "ranking": {"a", "b"}}],
        {"results": [{"id": "1", "retrieved_docs": {"a", "b"}}]},
    ],
)
def test_a_run_of_sets_is_refused(run):
    """A set has no order; any that is made up gives numbers for another ranking."""
    with pytest.raises(DataError, match="expected chunk ids in their order, got a set"):
        ragforge.evaluate(QRELS, run)


def test_public_names_are_listed_before_they_are_used():
    """Completion in a notebook shows what there is."""
    assert set(ragforge.__all__) <= set(dir(ragforge))


def test_whole_numbers_are_ids_like_their_digits():
    """Tables and vector stores number their rows; files hold the digits."""
    qrels = {1: {10: 2, 9: 0}}

    assert values(qrels, {1: {10: 1.0, 9: 1.0}}) == values(
        {"1": {"10": 2, "9": 0}}, {"1": {"10": 1.0, "9": 1.0}}
    )


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ({"1": {"a": 1}, "2": {"10": 1}}, {"1": {"a": 1.0}, "2": {10: 1.0}}),
        ({"1": {"a": 1}, "2": {"10": 1}}, {"0": {}, "1": ["a"], "2": {np.int64(10): 1.0}}),
        ({"1": {"a": 1}, "2": {10: 1}}, {"1": {"a": 1.0}, "2": {"10": 1.0}}),
        ({"1": {"a": 1}, "2": {10: 1}}, {"1": {"a": 1.0}, 2: [10]}),
    ],
)
def test_whole_numbers_are_ids_in_any_query(qrels, run):
    """Merged results are of mixed types, and an id that matches nothing scores 0 in silence."""
    assert ragforge.evaluate(qrels, run, ["RR"]).values("RR") == (1.0, 1.0)


def test_numpy_numbers_are_ids_too():
    """That is what an index returns."""
    run = {np.int64(1): np.array([9, 10])}

    assert values({"1": {"10": 2}}, run) == values({"1": {"10": 2}}, {"1": ["9", "10"]})


def test_ranks_in_the_order_of_scores_are_taken():
    """A frame of PyTerrier has both, and ranks from 0."""
    run = columns(TRIPLES, "query_id", "chunk_id", "score") | {"rank": [0, 1, 2, float("nan")]}

    assert values(QRELS, run) == EXPECTED


def test_a_docid_beside_a_docno_is_its_number_in_an_index():
    """As in results of PyTerrier, which found nothing: their qrels are by `docno`."""
    run = columns(TRIPLES, "qid", "docno", "score") | {"docid": [17, 4, 9, 2]}
    rows = [dict(zip(run, row, strict=True)) for row in zip(*run.values(), strict=True)]

    assert values(QRELS, run) == values(QRELS, rows) == EXPECTED


def test_ranks_of_a_frame_decide_where_all_scores_are_alike():
    """As in a file: by the ids `b` was first, and the search that only matches had an RR of 1."""
    run = {"query_id": ["1"] * 2, "chunk_id": ["b", "a"], "score": [0, 0], "rank": [2, 1]}

    assert ragforge.evaluate({"1": {"b": 1}}, run, "RR").mean("RR") == 0.5


def test_null_for_a_grade_is_a_failed_judgment_whatever_stands_beside_it():
    """The score of a retriever, or what another said, was taken for the grade."""
    record = {"query_id": "1", "chunk_id": "a", "grade": None, "score": 3}
    qrels = [record, record | {"chunk_id": "b", "grade": 0}]

    summary = ragforge.evaluate(qrels, {"1": ["a"]}, "RR").summary("RR")

    assert (summary.low, summary.high, summary.n_failed) == (0.0, 1.0, 1)


def test_nan_in_a_column_of_grades_is_a_failed_judgment():
    """Frames have no other way to say that a grade is missing."""
    qrels = {"query_id": ["1", "1"], "chunk_id": ["a", "b"], "grade": [3.0, float("nan")]}

    scores = ragforge.evaluate(qrels, RUN, ["P@1"])

    assert (scores.summary("P@1").low, scores.summary("P@1").high) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["run.trec", "run.trec.gz", "run.jsonl"])
def test_paths_are_read(tmp_path, name):
    """The file that a retriever wrote is the commonest input of all."""
    text = "".join(f"{q} Q0 {c} 1 {score} t\n" for q, c, score in TRIPLES)
    if name.endswith("jsonl"):
        text = "".join(
            json.dumps({"query_id": q, "chunk_id": c, "score": score}) + "\n"
            for q, c, score in TRIPLES
        )
    file = tmp_path / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    qrels = tmp_path / "qrels.trec"
    qrels.write_text("".join(f"{q} 0 {c} {grade}\n" for q, c, grade in GRADED))

    assert values(str(qrels), file) == EXPECTED


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (7, "run: expected a mapping by query id, records .* or a path, got 7"),
        ([7], "run: item 1: expected a record, got 7"),
        ({"1": "abc"}, "run: '1': expected chunk ids, or a mapping of them, got 'abc'"),
        ({"1": {(1, 2): 1.0}}, r"run: '1': id: expected text or a whole number, got \(1, 2\)"),
        ({1.5: {"a": 1.0}}, "run: id: expected text or a whole number, got 1.5"),
        ([("1", "a", 1.0), ("1", "a", 2.0)], "run: item 2: query '1': chunk 'a' comes twice"),
        (
            {"query_id": ["1", "1"], "chunk_id": ["a", "a"], "score": [1.0, 2.0]},
            "run: row 2: query '1': chunk 'a' comes twice",
        ),
        (
            {"query_id": ["1"], "chunk_id": ["a", "b"], "score": [1.0]},
            "run: the columns query_id, chunk_id, score differ in length",
        ),
        (
            {"query_id": ["1"] * 2, "chunk_id": ["a", "b"], "score": [0.1, 0.9], "rank": [1, 2]},
            "run: row 2: query '1': rank 2 has a higher score than rank 1, .* distances",
        ),
        (
            {"query_id": ["1"], "chunk_id": ["a"], "score": [0.1], "rank": ["first"]},
            "run: row 1: rank: expected a number, got 'first'",
        ),
        (
            {"query_id": ["1"] * 2, "chunk_id": ["a", "b"], "score": [1, None], "rank": [1, 2]},
            "run: query '1': chunk 'b': score: expected a number, got None",
        ),
        (
            {"query_id": ["1"] * 2, "chunk_id": ["a", "b"], "score": [1, 0], "rank": [1]},
            "run: the columns query_id, chunk_id, rank differ in length",
        ),
        (
            {"train": Frame(**columns(TRIPLES, "query_id", "chunk_id", "score"))},
            "run: 'train': query_id: expected 'train', got '1'",
        ),
        ([("1", "a", "high")], "run: item 1: score: expected a number, got 'high'"),
        ([{"query_id": "1"}], "run: has none of the shapes accepted"),
        ({}, "run: expected at least one query, got none"),
        ([], "run: holds no ranking; expected at least one"),
    ],
)
def test_what_is_no_run_is_refused(run, message):
    """A wrong guess would give numbers for something else."""
    with pytest.raises(DataError, match=message):
        ragforge.evaluate(QRELS, run)


@pytest.mark.parametrize("padding", [0, 9 << 20])
def test_a_failure_in_a_file_is_no_ranking_of_nothing(tmp_path, padding):
    """A retriever that was down for a second is not one that finds nothing."""
    rows = [
        {"query_id": "1", "ranking": [{"chunk_id": "a", "score": 1.0}], "error": None},
        {"query_id": "2", "ranking": [], "error": "timeout"},
        {"query_id": "3", "ranking": None},
        {"query_id": "4", "ranking": []},
        {"query_id": "pad", "ranking": [], "text": "x" * padding},
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    qrels = {name: {"a": 1} for name in "1234"}

    scores = ragforge.evaluate(qrels, path, ["RR"])

    summary = scores.summary("RR")
    assert (summary.mean, summary.low, summary.high) == (0.5, 0.25, 0.75)
    assert ragforge.evaluate(qrels, path, ["RR"], failed=["4"]).mean("RR") == 1.0


@pytest.mark.parametrize("failed", [[2], ["2"], {2}, np.array([2])], ids=repr)
def test_failed_queries_are_named_by_number_or_text(failed):
    """A failure counted as 0 where its id was a number, as those of qrels and run may be."""
    scores = ragforge.evaluate(
        {1: {"a": 1}, 2: {"a": 1}}, {1: ["a"], 2: ["b"]}, "RR", failed=failed
    )

    summary = scores.summary("RR")
    assert (summary.mean, summary.n, summary.n_failed) == (1.0, 1, 1)


@pytest.mark.parametrize("run", [{"10": 9.0, 10: 1.0}, {10: 9.0, "10": 1.0}])
def test_an_id_as_text_and_as_number_is_one_id(run):
    """One grade of two won without a word."""
    with pytest.raises(DataError, match="'10' comes twice"):
        ragforge.evaluate({"q": {10: 3, "10": 0}}, {"q": ["10"]}, "RR")
    with pytest.raises(DataError, match="'10' comes twice"):
        ragforge.evaluate({"q": {"a": 1}}, {"q": {1: 1.0} | run}, "RR")


def test_one_measure_may_be_given_as_text():
    """A list of one is easily forgotten."""
    assert ragforge.evaluate(QRELS, RUN, "MRR").measures == ("RR",)


def test_only_retrieved_leaves_out_what_the_run_lacks():
    """A smoke test of ten queries is not to be measured on a thousand."""
    scores = ragforge.evaluate(QRELS, {"2": ["d"]}, ["RR"], only_retrieved=True)

    assert (scores.query_ids, scores.mean("RR"), scores.missing_from_run) == (("2",), 1.0, ("1",))


def test_pandas_frames_are_taken_and_given():
    """Notebooks speak in frames."""
    pd = pytest.importorskip("pandas")
    run = pd.DataFrame(TRIPLES, columns=["query_id", "chunk_id", "score"])

    frame = ragforge.evaluate(QRELS, run, MEASURES).to_pandas()

    assert frame.to_dict(orient="index") == EXPECTED
    assert values(QRELS, run.set_index("query_id")) == EXPECTED
    assert values(QRELS, run.set_index("query_id", drop=False)) == EXPECTED
    assert values(QRELS, run.set_index(["query_id", "chunk_id"])) == EXPECTED


def test_polars_frames_are_taken_and_given():
    """Notebooks speak in frames."""
    pl = pytest.importorskip("polars")
    run = pl.DataFrame(columns(TRIPLES, "query_id", "chunk_id", "score"))

    frame = ragforge.evaluate(QRELS, run, MEASURES).to_polars()

    assert {row.pop("query_id"): row for row in frame.to_dicts()} == EXPECTED


def test_lazy_frames_of_polars_are_taken():
    """Pipelines of polars end in one; it ended in an error about subscripts."""
    pl = pytest.importorskip("polars")
    qrels = pl.LazyFrame({"query_id": ["a", "a"], "doc_id": ["x", "y"], "grade": [1, 0]})
    run = pl.DataFrame({"query_id": ["a", "a"], "doc_id": ["y", "x"], "score": [2.0, 1.0]})

    values = {
        ragforge.evaluate(qrels, run, ["RR"]).mean("RR"),
        ragforge.evaluate(qrels.collect(), run.lazy(), ["RR"]).mean("RR"),
    }

    assert values == {0.5}


def test_a_long_id_is_cut_in_a_warning():
    """An id of fifty megabytes must not fill the log of a nightly job."""
    scores = ragforge.evaluate({"q": {"c" * 500: 1}}, {"q": ["d"]}, ["RR"])

    assert max(map(len, scores.warnings)) < 250
