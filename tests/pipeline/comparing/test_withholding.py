"""A winner that rests on shared words, or on what a mock made up, is never called one."""

import json

import pytest

from ragforge.config import EvaluateSettings
from ragforge.pipeline.comparing.runs import compare_files
from ragforge.report.comparison import render_comparison
from ragforge.report.comparison_json import comparison_json

QUERIES = [f"q{n:02}" for n in range(30)]
GOOD, BAD = ["d1", "d2", "d3"], ["d3", "d9", "d1"]
GRADES = {"d1": 3, "d2": 2, "d3": 0}
WORDS = {"kind": "baseline", "model": "offline-lexical-1"}
COSINES = {"kind": "baseline", "model": "offline-minilm-1"}
MODEL = {"kind": "llm", "model": "judge-1"}
MOCK = {"kind": "mock", "model": "judge-1"}


@pytest.fixture
def compared(tmp_path):
    """Compare a good run with a bad one on judgments; `by` gives the provenance of a pair."""

    def compare(by, good=GOOD, measures=("nDCG@3", "P@1"), more=()):
        rows = [
            {"query_id": query_id, "chunk_id": chunk_id, "grade": grade, "provenance": given}
            for query_id in QUERIES
            for chunk_id, grade in {**GRADES, **dict(more)}.items()
            if (given := by(query_id, chunk_id)) is not None
        ]
        qrels = tmp_path / "judged.jsonl"
        qrels.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
        paths = []
        for name, ranking in (("bad", BAD), ("good", good)):
            paths.append(tmp_path / f"{name}.trec")
            lines = [
                f"{query_id} Q0 {chunk_id} {rank} {9 - rank} x"
                for query_id in QUERIES
                for rank, chunk_id in enumerate(ranking, 1)
            ]
            paths[-1].write_text("\n".join(lines) + "\n", "utf-8")
        return compare_files(qrels, paths, EvaluateSettings(measures=measures))

    return compare


def winners(report):
    return [item["winner"] for item in comparison_json(report)["comparisons"]]


def test_a_winner_by_shared_words_is_unknown(compared):
    """On pairs that people graded, such winners were the losers."""
    report = compared(lambda query_id, chunk_id: WORDS)
    text = " ".join(render_comparison(report).split())

    assert winners(report) == ["UNKNOWN", "UNKNOWN"]
    assert "by shared words, good ranks higher; this says nothing about quality" in text
    assert text.startswith("graded by the offline baseline, shared words (offline-lexical-1): 90 ")


def test_a_winner_by_cosines_is_unknown(compared):
    """A local model is a better floor than shared words, and still a floor."""
    report = compared(lambda query_id, chunk_id: COSINES)
    text = " ".join(render_comparison(report).split())

    assert winners(report) == ["UNKNOWN", "UNKNOWN"]
    assert "by cosines of a local model, good ranks higher; this says nothing about" in text
    assert text.startswith("graded by the offline baseline, a local model (offline-minilm-1): 90 ")


def test_a_winner_by_a_mock_is_unknown(compared):
    """A rehearsal with made-up replies decides nothing."""
    report = compared(lambda query_id, chunk_id: MOCK)
    text = " ".join(render_comparison(report).split())

    assert winners(report) == ["UNKNOWN", "UNKNOWN"]
    assert "by what ragforge mock made up, good ranks higher" in text
    assert text.startswith("graded by ragforge mock in the place of judge-1: 90 ")


def test_a_model_names_a_winner(compared):
    """Who withheld all winners would be of no use."""
    report = compared(lambda query_id, chunk_id: MODEL)

    assert winners(report) == ["B", "B"]
    assert comparison_json(report)["graded_by"] == [
        {"kind": "llm", "model": "judge-1", "prompt": "", "source": "judge", "n": 90}
    ]


def test_one_grade_by_shared_words_is_enough(compared):
    """How much one grade moves is not known before it is looked at."""
    report = compared(
        lambda query_id, chunk_id: WORDS if (query_id, chunk_id) == ("q00", "d1") else MODEL
    )

    assert winners(report) == ["UNKNOWN", "UNKNOWN"]
    assert "in part (1 of 60 grades) by shared words" in report.items[1].withheld


def test_only_grades_within_reach_of_the_measure_count(compared):
    """The first ranks were graded by a model; nobody looks at the third."""
    report = compared(
        lambda query_id, chunk_id: WORDS if chunk_id == "d2" else MODEL,
        measures=("P@1", "RR"),
    )

    assert winners(report) == ["B", "UNKNOWN"]


def test_relevant_chunks_that_nobody_retrieved_are_a_share_of_those_of_one_judge(compared):
    """Recall is a share of all that is relevant to the judge that graded what was retrieved."""
    report = compared(
        lambda query_id, chunk_id: WORDS if chunk_id == "d7" else MODEL,
        measures=("P@1", "R@1"),
        more={"d7": 3},
    )

    assert winners(report) == ["B", "B"]


def test_one_ranking_under_two_names_is_no_question_of_grades(compared):
    """Nothing differs, whoever graded."""
    report = compared(lambda query_id, chunk_id: WORDS, good=BAD)

    assert winners(report) == ["TIE", "TIE"]
    assert "The same rankings in every query: nothing differs." in render_comparison(report)


def test_a_file_that_does_not_say_who_graded_says_so(compared):
    """A reader must know what nobody recorded."""
    report = compared(lambda query_id, chunk_id: {})

    assert render_comparison(report).splitlines()[0] == "who graded is not recorded"
    assert winners(report) == ["B", "B"]
