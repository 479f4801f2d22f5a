import pytest

from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.review_passages import passages
from ragforge.pipeline.intake.review_sheets import (
    Batch,
    drawn_at_random,
    export_sheet,
    flags,
    sheet_rows,
)
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
    assert row.flags == "edited by Ann, drawn at random since"


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


def with_evidence(name, doc_id, quote="so it is"):
    return made(
        name,
        gates=(FAILED,),
        evidence=(Evidence(doc_id=doc_id, chunk_id=f"{doc_id}#1", quote=quote),),
    )


def test_parts_share_no_query_and_leave_none_out(dataset):
    """Two people who review at once should not decide the same."""
    dataset.write_queries([made(f"q{number}", gates=(FAILED,)) for number in range(40)])

    parts = [set(ids(sheet_rows(dataset, batch=Batch(part=k, parts=3)))) for k in (1, 2, 3)]

    assert set.union(*parts) == set(ids(sheet_rows(dataset)))
    assert sum(map(len, parts)) == 40
    assert min(map(len, parts)) > 5


def test_by_document_each_is_read_once(dataset):
    """Questions on one page follow one another; those without evidence come last."""
    dataset.write_chunks([Chunk(chunk_id="a.md#1", doc_id="a.md", text="so it is")])
    dataset.write_queries(
        [
            with_evidence("q1", "b.md"),
            with_evidence("q2", "a.md"),
            with_evidence("q3", "b.md"),
            made("q0", answerable=False),
        ]
    )

    assert ids(sheet_rows(dataset, batch=Batch("document"))) == ["q2", "q1", "q3", "q0"]


def test_the_first_of_an_order_are_a_batch(dataset):
    """An hour of work has an end."""
    dataset.write_queries([made(f"q{number}", gates=(FAILED,)) for number in range(9)])
    batch = Batch("random", most=4)

    assert (
        ids(sheet_rows(dataset, batch=batch)) == ids(sheet_rows(dataset, batch=Batch("random")))[:4]
    )


@pytest.mark.parametrize("batch", [Batch(most=0), Batch(part=3, parts=2), Batch(part=0)])
def test_batches_out_of_range_are_refused(dataset, batch):
    """An empty sheet would look like nothing left to do."""
    dataset.write_queries([made("q", gates=(FAILED,))])

    with pytest.raises(UsageError, match="expected"):
        sheet_rows(dataset, batch=batch)


def test_an_empty_part_says_so(dataset):
    """There is something to decide about, but not for this reviewer."""
    dataset.write_queries([made("q", gates=(FAILED,))])
    told = []
    for part in (1, 2):
        try:
            sheet_rows(dataset, batch=Batch(part=part, parts=2))
        except DataError as error:
            told.append(str(error))

    assert len(told) == 1
    assert "has none of the 1 query to decide about" in told[0]


def test_evidence_is_shown_where_it_stands_and_else_alone(dataset):
    """A chunk that is gone takes no quote along."""
    dataset.write_chunks(
        [Chunk(chunk_id="a.md#1", doc_id="a.md", text="Long ago so it is, said he.")]
    )
    queries = [with_evidence("q1", "a.md"), with_evidence("q2", "gone.md")]

    found = passages(dataset, queries)

    assert found["q1"][0].start.text.text == "Long ago so it is, said he."
    assert found["q2"][0].start.text.text == "so it is"
    assert found["q1"][0].quotes == found["q2"][0].quotes == ("so it is",)


def test_unanswerable_queries_come_with_their_nearest_chunks(dataset, tmp_path):
    """Whether nothing answers is seen best beside what comes nearest."""
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=f"{name}.md", text=text)
        for name, text in (
            ("a", "The ferry to Ostend leaves at noon."),
            ("b", "The ferry has a bar."),
            ("c", "Bread is baked at four."),
        )
    )
    query = Query(query_id="q", query="Which captain steers the ferry to Ostend?", answerable=False)
    dataset.write_queries([query])

    assert [shown.start.doc_id for shown in passages(dataset, [query])["q"]] == ["a.md", "b.md"]
    export_sheet(dataset, tmp_path / "review.html")
    assert "leaves at noon" in (tmp_path / "review.html").read_text(encoding="utf-8")
