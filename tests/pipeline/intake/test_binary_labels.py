"""Sets whose labels tell relevant from not: they gain the same whichever way they come in."""

import json
from math import log2

import pytest

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.evaluation import evaluate
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.intake.importing import import_queries
from ragforge.records import Chunk, Hit, Judgment, Provenance, Ranking

MEASURES = ("DCG@3", "ERR(max=3)@3", "P@2")
LISTED = [{"id": "q", "query": "Why?", "relevant_doc_ids": ["a", "c"]}]
GRADED = [{"id": "q", "query": "Why?", "graded_relevance": {"a": 1, "b": 0, "c": 1}}]
RANKED = ["a", "b", "c"]
# By hand, with gain 1 each: DCG 1/log2(2) + 1/log2(4); ERR 1/8 + (7/8)(1/8)/3, as (2^1 - 1)/2^3.
WANTED = {
    "DCG@3": pytest.approx(1 / log2(2) + 1 / log2(4), abs=1e-6),
    "ERR(max=3)@3": pytest.approx(1 / 8 + 7 / 8 / 8 / 3, abs=1e-6),
    "P@2": 0.5,
}


def imported(rows, tmp_path):
    dataset = create_dataset(tmp_path / "set", {})
    dataset.write_chunks(Chunk(chunk_id=name, doc_id="d", text=name) for name in "abcd")
    add(rows, dataset, tmp_path)
    hits = tuple(Hit(chunk_id=name, score=9.0 - at) for at, name in enumerate(RANKED))
    dataset.write_run("r", [Ranking(query_id="q", ranking=hits)])
    return dataset


def add(rows, dataset, tmp_path):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    notes = []
    import_queries(path, dataset, lambda event: notes.append(event.message))
    return notes


def means(dataset, **settings):
    [run] = evaluate_runs(dataset, ["r"], EvaluateSettings(measures=MEASURES, **settings))
    return {name: run.scores.mean(name) for name in MEASURES}


@pytest.mark.parametrize("rows", [LISTED, GRADED])
def test_binary_labels_gain_the_same_imported_or_not(tmp_path, rows):
    """One file has one DCG; the author's 1 is a 1."""
    dataset = imported(rows, tmp_path)
    of_file = evaluate(tmp_path / "set.json", {"q": RANKED}, MEASURES)
    of_folder = evaluate(dataset.path, {"q": RANKED}, MEASURES)

    assert means(dataset) == WANTED
    assert {name: of_file.mean(name) for name in MEASURES} == WANTED
    assert {name: of_folder.mean(name) for name in MEASURES} == WANTED


def test_an_exported_binary_set_gains_the_same(tmp_path):
    """Out and in again, nothing is made up."""
    imported(GRADED, tmp_path)
    out = tmp_path / "out.json"
    main(["export", "--dataset", str(tmp_path / "set"), "--as", "json", "--out", str(out)])

    scores = evaluate(out, {"q": RANKED}, MEASURES)
    assert {name: scores.mean(name) for name in MEASURES} == WANTED


def test_beside_grades_of_a_judge_relevant_is_two(tmp_path):
    """On the judge's scale 1 says that no part of the answer is there: 2/log2(2) + 2/log2(4)."""
    dataset = imported(LISTED, tmp_path)
    by = Provenance(kind="llm", model="m")
    judged = Judgment(query_id="q", chunk_id="b", grade=1, provenance=by)
    dataset.write_judgments([*dataset.judgments(), judged])

    # The judge's chunk of grade 1 at rank 2 gains 1/log2(3), and is not relevant.
    assert means(dataset)["DCG@3"] == pytest.approx(2 + 1 / log2(3) + 2 / log2(4), abs=1e-6)
    assert means(dataset)["P@2"] == 0.5


def test_a_threshold_that_is_asked_for_goes_by_what_is_stored(tmp_path):
    """Whoever asks for grade 2 has asked so of sets that were imported before."""
    assert means(imported(LISTED, tmp_path), rel_threshold=2)["P@2"] == 0.5


def test_binary_labels_in_a_graded_set_stay_on_its_scale(tmp_path):
    """There a 2 is what its author graded so."""
    graded = [{"id": "g", "query": "How?", "graded_relevance": {"a": 3, "d": 2}}]
    dataset = imported(graded, tmp_path)
    add(LISTED, dataset, tmp_path)

    assert open_dataset(dataset.path).manifest.is_binary is False
    assert {item.grade for item in dataset.judgments()} == {2, 3}


@pytest.mark.parametrize("is_binary_first", [False, True])
def test_two_scales_in_one_set_are_told(tmp_path, is_binary_first):
    """Parts of one file would be read otherwise than the whole."""
    graded = [{"id": "g", "query": "How?", "graded_relevance": {"a": 3, "d": 1}}]
    first, second = (GRADED, graded) if is_binary_first else (graded, GRADED)
    dataset = imported(first, tmp_path)

    notes = add(second, dataset, tmp_path)

    assert any("others are on a scale to 3" in note for note in notes)


def test_parts_of_one_scale_are_no_news(tmp_path):
    """Most sets grow by files of one kind."""
    dataset = imported(GRADED, tmp_path)

    more = [{"id": "h", "query": "How?", "graded_relevance": {"a": 1, "d": 0}}]
    assert not any("on a scale to 3" in note for note in add(more, dataset, tmp_path))


def test_labels_of_quotes_that_tell_relevant_from_not_are_relevant_to_judges_too(tmp_path):
    """They were grade 1, and what a judge graded for another run made them "not relevant"."""
    dataset = create_dataset(tmp_path / "set", {})
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=f"{name}.md", text=f"The key of {name} is under the mat.")
        for name in "ab"
    )
    text = "The key of {} is under the mat."
    rows = [
        {"id": "q", "query": "Why?", "doc_id": f"{n}.md", "quote": text.format(n), "grade": grade}
        for n, grade in (("a", 1), ("b", 0))
    ]

    add(rows, dataset, tmp_path)

    assert {one.chunk_id: one.grade for one in dataset.judgments()} == {"a": 2, "b": 0}
    [query] = dataset.queries()
    assert [one.quote for one in query.evidence] == [text.format("a")]
