import math
from types import SimpleNamespace

import numpy as np
import pytest

from ragforge.errors import DataError
from ragforge.records import Hit
from ragforge.retrieval.user_retrievers import ResultReader


@pytest.fixture
def notes():
    return []


@pytest.fixture
def reader(chunks, notes):
    corpus = chunks(a="About apples.", b="About\n\nbananas.")
    return ResultReader("it", corpus, notes.append)


def document(text="other", id=None, **metadata):
    """What LangChain returns."""
    return SimpleNamespace(page_content=text, metadata=metadata, id=id)


def node(score, text="other", id_="0b5e", **metadata):
    """What LlamaIndex returns."""
    inner = SimpleNamespace(id_=id_, node_id=id_, text=text, metadata=metadata)
    return SimpleNamespace(node=inner, score=score)


@pytest.mark.parametrize(
    "result",
    [
        ["b", "a"],
        ("b", "a"),
        iter(["b", "a"]),
        [{"chunk_id": "b"}, {"id": "a"}],
        [{"chunkId": "b"}, {"_id": "a"}],
        {"hits": ["b", "a"]},
        {"results": [{"id": "b"}, {"id": "a"}]},
        {"documents": ["b", "a"]},
        {"hits": {"hits": [{"_id": "b"}, {"_id": "a"}]}},
        [document(chunk_id="b"), document(id="a")],
        [document(id="0b5e", chunk_id="b"), document(text=" About  apples. ")],
        [node(None, chunk_id="b"), node(None, id_="a")],
        [node(None, text="About bananas."), node(None, text="About apples.")],
        [{"page_content": "About bananas.", "metadata": {}, "id": None}, "About apples."],
    ],
)
def test_results_are_read_by_their_shape(reader, result):
    """Whoever has a retriever has one of these, and should not have to rewrite it."""
    assert reader.read(result, "q", 10) == [
        Hit(chunk_id="b", score=1),
        Hit(chunk_id="a", score=1 / 2),
    ]


@pytest.mark.parametrize(
    "result",
    [
        [Hit(chunk_id="b", score=3), Hit(chunk_id="a", score=0.5)],
        [("b", 3), ("a", 0.5)],
        [["b", np.float32(3)], ["a", np.float64(0.5)]],
        [{"chunk_id": "b", "score": 3}, {"chunk_id": "a", "score": 0.5}],
        [(document(chunk_id="b"), 3), (document(id="a"), 0.5)],
        [node(3, chunk_id="b"), node(0.5, id_="a")],
        [{"_id": "b", "_score": 3}, {"_id": "a", "_score": 0.5}],
    ],
)
def test_falling_scores_are_kept(reader, result):
    """Fusion and thresholds need the scores the retriever gave."""
    assert reader.read(result, "q", 10) == [
        Hit(chunk_id="b", score=3),
        Hit(chunk_id="a", score=0.5),
    ]


def test_the_order_of_equal_scores_is_kept(reader, notes):
    """Ties are read by id, which would shuffle the results of a retriever that scores all alike."""
    hits = reader.read([("a", 0.0), ("b", 0.0)], "q", 10)

    assert hits == [Hit(chunk_id="a", score=1), Hit(chunk_id="b", score=1 / 2)]
    assert notes == []


def test_rising_scores_do_not_reverse_the_order(reader, notes):
    """Distances rise from best to worst; sorting by them would evaluate the worst first."""
    hits = reader.read([("b", 0.1), ("a", 0.7)], "which?", 10)

    assert [hit.chunk_id for hit in hits] == ["b", "a"]
    assert notes == [
        "it: scores rise along the result for the query 'which?'; its order counts, best first, "
        "and its scores do not (said once)"
    ]


def test_scores_that_are_partly_missing_are_not_mixed_with_ranks(reader):
    """A score and a reciprocal rank cannot be compared."""
    hits = reader.read([("b", 0.9), "a"], "q", 10)

    assert [hit.score for hit in hits] == [1, 1 / 2]


def test_more_than_k_results_are_cut(reader):
    """The measures of a run assume that all queries were asked for the same depth."""
    assert [hit.chunk_id for hit in reader.read(["a", "b", "c"], "q", 2)] == ["a", "b"]


def test_the_first_place_of_a_chunk_counts_and_the_user_is_told_once(reader, notes):
    """A chunk counted twice would raise recall above what was found."""
    hits = reader.read(["b", "b", "a"], "q1", 2)
    reader.read(["a", "a"], "q2", 2)

    assert [hit.chunk_id for hit in hits] == ["b", "a"]
    assert notes == [
        "it: chunk 'b' comes twice for the query 'q1'; its first place counts (said once)"
    ]


@pytest.mark.parametrize("item", ["z", ("z", 1), {"id": "z"}, document(id="z"), node(1, id_="z")])
def test_unknown_ids_are_kept(reader, item):
    """The evaluation reports them; dropping them would hide an index of another corpus."""
    assert reader.read([item], "q", 10) == [Hit(chunk_id="z", score=1)]


def test_a_known_id_is_preferred_to_one_the_framework_made(reader):
    """Vector stores give documents ids of their own beside those of the corpus."""
    item = SimpleNamespace(id="0b5e", payload={"id": "a"})

    assert reader.read([item], "q", 10) == [Hit(chunk_id="a", score=1)]


def test_numbers_are_ids(chunks):
    """Many corpora number their chunks."""
    reader = ResultReader("it", chunks(**{"7": "seven"}))

    assert reader.read([7, np.int64(8)], "q", 10) == [
        Hit(chunk_id="7", score=1),
        Hit(chunk_id="8", score=1 / 2),
    ]


class Frame:
    """A data frame as far as its columns are needed."""

    columns = ("id", "score")

    def __getitem__(self, name):
        return np.array({"id": ["b", "a"], "score": [0.9, 0.5]}[name])


@pytest.mark.parametrize(
    ("result", "scores"),
    [
        (np.array(["b", "a"]), [1, 1 / 2]),
        (Frame(), [0.9, 0.5]),
        (np.array([("b", 0.9), ("a", 0.5)], dtype=[("id", "U1"), ("score", "f8")]), [0.9, 0.5]),
    ],
)
def test_arrays_and_frames_are_results(reader, result, scores):
    """A notebook has ids in an array, sorted by similarity, and a vector store gives frames."""
    assert reader.read(result, "q", 10) == [
        Hit(chunk_id=chunk_id, score=score) for chunk_id, score in zip("ba", scores, strict=True)
    ]


def test_a_matrix_is_no_result(reader):
    """Its first row would be the hits of one query, or an id with a score."""
    with pytest.raises(DataError, match=r"type numpy\.ndarray; expected a list"):
        reader.read(np.array([["b", "a"]]), "q", 10)


def test_an_empty_list_is_a_result(reader):
    """Finding nothing is not a failure."""
    assert reader.read([], "q", 10) == []


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "result is of type NoneType; expected a list, best first"),
        ({"a"}, "result is of type set"),
        ("a", "result is of type str"),
        ({"a": 0.5}, "mapping with 'a'; expected a list under one of hits, results"),
        ([object()], r"cannot tell which chunk <object .* \(type object\) is; expected a chunk id"),
        ([None], r"None \(type NoneType\)"),
        ([0.5], r"0.5 \(type float\)"),
        ([True], r"True \(type bool\)"),
        ([""], r"'' \(type str\)"),
        ([{"title": "x"}], r"\(type dict\)"),
        ([document()], r"\(type types.SimpleNamespace\) is; .*LangChain"),
        ([(0.5, "a")], r"0.5 \(type float\)"),
        ([("a", "high")], r"score 'high' \(type str\); expected a finite number"),
        ([("a", math.nan)], "score nan"),
        ([{"id": "a", "score": math.inf}], "score inf"),
        ([("a", np.array([1, 2]))], "type numpy.ndarray"),
    ],
)
def test_what_cannot_be_read_is_named(reader, result, message):
    """A result that is silently empty would be scored as a retriever that finds nothing."""
    with pytest.raises(DataError, match=message):
        reader.read(result, "q", 10)
