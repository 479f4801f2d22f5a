import csv
import json

import pytest

from ragforge.api.outcomes import Reviewed
from ragforge.errors import DataError
from ragforge.files.formats.review_sheet import write_sheet
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.review_sheets import export_sheet, sheet_rows
from ragforge.pipeline.intake.review_states import shown_state
from ragforge.pipeline.intake.reviewing import review_dataset
from ragforge.pipeline.validating import validate
from ragforge.records import Chunk, Evidence, GateResult, Query, Review

pytestmark = pytest.mark.slow

QUOTE = Evidence(doc_id="a.md", chunk_id="c1", quote="Every 8 days.")
NEXT = Evidence(doc_id="a.md", chunk_id="c2", quote="Every 9 days.")
GONE = Evidence(doc_id="a.md", chunk_id="c0", quote="Every 7 days.")
FAILED = GateResult(gate="premise", verdict="fail")


def made(name="q1", **fields):
    known = {"query": f"How often {name}?", "expected_answer": "8", "evidence": (QUOTE,)}
    return Query(query_id=name, **{**known, **fields})


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        Chunk(chunk_id=item.chunk_id, doc_id="a.md", text=item.quote, start=at * 14)
        for at, item in enumerate((QUOTE, NEXT))
    )
    return made


@pytest.fixture
def sheet(dataset, tmp_path):
    """Write a sheet of the dataset as it is; fill it in and take it in later."""
    path = tmp_path / "sheet.csv"

    def take(*decisions, without=(), **options):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        for row in rows:
            for decision in decisions:
                row.update(decision if row["query_id"] == decision["query_id"] else {})
            for column in without:
                del row[column]
        filled = tmp_path / "filled.csv"
        with filled.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return review_dataset(dataset, filled, "Ann", **options)

    def export():
        path.unlink(missing_ok=True)
        export_sheet(dataset, path)
        return take

    return export


def decided(decision, name="q1", **fields):
    return {"query_id": name, "decision": decision, **fields}


def one(dataset):
    [query] = dataset.all_queries()
    return query


@pytest.mark.parametrize("decision", ["approve", "reject", "pin", "edit"])
@pytest.mark.parametrize(
    "since",
    [
        {"status": "quarantined"},
        {"evidence": (NEXT,)},
        {"expected_answer": "9"},
        {"query": "How often now?"},
        {"answerable": False},
    ],
)
def test_a_decision_is_not_taken_for_another_state_than_was_shown(dataset, sheet, decision, since):
    """An approval would count for what nobody saw: an outdated answer was accepted again."""
    dataset.write_queries([made()])
    take = sheet()
    dataset.write_queries([made(**since)])
    before = (dataset.path / "queries.jsonl").read_bytes()

    new = {"new_answer": "10"} if decision == "edit" else {}
    with pytest.raises(DataError, match="is stale: its status, words or evidence changed since"):
        take(decided(decision, **new))

    assert (dataset.path / "queries.jsonl").read_bytes() == before


def test_a_query_that_came_back_is_not_the_quarantined_one_that_was_shown(dataset, sheet):
    """What is accepted now was said to be in doubt."""
    dataset.write_queries([made(status="quarantined")])
    take = sheet()
    dataset.write_queries([made()])

    with pytest.raises(DataError, match="now it is accepted; export anew"):
        take(decided("reject"))


@pytest.mark.parametrize("status", ["accepted", "quarantined"])
def test_who_decided_on_a_sheet_may_decide_otherwise_on_it(dataset, sheet, status):
    """A decision is no change that its reviewer did not see."""
    dataset.write_queries([made(status=status)])
    take = sheet()

    for decision in ("reject", "approve", "reject", "pin"):
        take(decided(decision))
    take(decided("undecided"))

    assert one(dataset) == made(status=status)


def test_what_a_night_put_out_after_its_approval_is_not_approved_by_that_sheet(dataset, sheet):
    """Her word was for what stood there then; the sheet itself may come again."""
    dataset.write_queries([made()])
    take = sheet()
    take(decided("approve"))
    approved = one(dataset)
    dataset.write_queries([approved.model_copy(update={"status": "quarantined"})])

    assert take(decided("approve")).counts["known"] == 1
    with pytest.raises(DataError, match="is stale"):
        take(decided("pin"))

    assert one(dataset).status == "quarantined"


@pytest.mark.parametrize(
    "since", [{"revision": 1}, {"gates": (FAILED,)}, {"split": "dev"}, {"difficulty": "hard"}]
)
@pytest.mark.parametrize("without", [(), ("state",), ("state", "evidence", "flags")])
def test_a_sheet_is_taken_where_nothing_of_that_changed(dataset, sheet, since, without):
    """Sheets of before there were states are taken, too."""
    dataset.write_queries([made()])
    take = sheet()
    dataset.write_queries([made(**since)])

    take(decided("approve"), without=without)

    assert one(dataset).reviewed == Review(decision="approve", by="Ann", random=True)


def test_other_blanks_in_a_quote_are_no_other_evidence(dataset, sheet):
    """A refresh keeps quotes as their documents have them."""
    dataset.write_queries([made()])
    take = sheet()
    spaced = QUOTE.model_copy(update={"quote": "Every  8\ndays."})
    dataset.write_queries([made(evidence=(spaced,))])

    take(decided("approve"))

    assert one(dataset).reviewed is not None


@pytest.mark.parametrize("since", [{"evidence": (NEXT,)}, {"status": "quarantined"}])
def test_a_sheet_without_states_is_told_by_what_else_it_shows(dataset, sheet, since):
    """It may have been exported long ago."""
    dataset.write_queries([made()])
    take = sheet()
    dataset.write_queries([made(**since)])

    with pytest.raises(DataError, match="is stale"):
        take(decided("approve"), without=["state"])


def test_a_state_is_no_number():
    """A spreadsheet makes 1e+23 of a digest such as 1234e19."""
    assert all(shown_state(made(f"q{at}")).startswith("s_") for at in range(50))


@pytest.mark.parametrize("decision", ["approve", "pin", "edit"])
def test_a_query_whose_evidence_is_gone_is_not_accepted(dataset, sheet, decision):
    """The set would be invalid, and measured by an answer that no document gives."""
    dataset.write_queries([made(status="quarantined", evidence=(QUOTE, GONE))])
    take = sheet()

    new = {"new_query": "How often, then?"} if decision == "edit" else {}
    with pytest.raises(
        DataError, match=r"'Every 7 days.' stands in 'a.md' no more; edit its answer \(new_answer\)"
    ):
        take(decided(decision, **new))

    assert one(dataset).status == "quarantined"
    take(decided("reject"))
    assert one(dataset).status == "retired"


def test_a_new_answer_leaves_evidence_that_is_gone(dataset, sheet):
    """It was of the former answer; what stands of it stays."""
    old = made(status="quarantined", evidence=(QUOTE, GONE), source_chunk_ids=("c1", "c0"))
    dataset.write_queries([old])

    result = sheet()(decided("edit", new_answer="9"))

    now = one(dataset)
    assert (now.status, now.expected_answer, now.evidence) == ("accepted", "9", (QUOTE,))
    assert now.source_chunk_ids == ("c1",)
    assert "1 query with a new answer left without the evidence" in Reviewed(result).table()
    assert Reviewed(result).to_dict()["without_evidence"] == ["q1"]
    assert validate(dataset).problems == []


def test_a_new_answer_taken_back_brings_the_evidence_it_left(dataset, sheet):
    """The query is as it was, and waits for its document again."""
    old = made(status="quarantined", evidence=(GONE,), source_chunk_ids=("c0",))
    dataset.write_queries([old])
    take = sheet()
    take(decided("edit", new_answer="9"))

    take(decided("undecided"))

    assert one(dataset) == old.model_copy(update={"revision": 3})


def test_a_rejection_taken_back_accepts_no_evidence_that_is_gone(dataset, sheet):
    """No night looks at what was rejected, so nothing else would tell."""
    dataset.write_queries([made(evidence=(NEXT,))])
    take = sheet()
    take(decided("reject"))
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text=QUOTE.quote)])

    take(decided("undecided"))

    assert one(dataset).status == "quarantined"
    assert validate(dataset).problems == []


def test_evidence_that_stands_in_another_chunk_now_is_found(dataset, sheet):
    """Chunks get other ids where the text beside a quote changes."""
    moved = QUOTE.model_copy(update={"chunk_id": "c0"})
    dataset.write_queries([made(status="quarantined", evidence=(moved,))])

    sheet()(decided("approve"))

    assert (one(dataset).status, one(dataset).evidence[0].chunk_id) == ("accepted", "c1")
    assert one(dataset).source_chunk_ids == ("c1",)
    [judgment] = dataset.judgments()
    assert (judgment.chunk_id, judgment.grade, judgment.source) == ("c1", 3, "evidence")
    assert validate(dataset).problems == []


def test_a_set_without_chunks_says_nothing_about_evidence(tmp_path):
    """Nothing tells where it stands."""
    dataset = create_dataset(tmp_path / "set", {})
    dataset.write_queries([made(status="quarantined")])
    path = tmp_path / "review.json"
    path.write_text(json.dumps([{"query_id": "q1", "revision": 1, "decision": "approve"}]))

    review_dataset(dataset, path, "Ann")

    assert one(dataset).status == "accepted"


def test_the_state_is_a_column(dataset, tmp_path):
    """It has to come back with the decision."""
    dataset.write_queries([made()])
    rows = sheet_rows(dataset)
    write_sheet(tmp_path / "other.csv", rows)

    assert [row.state for row in rows] == [shown_state(made())]
    assert shown_state(made()) in (tmp_path / "other.csv").read_text(encoding="utf-8-sig")
