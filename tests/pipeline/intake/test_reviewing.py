import json
import re
from dataclasses import replace
from datetime import datetime

import pytest
from label_samples import sampled_set

from ragforge.calibration.worded_labels import worded_labels
from ragforge.errors import DataError, UsageError
from ragforge.files.formats.review_sheet import SheetRow, write_sheet
from ragforge.files.set.calibrations import calibration_files
from ragforge.files.set.former_grades import read_former_grades
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.review_sheets import sheet_rows
from ragforge.pipeline.intake.reviewing import review_audit, review_dataset
from ragforge.records import (
    Chunk,
    DormantGrade,
    Evidence,
    Fact,
    GateResult,
    Judgment,
    Label,
    Measured,
    MovedChunk,
    Pin,
    Provenance,
    Query,
    Review,
    ReviewEvent,
)

pytestmark = pytest.mark.slow


JUDGE = Provenance(kind="llm", model="m")
QUOTE = Evidence(doc_id="a.md", chunk_id="c1", quote="so it is")


def made(name="q1", **fields):
    known = {"query": f"What is {name}?", "expected_answer": "So.", "evidence": (QUOTE,)}
    return Query(query_id=name, **{**known, **fields})


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text="so it is")])
    return made


@pytest.fixture
def decide(dataset, tmp_path):
    """Fill in a sheet of the dataset and take it in."""

    def run(*rows, reviewer="Ann", **options):
        path = tmp_path / "review.json"
        path.write_text(json.dumps(list(rows)), encoding="utf-8")
        return review_dataset(dataset, path, reviewer, **options)

    return run


def decided(decision, name="q1", revision=1, **fields):
    return {"query_id": name, "revision": revision, "decision": decision, **fields}


def one(dataset):
    [query] = dataset.all_queries()
    return query


def test_approved_query_carries_who_approved_it(dataset, decide):
    """A set that people signed says who did."""
    dataset.write_queries([made()])

    result = decide(decided("approve", note="fine"))

    assert one(dataset) == made(reviewed=Review(decision="approve", by="Ann", note="fine"))
    assert result.counts == {
        "approve": 1, "edit": 0, "reject": 0, "pin": 0, "taken_back": 0, "known": 0, "undecided": 0
    }  # fmt: skip


def test_pinned_query_is_approved_too(dataset, decide):
    """A pin says more than an approval."""
    dataset.write_queries([made()])

    decide(decided("pin", note="contract"))

    assert one(dataset).pinned == Pin(by="Ann", note="contract")
    assert one(dataset).reviewed.decision == "approve"


def test_rejected_query_is_retired_and_stays_known(dataset, decide):
    """Else generation would write the same question again."""
    dataset.write_queries([made()])

    decide(decided("reject"))

    assert one(dataset).status == "retired"
    assert dataset.queries() == []


def test_quarantined_query_is_accepted_once_a_person_approves(dataset, decide):
    """That is what quarantine waits for."""
    dataset.write_queries([made(status="quarantined")])

    decide(decided("approve"))

    assert one(dataset).status == "accepted"


def test_edited_query_keeps_its_id_and_evidence_and_gets_a_revision(dataset, decide):
    """Runs and judgments name it by its id."""
    by = Provenance(kind="llm", model="m")
    gate = GateResult(gate="premise", verdict="fail")
    fact = Fact(fact_id="f1", text="So.")
    old = made(gates=(gate,), measured=Measured(depth=3), facts=(fact,), facts_by=by, facts_of="x")
    dataset.write_queries([old])

    decide(decided("edit", new_query="What else?", new_answer="Thus."))

    review = Review(decision="edit", by="Ann")
    assert one(dataset) == made(
        query="What else?", expected_answer="Thus.", revision=2, reviewed=review
    )


def test_edited_question_loses_the_grades_that_were_given_for_the_former_one(dataset, decide):
    """They answer another question; that of the quote is about the passage."""
    dataset.write_queries([made(), made("q2")])
    grades = [
        Judgment(query_id=name, chunk_id=source, grade=2, source=source)
        for name in ("q1", "q2")
        for source in ("judge", "carried", "human", "evidence")
    ]
    dataset.write_judgments(grades)

    result = decide(decided("edit", new_query="What else?"))

    left = [(item.query_id, item.source) for item in dataset.judgments()]
    assert left[0] == ("q1", "evidence")
    assert [query_id for query_id, _ in left[1:]] == ["q2"] * 4
    assert (result.stale_judgments, result.former_grades) == (2, 1)


def graded(chunk_id="c1", grade=2, **fields):
    """Return a grade by a person."""
    by = Provenance(kind="human", model="Cyd")
    fields = {"query_id": "q1", "source": "human", "provenance": by} | fields
    return Judgment(chunk_id=chunk_id, grade=grade, **fields)


def test_grades_of_people_come_back_with_the_wording(dataset, decide):
    """What was paid for is not lost by an edit that is taken back."""
    dataset.write_queries([made()])
    dataset.write_judgments([graded()])
    decide(decided("edit", new_query="What else?"))
    [meanwhile] = dataset.judgments()

    result = decide(decided("undecided", revision=2))

    assert (meanwhile.source, meanwhile.grade) == ("evidence", 3)
    assert dataset.judgments() == [graded()]
    assert (result.former_grades, result.returned_grades) == (0, 1)
    assert read_former_grades(dataset) == []


def test_grades_of_people_stay_with_the_same_words(dataset, decide):
    """A mark at the end asks for nothing else."""
    dataset.write_queries([made(query="what is it")])
    dataset.write_judgments([graded()])

    result = decide(decided("edit", new_query="What is it?"))

    assert dataset.judgments() == [graded()]
    assert result.former_grades == 0


def test_grades_of_each_wording_are_kept_by_themselves(dataset, decide):
    """Somebody graded the new question, too, before the former one came back."""
    dataset.write_queries([made()])
    dataset.write_judgments([graded()])
    decide(decided("edit", new_query="What else?"))
    dataset.write_judgments([graded(grade=0)])

    decide(decided("edit", new_query="What is q1?", revision=2))

    assert [one.grade for one in dataset.judgments()] == [2]
    assert [one.judgment.grade for one in read_former_grades(dataset)] == [0]


def test_a_grade_comes_back_where_its_text_is_now(dataset, decide):
    """A night may rename the document between an edit and its withdrawal."""
    dataset.write_queries([made()])
    dataset.write_judgments([graded()])
    decide(decided("edit", new_query="What else?"))
    dataset.write_chunks([Chunk(chunk_id="n1", doc_id="a.md", text="so it is")])
    dataset.past.write_moved_chunks([MovedChunk(before="c1", now=("n1",))])
    dataset.write_judgments([])

    decide(decided("undecided", revision=2))

    assert [one.chunk_id for one in dataset.judgments()] == ["n1"]


def test_what_waits_for_its_text_waits_for_the_wording_too(dataset, decide):
    """The chunk may come back under the new question."""
    waiting = DormantGrade(judgment=graded("gone"), doc_id="a.md", text_sha256="0" * 64)
    dataset.write_queries([made()])
    dataset.past.write_dormant_grades([waiting])
    decide(decided("edit", new_query="What else?"))
    meanwhile = dataset.past.dormant_grades()
    decide(decided("undecided", revision=2))

    assert meanwhile == []
    assert dataset.past.dormant_grades() == [waiting]


def test_what_judges_said_beside_people_goes_with_the_wording(dataset, decide):
    """Labels for the new question would correct the grades for the former one."""
    dataset.write_queries([made(), made("q2")])
    check = Judgment(query_id="q1", chunk_id="c1", grade=0, provenance=JUDGE)
    other = check.model_copy(update={"query_id": "q2"})
    dataset.write_judgments([graded(), graded(query_id="q2")])
    dataset.write_label_checks([check, other])

    decide(decided("edit", new_query="What else?"))

    assert dataset.label_checks() == [other]


def test_a_dry_run_sets_no_grade_aside(dataset, decide):
    """It only counts."""
    dataset.write_queries([made()])
    dataset.write_judgments([graded()])

    result = decide(decided("edit", new_query="What else?"), dry_run=True)

    assert (dataset.judgments(), result.former_grades) == ([graded()], 1)
    assert read_former_grades(dataset) == []


def test_edited_answer_leaves_grades_and_a_persons_facts(dataset, decide):
    """The question is the same, and what a person wrote is theirs to change."""
    fact = Fact(fact_id="f1", text="So.")
    dataset.write_queries([made(facts=(fact,))])
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=2)])

    result = decide(decided("edit", new_answer="Thus."))

    assert one(dataset).facts == (fact,)
    assert (result.stale_judgments, result.own_facts) == (0, 1)
    assert len(dataset.judgments()) == 1


UNANSWERABLE = {
    "expected_answer": "The documents do not say.",
    "answerable": False,
    "expected_behaviour": "abstain",
    "type": "unanswerable",
    "evidence": (),
}


def test_a_question_that_a_person_answers_is_answerable(dataset, decide):
    """The very answer of the reviewer was graded incorrect, and a refusal correct."""
    dataset.write_queries([made(**UNANSWERABLE)])

    result = decide(decided("edit", new_answer="Siemens in Munich."))

    query = one(dataset)
    assert (query.answerable, query.expected_behaviour, query.type) == (True, "answer", None)
    assert (result.answered, result.refused_still) == (["q1"], [])

    decide(decided("undecided", revision=2))

    query = one(dataset)
    assert (query.answerable, query.expected_behaviour, query.type) == (
        *(False, "abstain", "unanswerable"),
    )


def test_another_refusal_leaves_a_question_unanswerable(dataset, decide):
    """It may be the same in better words; the import says so."""
    dataset.write_queries([made(**UNANSWERABLE)])

    result = decide(decided("edit", new_answer="The handbook does not name its author."))

    assert not one(dataset).answerable
    assert (result.answered, result.refused_still) == ([], ["q1"])


def test_follow_up_is_edited_with_what_it_asks_alone(dataset, decide):
    """What is retrieved for is the question as it stands alone."""
    dataset.write_queries([made(standalone="What is q1 of A?")])

    decide(decided("edit", new_query="And why?", new_standalone="Why is q1 of A?"))

    assert one(dataset).asked == "Why is q1 of A?"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (decided("approve", "q9"), "query 'q9': is no query of this dataset"),
        (decided("approve", revision=2), "is stale: revision 2, but now it is 1"),
        (
            decided("aprove"),
            "decision: expected one of approve, edit, reject, pin, undecided, got 'aprove'",
        ),
        (decided("", new_query="New?"), "decision: expected one of approve, edit, reject, pin"),
        (decided("edit"), "edit: expected a new text, got none or the same"),
        (decided("edit", new_query="What is q1?"), "edit: expected a new text, got none or the sa"),
        (decided("edit", new_query=" \n"), "edit: expected a new text, got none"),
        (decided("approve", new_query="New?"), "has a new text, but its decision is approve"),
        (decided("edit", new_query="what is  Q2?"), "new_query is the question of 'q2' already"),
        (decided("edit", new_standalone="New?"), "is no follow-up"),
        (decided("edit", "q3", new_query="New?"), "is a follow-up: new_query and new_standalone"),
        (decided("approve", query="What is Q1?"), "the text was changed where it stands"),
        (decided("approve", expected_answer="No."), "the text was changed where it stands"),
        (decided("approve", "q4"), "is retired"),
    ],
)
def test_row_that_cannot_be_taken_stops_the_whole_sheet(dataset, decide, row, message):
    """Half a sheet would leave nobody knowing what was decided."""
    queries = [
        made(),
        made("q2"),
        made("q3", standalone="What is q3 of A?"),
        made("q4", status="retired"),
        made("q5"),
    ]
    dataset.write_queries(queries)
    before = (dataset.path / "queries.jsonl").read_bytes()

    with pytest.raises(DataError, match=re.escape(message)):
        decide(decided("approve", "q5"), row)

    assert (dataset.path / "queries.jsonl").read_bytes() == before


def test_all_faulty_rows_are_named_up_to_some(dataset, decide):
    """A reviewer mends a sheet in one go."""
    dataset.write_queries([made()])

    with pytest.raises(DataError, match=r"'x0'.*\n(.*\n){7}and 12 more\n.*nothing was taken in"):
        decide(*[decided("approve", f"x{number}") for number in range(20)])


def test_query_that_comes_twice_is_refused(dataset, decide):
    """The later row would win by its place."""
    dataset.write_queries([made()])

    with pytest.raises(DataError, match=r"item 2: query 'q1': comes twice, first in .*item 1"):
        decide(decided("approve"), decided("reject"))


def test_sheet_without_a_decision_is_refused(dataset, decide):
    """Sending back the wrong file is easily done."""
    dataset.write_queries([made()])

    with pytest.raises(DataError, match="holds no decision; write one of approve, edit"):
        decide(decided(""))


def test_spreadsheet_may_change_the_blanks_of_what_it_shows(dataset, decide):
    """Line ends do not survive every program."""
    dataset.write_queries([made(expected_answer="One.\nTwo.")])

    decide(decided("approve", query="What is q1? ", expected_answer="One.\r\nTwo."))

    assert one(dataset).reviewed.decision == "approve"


def test_dry_run_tells_and_writes_nothing(dataset, decide):
    """A sheet of hours is tried first."""
    dataset.write_queries([made()])
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    result = decide(decided("reject", random="random"), dry_run=True)

    assert (result.counts["reject"], result.audit.n_right) == (1, 0)
    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


@pytest.mark.parametrize(
    "row",
    [
        decided("approve", random="random"),
        decided("edit", new_query="New?", new_answer="Yes.", random="random"),
        decided("reject"),
        decided("pin"),
    ],
)
def test_sheet_taken_in_again_changes_nothing(dataset, decide, row):
    """People send the same file twice."""
    dataset.write_queries([made()])
    decide(row)
    before = (dataset.path / "queries.jsonl").read_bytes()

    result = decide(row)

    assert result.counts["known"] == 1
    assert (dataset.path / "queries.jsonl").read_bytes() == before


def test_second_reviewer_who_decides_otherwise_is_told(dataset, decide):
    """Two people who disagree have something to talk about."""
    dataset.write_queries([made()])
    decide(decided("approve"))

    with pytest.raises(DataError, match=r"Ann decided approve; settle it, then .* --overrule"):
        decide(decided("reject"), reviewer="Ben")

    decide(decided("reject"), reviewer="Ben", overrule=True)
    assert one(dataset).reviewed == Review(decision="reject", by="Ben")


def test_pin_of_another_is_not_undone_silently(dataset, decide):
    """A pin is a person's word."""
    dataset.write_queries([made(pinned=Pin(by="Ann"))])

    with pytest.raises(DataError, match="Ann decided approve"):
        decide(decided("edit", new_answer="No."), reviewer="Ben")


def test_second_reviewer_who_agrees_changes_nothing(dataset, decide):
    """The first signature stays."""
    dataset.write_queries([made()])
    decide(decided("approve"))

    result = decide(decided("approve"), reviewer="Ben")

    assert result.counts["known"] == 1
    assert one(dataset).reviewed.by == "Ann"


def test_reviewer_may_change_their_mind(dataset, decide):
    """The second thought is the better one."""
    dataset.write_queries([made()])
    decide(decided("reject"))

    decide(decided("approve"))

    assert one(dataset).status == "accepted"


def test_nameless_sheet_is_refused(dataset, decide):
    """A decision nobody made counts for nothing."""
    dataset.write_queries([made()])

    with pytest.raises(UsageError, match="who decided"):
        decide(decided("approve"), reviewer=" ")


def test_sheet_for_another_reviewer_is_refused(dataset, decide):
    """Mixing up two files would sign in a wrong name."""
    dataset.write_queries([made()])

    with pytest.raises(UsageError, match="--reviewer Ann: the sheet is for Ben"):
        decide(decided("approve", reviewer="Ben"))


def test_name_on_the_sheet_is_enough(dataset, decide):
    """The page was made for somebody."""
    dataset.write_queries([made()])

    decide(decided("approve", reviewer="Ben"), reviewer="")

    assert one(dataset).reviewed.by == "Ben"


def test_precision_counts_what_was_drawn_at_random_alone(dataset, decide):
    """Queries picked for being doubtful say nothing about the others."""
    dataset.write_queries([made(f"q{number}") for number in range(12)])
    drawn = [decided("approve", f"q{number}", random="random") for number in range(8)]
    wrong = [
        decided("edit", "q8", new_answer="No.", random="random"),
        decided("reject", "q9", random="random"),
    ]

    decide(*drawn, *wrong, decided("reject", "q10"), decided("pin", "q11"))

    audit = dataset.manifest.audit
    assert (audit.n, audit.n_right, audit.precision, audit.reviewers) == (10, 8, 0.8, ("Ann",))
    assert (round(audit.low, 4), round(audit.high, 4)) == (0.4902, 0.9433)


def test_edited_query_stays_wrong_for_the_audit_whoever_approves_it_then():
    """The audit is about queries as they were made."""
    review = Review(decision="edit", by="Ann", random=True)

    assert review_audit([made(reviewed=review)]).n_right == 0


def test_approval_of_an_edit_keeps_the_edit(dataset, decide):
    """Else a second pass would turn every mended query into one that was right."""
    dataset.write_queries([made()])
    decide(decided("edit", new_answer="No.", random="random"))

    decide(decided("approve", revision=2, random="random"), reviewer="Ben", overrule=True)

    assert dataset.manifest.audit.n_right == 0


def test_query_drawn_after_its_decision_counts_with_it(dataset, decide):
    """The doubtful ones were looked at before the draw, and belong to it."""
    dataset.write_queries([made()])
    decide(decided("reject"))
    assert dataset.manifest.audit is None

    result = decide(decided("reject", random="random"))

    assert (result.counts["known"], result.audit.n, result.audit.n_right) == (1, 1, 0)


def test_drawn_queries_left_undecided_are_counted(dataset, decide):
    """Leaving the hard ones open would make the set look better."""
    dataset.write_queries([made(), made("q2"), made("q3")])

    result = decide(
        decided("approve", random="random"),
        decided("", "q2", random="random"),
        decided("", "q3"),
    )

    assert (result.drawn_open, result.counts["undecided"]) == (1, 2)


def test_audit_of_nothing_is_none():
    """A precision of 0 or 1 over no query would be a lie."""
    assert review_audit([made()]) is None


def test_sheet_of_ten_thousand_rows_goes_out_and_comes_back(dataset, tmp_path):
    """Large sets are reviewed in spreadsheets too."""
    dataset.write_queries([made(f"q{number}", answerable=False) for number in range(10_000)])
    rows = sheet_rows(dataset)
    path = tmp_path / "review.csv"
    write_sheet(path, [replace(row, decision="approve") for row in rows])

    result = review_dataset(dataset, path, "Ann")

    assert (result.counts["approve"], result.audit.n) == (10_000, 500)


def test_formulas_come_back_as_they_went(dataset, tmp_path):
    """The apostrophe is for the spreadsheet, not for the set."""
    text = "=HYPERLINK(\"http://x\",'a')"
    dataset.write_queries([made(query=text, expected_answer="-1")])
    [row] = sheet_rows(dataset)
    path = tmp_path / "review.csv"
    write_sheet(path, [replace(row, decision="edit", new_answer="'=2", note="+1")])

    review_dataset(dataset, path, "Ann")

    assert (one(dataset).query, one(dataset).expected_answer) == (text, "'=2")
    assert one(dataset).reviewed.note == "+1"


def test_row_is_all_text():
    """A number would be written in the locale of a spreadsheet."""
    assert {field.type for field in SheetRow.__dataclass_fields__.values()} == {str}


@pytest.mark.parametrize("field", ["new_query", "new_answer", "note"])
@pytest.mark.parametrize(
    ("text", "code"), [("a\x1b[31m", "U+001B"), ("a\u202eb", "U+202E"), ("a\x00b", "U+0000")]
)
def test_edit_with_what_nobody_sees_is_refused(dataset, decide, field, text, code):
    """It would steer the terminal of everybody who reads the set."""
    dataset.write_queries([made()])
    texts = {"new_query": "What else?", field: text}

    with pytest.raises(DataError, match=f"query 'q1': {field}: expected text .* {re.escape(code)}"):
        decide(decided("edit", **texts))


def test_drawn_and_left_open_is_told_of_a_page_too(dataset, decide):
    """The page saves what was drawn, decided or not."""
    dataset.write_queries([made("q1"), made("q2")])

    result = decide(decided("approve", "q1", random="random"), decided("", "q2", random="random"))

    assert (result.drawn_open, result.audit.n) == (1, 1)


@pytest.mark.parametrize("decision", ["approve", "reject", "pin"])
@pytest.mark.parametrize("status", ["accepted", "quarantined"])
def test_a_decision_taken_back_leaves_the_query_as_it_was(dataset, decide, decision, status):
    """A wrong key must not make a set of other queries."""
    dataset.write_queries([made(status=status)])

    decide(decided(decision))
    result = decide(decided("undecided"))

    assert one(dataset) == made(status=status)
    assert result.counts["taken_back"] == 1
    assert [row.query_id for row in sheet_rows(dataset)] == ["q1"]


def test_an_edit_taken_back_brings_the_former_wording(dataset, decide):
    """Nobody vouches for the new one, and grades that a model gave for it are of no query."""
    checked = GateResult(gate="self_contained", verdict="fail")
    drawn = {"facts": (Fact(fact_id="f1", text="So."),), "facts_by": JUDGE, "gates": (checked,)}
    dataset.write_queries([made(**drawn)])
    decide(decided("edit", new_query="What else?", new_answer="Other."))
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c1", grade=3, provenance=JUDGE, source="judge")]
    )

    decide(decided("approve", revision=2))
    decide(decided("undecided", revision=2))

    assert one(dataset) == made(revision=3, **drawn)
    assert dataset.judgments() == []


def test_an_edit_is_taken_back_on_the_sheet_that_made_it(dataset, decide):
    """It was refused as stale, and a new sheet leaves out what is decided."""
    checked = GateResult(gate="self_contained", verdict="fail")
    drawn = {"facts": (Fact(fact_id="f1", text="So."),), "facts_by": JUDGE, "gates": (checked,)}
    dataset.write_queries([made(**drawn)])
    decide(decided("edit", new_query="What else?", new_answer="Other."))
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c1", grade=3, provenance=JUDGE, source="judge")]
    )

    decide(decided("undecided"))

    assert one(dataset) == made(revision=3, **drawn)
    assert dataset.judgments() == []


def test_the_ledger_says_who_decided_what_and_when(dataset, decide):
    """What was taken back happened all the same."""
    dataset.write_queries([made()])
    decide(decided("reject", note="no"))
    decide(decided("undecided", note="oh"))
    decide(decided("undecided"))

    lines = (dataset.path / "reviews.jsonl").read_text().splitlines()
    events = [ReviewEvent.model_validate_json(line) for line in lines]
    told = [(event.by, event.decision, event.note) for event in events]
    assert told == [("Ann", "reject", "no"), ("Ann", "undecided", "oh")]
    assert all(datetime.fromisoformat(event.at).tzinfo for event in events)
    assert "reviews.jsonl" not in dataset.manifest.files


def test_a_decision_of_another_is_taken_back_on_purpose_only(dataset, decide):
    """As for any decision against another's."""
    dataset.write_queries([made()])
    decide(decided("approve"))

    with pytest.raises(DataError, match="Ann decided approve; settle it"):
        decide(decided("undecided"), reviewer="Bo")
    decide(decided("undecided"), reviewer="Bo", overrule=True)

    assert one(dataset) == made()


def test_a_decision_of_before_there_was_a_ledger_is_not_taken_back(dataset, decide):
    """Nothing tells whether it was quarantined, or how it was worded: nothing is guessed."""
    approved = made(reviewed=Review(decision="edit", by="Ann"))
    dataset.write_queries([approved])

    with pytest.raises(DataError, match="decide otherwise instead"):
        decide(decided("undecided"))
    decide(decided("reject"))
    with pytest.raises(DataError, match="decide otherwise instead"):
        decide(decided("undecided"))

    assert one(dataset).status == "retired"


def test_a_former_question_that_another_query_has_now_does_not_come_back(dataset, decide):
    """No question is in a set twice."""
    dataset.write_queries([made(), made("q2")])
    decide(decided("edit", new_query="What else?"))
    decide(decided("edit", "q2", new_query="What is q1?"))

    with pytest.raises(DataError, match="'q2' has its former question now"):
        decide(decided("undecided", revision=2))


def test_a_status_that_a_refresh_gave_stays_when_a_decision_is_taken_back(dataset, decide):
    """Its document is gone, whoever decided what."""
    dataset.write_queries([made()])
    decide(decided("approve"))
    dataset.write_queries([one(dataset).model_copy(update={"status": "retired"})])

    decide(decided("undecided"))

    assert one(dataset) == made(status="retired")


def test_a_torn_line_of_the_ledger_is_passed_over(dataset, decide):
    """A crash must not keep people from their work."""
    dataset.write_queries([made(), made("q2")])
    decide(decided("approve"))
    with (dataset.path / "reviews.jsonl").open("a") as stream:
        stream.write('{"at":"20')
    decide(decided("approve", "q2"))

    result = decide(decided("undecided"), decided("undecided", "q2"))

    assert result.counts["taken_back"] == 2


def test_a_dry_run_writes_no_line(dataset, decide):
    """It checks, and no more."""
    dataset.write_queries([made()])

    decide(decided("approve"), dry_run=True)

    assert not (dataset.path / "reviews.jsonl").exists()


def test_a_query_that_is_undecided_is_left_open(dataset, decide):
    """Whoever chooses so on the page has said no more than who chose nothing."""
    dataset.write_queries([made(), made("q2")])

    result = decide(decided("approve"), decided("undecided", "q2", random="random"))

    assert (result.counts["undecided"], result.drawn_open) == (1, 1)
    assert dataset.all_queries()[1] == made("q2")


def test_labels_from_before_they_knew_their_question_learn_it_from_an_edit(tmp_path):
    """Else they would count for the new one."""
    dataset = sampled_set(tmp_path / "set", 2)
    files = calibration_files(dataset)
    pairs = files.sample().pairs
    said = {"labeller": "Ann", "grade": 3}
    known = ("query_id", "chunk_id", "text_sha256", "stratum", "probability")
    files.write_labels(
        Label(**{name: getattr(pair, name) for name in known}, **said) for pair in pairs
    )
    path = tmp_path / "review.json"
    path.write_text(json.dumps([decided("edit", "q0", new_query="Who?")]), encoding="utf-8")

    review_dataset(dataset, path, "Bo")

    found = worded_labels(dataset, files)
    assert [label.query_id for label in found.former] == ["q0"]
    assert [label.wording_sha256 for label in found.now] == [""]


def test_an_edit_of_anothers_edit_is_made_on_purpose_only(dataset, decide):
    """Her words would be gone, and nobody would have been asked."""
    dataset.write_queries([made()])
    decide(decided("edit", new_answer="Yes, always."))

    with pytest.raises(DataError, match="Ann decided edit; settle it"):
        decide(decided("edit", revision=2, new_answer="Hardly."), reviewer="Bo")
    decide(decided("edit", revision=2, new_answer="Hardly."), reviewer="Bo", overrule=True)

    assert dataset.queries()[0].expected_answer == "Hardly."
