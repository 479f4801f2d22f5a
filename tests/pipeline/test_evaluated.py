"""The record of an evaluation says what was measured, on what, by whom."""

from measured_set import make_measured_set
from ranked_sets import FAILED, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.files.manifest import digest_file
from ragforge.pipeline.evaluated import evaluate_runs, item_digests, sealed
from ragforge.records import Evidence, Judgment, Query
from ragforge.report.judging import settle

RR = EvaluateSettings(measures=("RR",))


def test_a_run_without_a_file_is_measured_where_its_retriever_failed_on_all(tmp_path):
    """A retriever that was down all night is the run one most wants to see."""
    made = ranked_set(tmp_path / "set", {"good": [FAILED] * 4, "bad": [2] * 4})
    (made.path / "runs" / "good.jsonl").unlink()

    found = {run.measured.name: run.evaluation for run in evaluate_runs(made, (), RR)}

    assert sorted(found) == ["bad", "good"]
    assert found["good"].measures["RR"].mean is None


def test_a_set_without_chunks_has_no_digest_of_a_corpus(tmp_path):
    """A brought-in set of judgments alone can be evaluated too."""
    made = make_measured_set(tmp_path / "set")
    with_chunks = evaluate_runs(made, ["bad"], RR)[0].evaluation.digests.corpus
    expected = digest_file(made.path / "chunks.jsonl")
    (made.path / "chunks.jsonl").unlink()

    without = evaluate_runs(made, ["bad"], RR)[0].evaluation.digests.corpus

    assert (with_chunks, without) == (expected, "")


def test_the_id_comes_from_the_contents(tmp_path):
    """A line that was changed by hand must not keep its id."""
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], RR)
    changed = found.evaluation.model_copy(update={"run": "other"})

    assert sealed(found.evaluation) == found.evaluation
    assert sealed(changed).evaluation_id != found.evaluation.evaluation_id


def test_values_of_items_are_those_of_the_scores(tmp_path):
    """Bridges and gates are computed from them."""
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], RR)

    assert {item.query_id: item.values for item in found.baseline.items} == {
        query_id: {"RR": values["RR"]} for query_id, values in found.scores.per_query.items()
    }


def test_an_item_stays_the_same_when_the_corpus_is_cut_otherwise():
    """New chunk ids for the same evidence are no other question."""
    query = Query(
        query_id="q",
        query="What?",
        evidence=(Evidence(doc_id="d", chunk_id="old", quote="It is so."),),
    )
    moved = query.model_copy(
        update={"evidence": (Evidence(doc_id="d", chunk_id="new", quote="It is so."),)}
    )

    def judged(chunk_id):
        return settle([Judgment(query_id="q", chunk_id=chunk_id, grade=3, source="evidence")])

    assert item_digests([query], judged("old")) == item_digests([moved], judged("new"))


def test_an_item_is_another_when_its_relevant_chunks_are():
    """Where no evidence is known the relevant chunks are what the question asks for."""
    query = Query(query_id="q", query="What?")

    def judged(grade):
        return settle([Judgment(query_id="q", chunk_id="c", grade=grade, source="human")])

    assert item_digests([query], judged(3)) != item_digests([query], judged(0))


def test_the_same_set_and_run_have_the_same_digests(tmp_path):
    """A digest that differs for nothing would be told as a change."""
    made = make_measured_set(tmp_path / "set")
    first, second = (evaluate_runs(made, ["bad"], RR)[0].evaluation.digests for _ in range(2))

    assert first == second
