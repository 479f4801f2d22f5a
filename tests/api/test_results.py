"""What results offer, whatever they are of."""

import json
import sys
from types import ModuleType

import pytest

import ragforge as rf
from ragforge.api.results import Result, shown_html
from ragforge.evaluating.formatting import Table


class Frame:
    """Stands for a data frame and keeps what it was made of."""

    def __init__(self, rows, **_):
        self.rows = rows


@pytest.fixture
def every(found, place):
    """A result of each call that needs no model."""
    found.retrieve("bm25", quiet=True)
    judged = found.judge(quiet=True)
    answered = found.answer(lambda query: "at nine", name="live", quiet=True)
    return [
        found.retrieve("bm25", quiet=True),
        judged,
        found.judge(dry_run=True, quiet=True),
        found.judge_labels(quiet=True),
        found.complete(quiet=True),
        found.audit_judge(2, quiet=True),
        answered,
        found.ground("live", quiet=True),
        found.evaluate(quiet=True),
        found.compare("mine", "bm25"),
        found.gate("mine", min={"RR": 0.5}, quiet=True),
        found.report("report.md", quiet=True),
        found.worst(),
        found.history(),
        found.validate(),
        found.export("json", place / "out.json"),
        found.export_review(place / "sheet.csv"),
        rf.judge_pairs([{"query": "a?", "text": "a"}], quiet=True),
    ]


@pytest.mark.slow
def test_every_result_is_shown_and_taken_on(every):
    """One way for all: text, HTML, rows and plain values."""
    for result in every:
        assert isinstance(result, Result)
        assert repr(result) == result.table() != ""
        assert result._repr_html_().startswith("<div")
        json.dumps(result.to_dict(), allow_nan=False)
        json.dumps(result.rows(), allow_nan=False)


@pytest.mark.parametrize(
    ("row", "n_bars"),
    [
        (("nDCG@10", "0.7198"), 1),
        (("RR", "1.0000 ab"), 1),
        (("DCG@10", "0.7198"), 0),
        (("DCG@10", "4.1000"), 0),
        (("p50 latency", "0.37 ms"), 0),
        (("perfect", "1"), 0),
        (("RR", "\N{EN DASH}"), 0),
    ],
)
def test_only_what_ends_at_1_has_a_bar(row, n_bars):
    """A bar of a latency or a DCG would say nothing."""
    table = Table("", ("measure", "run"), (row,), "")

    assert shown_html(tables=[table], bars=("run",)).count("<meter") == n_bars
    assert "<meter" not in shown_html(tables=[table])


@pytest.mark.slow
def test_no_result_can_be_changed(every):
    """What was measured stays measured."""
    for result in every:
        with pytest.raises((AttributeError, TypeError)):
            result.notes = ()


def test_frames_are_made_of_the_rows(found, monkeypatch):
    """Both packages take a list of mappings."""
    for name in ("pandas", "polars"):
        package = ModuleType(name)
        package.DataFrame = Frame
        monkeypatch.setitem(sys.modules, name, package)

    scores = found.evaluate("mine", "RR", quiet=True)

    expected = [
        {"run": "mine", "query_id": "q1", "RR": 0.5},
        {"run": "mine", "query_id": "q2", "RR": 1.0},
    ]
    assert scores.to_pandas().rows == expected
    assert scores.to_polars().rows == expected


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(found, monkeypatch, package):
    """Neither is a dependency."""
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(rf.ConfigError, match=f"needs {package}, which is not installed"):
        getattr(found.evaluate(quiet=True), f"to_{package}")()


def test_answers_are_graded_from_records(found):
    """Answers of another program come as a list or a frame."""
    rows = [{"query_id": "q1", "answer": "at nine", "chunk_ids": ["a"]}]
    graded = found.grade_answers(rows, name="other", quiet=True)

    assert dict(graded.verdicts) == {"correct": 1}
    assert found.systems == ("other",)


def test_grades_that_answers_bring_are_taken(found):
    """People graded them already; nothing is asked."""
    rows = [{"query_id": "q1", "answer": "at nine", "isCorrect": True, "score": 1.0}]

    graded = found.grade_answers(rows, name="other", quiet=True)

    assert graded.to_dict()["graded_by_file"] == "other.jsonl"
    assert graded.to_dict()["judge"] is None


def test_what_was_measured_cannot_be_changed_from_outside(measured):
    """A list that is sorted in place would change frames and every later test without a word."""
    scores = measured.evaluate("bad", ["RR"], quiet=True)
    before = scores.rows()

    with pytest.raises(AttributeError, match="sort"):
        scores["bad"].values("RR").sort()
    with pytest.raises(TypeError, match="item assignment"):
        scores.runs["bad"] = None
    scores.to_dict()["runs"].clear()
    assert scores.rows() == before


def test_counted_grades_cannot_be_changed():
    """A change that is lost is as bad as one that is kept."""
    judged = rf.judge_pairs([{"query": "a b", "text": "a b"}], quiet=True)

    with pytest.raises(TypeError, match="item assignment"):
        judged.grades[3] = 100
