"""What a judge graded, and what others wrote into the set meanwhile."""

import pytest

from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.judge.judge_run import judged_spool
from ragforge.pipeline.judge.judged_pairs import JudgedPairs
from ragforge.records import Chunk, Failure, Judgment, Provenance, Query
from ragforge.stages.judge.pairs import Pair

JUDGE = Provenance(kind="llm", model="judge", prompt="p", prompt_sha256="a" * 64)


def graded(query_id, chunk_id, grade, source="judge", by=JUDGE):
    failure = "error" if grade is None else None
    fields = {"grade": grade, "source": source, "provenance": by, "failure": failure}
    return Judgment(query_id=query_id, chunk_id=chunk_id, **fields)


def by_ann(query_id, chunk_id, grade):
    return graded(query_id, chunk_id, grade, "human", Provenance(kind="human", model="Ann"))


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(Chunk(chunk_id=name, doc_id="d", text=f"Of {name}.") for name in "ab")
    made.write_queries(Query(query_id=name, query=f"What is {name}?") for name in ("q1", "q2"))
    return made


@pytest.fixture
def write(dataset):
    """Judge all pairs 1, while something else is done to the set."""

    def act(meanwhile, grade=1):
        kept, told = JudgedPairs(dataset), []
        pairs = [Pair(q, f"What is {q}?", c, "") for q in ("q1", "q2") for c in "ab"]
        with judged_spool(dataset.files) as judged:
            for pair in kept.shown(pairs):
                judged.result(graded(pair.query_id, pair.chunk_id, grade))
                if grade is None:
                    key = f"{pair.query_id}/{pair.chunk_id}"
                    judged.failure(Failure(what="judge", key=key, kind="error", message="no"))
            meanwhile()
            kept.write(judged, lambda event: told.append(event.message), failures_alone=False)
        return told

    return act


def grades(dataset):
    return {(one.query_id, one.chunk_id): (one.source, one.grade) for one in dataset.judgments()}


def test_what_a_person_graded_meanwhile_stands(dataset, write):
    """A judge that had begun before took it out of every file."""
    told = write(lambda: dataset.add_judgments(iter([by_ann("q1", "a", 3)])))

    assert grades(dataset)["q1", "a"] == ("human", 3)
    assert grades(dataset)["q1", "b"] == ("judge", 1)
    [check] = dataset.label_checks()
    assert (check.chunk_id, check.grade, check.provenance) == ("a", 1, JUDGE)
    assert "1 pair graded by people meanwhile" in told[0]


def test_grades_of_other_words_are_of_no_query(dataset, write):
    """The edited question had grades of what it no longer asks, and nothing was left to judge."""
    edited = [Query(query_id="q1", query="Who is it?"), Query(query_id="q2", query="What is q2?")]

    told = write(lambda: dataset.write_queries(edited))

    assert set(grades(dataset)) == {("q2", "a"), ("q2", "b")}
    assert "1 query asks something else than the judge was asked" in told[0]


def test_failures_of_what_does_not_stand_are_left_out_too(dataset, write):
    """They would be judged again under words that nobody failed on."""

    def meanwhile():
        dataset.add_judgments(iter([by_ann("q2", "a", 0)]))
        dataset.write_queries([Query(query_id="q2", query="What is q2?")])

    write(meanwhile, grade=None)

    assert [one.key for one in dataset.failures()] == ["q2/b"]
    assert grades(dataset) == {("q2", "a"): ("human", 0), ("q2", "b"): ("judge", None)}
    assert dataset.label_checks() == []


def test_nothing_is_told_where_nobody_was_beside(dataset, write):
    """The usual run."""
    assert write(lambda: None) == []
    assert len(grades(dataset)) == 4


def test_checks_of_other_words_are_left_out_and_those_of_others_stay(dataset):
    """Who labels and edits while a judge is held against him loses nothing, and gains no lie."""
    kept, told = JudgedPairs(dataset), []
    other = JUDGE.model_copy(update={"model": "other"})
    with judged_spool(dataset.files) as judged:
        for pair in kept.shown(Pair(q, f"What is {q}?", "a", "") for q in ("q1", "q2")):
            judged.result(graded(pair.query_id, pair.chunk_id, 1))
        dataset.write_label_checks([graded("q2", "a", 3, by=other), graded("q2", "a", 0)])
        dataset.write_queries([Query(query_id="q1", query="Who?"), *list(dataset.queries())[1:]])
        kept.write_checks(
            judged, lambda event: told.append(event.message), lambda one: one.provenance == JUDGE
        )

    checks = [(one.query_id, one.grade, one.provenance.model) for one in dataset.label_checks()]
    assert checks == [("q2", 1, "judge"), ("q2", 3, "other")]
    assert told == ["1 query asks something else than the judge was asked: left out; judge again"]
