import pytest

from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.reviewing import drawn_at_random, flags, sheet_rows
from ragforge.records import (
    Chunk,
    Evidence,
    GateResult,
    Measured,
    Query,
    Review,
    Turn,
)


def made(name, **fields):
    return Query(query_id=name, query=f"What is {name}?", expected_answer="So.", **fields)


@pytest.fixture
def dataset(tmp_path):
    return create_dataset(tmp_path / "set", {})


def ids(rows):
    return [row.query_id for row in rows]


FAILED = GateResult(gate="self_contained", verdict="fail", reason="says 'it'")
UNKNOWN = GateResult(gate="premise", verdict="unknown")
PASSED = GateResult(gate="premise", verdict="pass")


def test_queries_on_which_checks_disagree_come_first(dataset):
    """A reviewer's first hour should go where it finds most."""
    plain = [made(f"plain{number}", gates=(PASSED,)) for number in range(30)]
    doubtful = [
        made("closed", measured=Measured(closed_book="solved")),
        made("in part", measured=Measured(agreement="in part")),
        made("absent", answerable=False),
        made("differs", gates=(UNKNOWN,), measured=Measured(agreement="differs")),
        made("failed", gates=(FAILED,)),
    ]
    dataset.write_queries([*plain, *doubtful])

    rows = sheet_rows(dataset)

    assert ids(rows)[:5] == ["differs", "failed", "in part", "closed", "absent"]
    assert rows[1].flags == "self contained: fail (says 'it')"
    assert rows[0].flags == "an independent answer differs; premise: unknown"
    assert all(row.random for row in rows[5:])


def test_passed_checks_ask_for_nobody():
    """Flags on everything are flags on nothing."""
    assert flags(made("q", gates=(PASSED,), measured=Measured(agreement="agrees"))) == []


@pytest.mark.parametrize(
    ("n", "sample", "drawn"), [(4, None, 4), (50, None, 10), (300, None, 15), (301, None, 16)]
)
def test_five_in_a_hundred_and_at_least_ten_are_drawn(n, sample, drawn):
    """Fewer say nothing about the others."""
    assert len(drawn_at_random([made(f"q{at}") for at in range(n)], sample)) == drawn


def test_larger_sample_holds_the_smaller_one():
    """What was decided counts on when more is drawn."""
    queries = [made(f"q{at}") for at in range(100)]

    assert drawn_at_random(queries, 20) < drawn_at_random(queries, 40)


def test_draw_does_not_depend_on_what_was_rejected_since():
    """A second draw from what is left would make the set look better than it was made."""
    queries = [made(f"q{at}") for at in range(100)]
    drawn = drawn_at_random(queries, None)
    review = Review(decision="reject", by="Ann", random=True)
    after = [
        query.model_copy(update={"status": "retired", "reviewed": review})
        if query.query_id in drawn
        else query
        for query in queries
    ]

    assert drawn_at_random(after, None) == drawn


def test_sample_of_nothing_is_refused():
    """It would look like an audit without one."""
    with pytest.raises(UsageError, match="--sample: expected at least 1, got 0"):
        drawn_at_random([made("q")], 0)


def test_decided_queries_are_shown_again_only_to_be_counted(dataset):
    """A flagged query that is drawn later must count, or the doubtful ones would be missing."""
    review = Review(decision="edit", by="Ann")
    dataset.write_queries([made("q1", reviewed=review), made("q2")])

    [row] = [row for row in sheet_rows(dataset) if row.query_id == "q1"]

    assert (row.decision, row.random) == ("edit", "random")
    assert row.flags == "decided by Ann, drawn at random since"


def test_nothing_left_to_review_is_said(dataset):
    """An empty sheet would look like a fault."""
    review = Review(decision="approve", by="Ann", random=True)
    dataset.write_queries([made("q1", reviewed=review)])

    with pytest.raises(DataError, match="nothing to review"):
        sheet_rows(dataset)


def test_set_without_queries_is_told_from_a_reviewed_one(dataset):
    """An import that failed leaves chunks alone; "all is decided" would be false."""
    with pytest.raises(DataError, match="has no queries; make some"):
        sheet_rows(dataset)


def test_bare_questions_of_a_log_are_left_out(dataset):
    """There is nothing to be right or wrong about, and they would raise the precision."""
    dataset.write_queries([made("q1"), Query(query_id="q2", query="tls?", origin="log")])

    assert ids(sheet_rows(dataset)) == ["q1"]


def test_row_shows_what_a_reviewer_needs(dataset):
    """Nobody should have to open another file to decide."""
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text="so", heading_path=("A", "B"))])
    evidence = (
        Evidence(doc_id="a.md", chunk_id="c1", quote="so"),
        Evidence(doc_id="gone.md", chunk_id="c9", quote="and so"),
    )
    query = made(
        "q1",
        evidence=evidence,
        revision=3,
        type="follow_up",
        difficulty="hard",
        standalone="What is q1 of A?",
        history=(Turn(role="user", text="A?"), Turn(role="assistant", text="Yes.")),
    )
    dataset.write_queries([query])

    [row] = sheet_rows(dataset, reviewer="Ann")

    assert (row.revision, row.reviewer, row.type, row.difficulty) == (
        "3",
        "Ann",
        "follow_up",
        "hard",
    )
    assert row.history == "user: A?\nassistant: Yes."
    assert row.standalone == "What is q1 of A?"
    assert row.evidence == "so\n\nand so"
    assert row.place == "a.md > A > B\ngone.md"
