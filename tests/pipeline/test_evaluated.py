"""The record of an evaluation says what was measured, on what, by whom."""

import pytest
from measured_set import PERSON, make_measured_set
from ranked_sets import FAILED, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.files.manifest import digest_file
from ragforge.pipeline.evaluated import evaluate_runs, item_digests, with_content_id
from ragforge.records import Evidence, Judgment, Query

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

    assert with_content_id(found.evaluation) == found.evaluation
    assert with_content_id(changed).evaluation_id != found.evaluation.evaluation_id


def test_values_of_items_are_those_of_the_scores(tmp_path):
    """Bridges and gates are computed from them."""
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], RR)

    assert {item.query_id: item.values for item in found.baseline.items} == {
        query_id: {"RR": values["RR"]} for query_id, values in found.scores.per_query.items()
    }


def test_values_of_counts_are_written_as_they_are_read(tmp_path):
    """A file that says 3 today and 3.0 tomorrow would differ where nothing changed."""
    settings = EvaluateSettings(measures=("NumRet", "RR"))
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], settings)

    values = [value for item in found.baseline.items for value in item.values.values()]
    assert {type(value) for value in values} == {float}


def test_an_item_is_found_by_its_query(tmp_path):
    """An earlier evaluation may have queries that the set lacks now."""
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], RR)

    assert dict(found.by_query()) == found.baseline.by_query()
    assert found.by_query().get("another") is None


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

    assert item_digests([query]) == item_digests([moved])


def test_an_item_is_another_when_its_answer_is():
    """The same words then ask for something else."""
    query = Query(query_id="q", query="What?", expected_answer="This.")
    other = query.model_copy(update={"expected_answer": "That."})

    assert item_digests([query]) != item_digests([other])


def test_an_item_stays_the_same_when_more_is_judged(tmp_path):
    """Judging what a new run retrieved would else drop the queries on which it differs."""
    made = make_measured_set(tmp_path / "set")
    [before] = evaluate_runs(made, ["bad"], RR)
    more = Judgment(query_id="q00", chunk_id="cy", grade=2, source="human", provenance=PERSON)
    made.write_judgments([*made.judgments(), more])
    [now] = evaluate_runs(made, ["bad"], RR)

    pairs = list(zip(before.baseline.items, now.baseline.items, strict=True))
    assert all(old.item == new.item for old, new in pairs)
    assert [old.grades == new.grades for old, new in pairs] == [False, True, True, True]


@pytest.mark.parametrize(("measures", "kept"), [(("P@2",), 2), (("P@2", "RR"), 3)])
def test_rankings_are_kept_as_deep_as_the_measures_look(tmp_path, measures, kept):
    """A baseline is a file in git."""
    settings = EvaluateSettings(measures=measures)
    [found] = evaluate_runs(make_measured_set(tmp_path / "set"), ["bad"], settings)

    assert {(len(item.ranking), item.n_retrieved) for item in found.baseline.items} == {(kept, 3)}


def test_the_same_set_and_run_have_the_same_digests(tmp_path):
    """A digest that differs for nothing would be told as a change."""
    made = make_measured_set(tmp_path / "set")
    first, second = (evaluate_runs(made, ["bad"], RR)[0].evaluation.digests for _ in range(2))

    assert first == second


def test_it_is_recorded_whether_queries_that_the_run_lacks_were_left_out(tmp_path):
    """The mean of the queries that a run has is another than that of all."""
    made = make_measured_set(tmp_path / "set")
    [all_of_them] = evaluate_runs(made, ["bad"], RR)
    [some] = evaluate_runs(made, ["bad"], RR, only_retrieved=True)

    assert [run.evaluation.only_retrieved for run in (all_of_them, some)] == [False, True]
