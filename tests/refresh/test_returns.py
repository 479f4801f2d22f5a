"""What a refresh took away comes back when the documents read as they did."""

import json

import pytest
from nights import SIX, WIDE, Night, make_night
from pipeline.generation.making import run

from ragforge.mock import Script, serving
from ragforge.records import Review

pytestmark = pytest.mark.slow


MANY = ("--unanswerable-most", "1", "--max-new", "0")
LIMIT = "The upload limit of the free plan is 25 megabytes per file."
NOTE = "# A note\n\n{}\n"


@pytest.fixture(scope="module")
def served():
    """A model that answers from the text."""
    with serving(Script()) as running:
        yield running


@pytest.fixture(scope="module")
def base(tmp_path_factory, served):
    """A small set."""
    return make_night(tmp_path_factory.mktemp("returns") / "night", served.url, *SIX)


@pytest.fixture
def limits(tmp_path, served):
    """A hand-made set, whose one query asks for a number."""
    night = Night(tmp_path / "limits", ("--model", "mock", "--base-url", served.url, *WIDE, *MANY))
    night.docs.mkdir(parents=True)
    (night.docs / "limits.md").write_text(f"# Limits\n\n{LIMIT}\n", encoding="utf-8")
    (night.docs / "other.md").write_text("# Other\n\nNothing of it.\n", encoding="utf-8")
    row = {
        "query_id": "u",
        "query": "What is the upload limit of the free plan?",
        "expected_answer": "25 megabytes per file",
        "relevant": [{"doc_id": "limits.md", "quote": LIMIT, "grade": 3}],
    }
    path = night.folder / "golden.jsonl"
    path.write_text(f"{json.dumps(row)}\n", encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set), "-q"]
    assert run(words).code == 0
    return night


@pytest.fixture
def synthetic(limits):
    """Let the set be one that no person wrote."""
    made = [one.model_copy(update={"origin": "synthetic"}) for one in limits.queries.values()]
    limits.dataset.write_queries(made)


@pytest.fixture
def night(base: Night, tmp_path):
    """The same once more."""
    return base.copy(tmp_path / "night", *base.flags, *MANY)


def changes_of(said, query_id):
    """Return what became of a query."""
    return [one for one in said["changes"] if one["query_id"] == query_id]


@pytest.fixture
def converted(night):
    """A query whose quote was gone for a night."""
    before = night.about("payment.md")
    text = (night.docs / "payment.md").read_text(encoding="utf-8")
    night.lose("payment.md")
    night.json()
    (night.docs / "payment.md").write_text(text, encoding="utf-8")
    return before


def test_a_converted_query_is_what_it_was_when_its_text_is_back(night, converted):
    """A slip of one night must not turn a question into its opposite for good."""
    assert not night.queries[converted.query_id].answerable

    [change] = changes_of(night.json(), converted.query_id)
    now = night.queries[converted.query_id]

    update = {"revision": 3, "source_chunk_ids": now.source_chunk_ids}
    assert now == converted.model_copy(update=update)
    assert (change["action"], change["revision"]) == ("revived", 3)
    assert "its quotes of revision 1 stand again" in change["causes"][0]["detail"]


def test_a_refresh_after_a_return_changes_nothing(night, converted):
    """A set must come to rest."""
    night.json()
    before = night.version_files()

    assert night.json()["status"] == "unchanged"
    assert night.version_files() == before


def test_a_change_elsewhere_after_a_return_leaves_it(night, converted):
    """What is settled is not looked at each night."""
    night.json()
    night.add_document()

    assert changes_of(night.json(), converted.query_id) == []


def test_a_query_is_lost_and_found_as_often_as_its_text(night, converted):
    """Every loss and every return is a revision, and none is forgotten."""
    night.json()
    text = (night.docs / "payment.md").read_text(encoding="utf-8")
    night.lose("payment.md")
    night.json()
    (night.docs / "payment.md").write_text(text, encoding="utf-8")
    night.json()

    now = night.queries[converted.query_id]
    assert (now.revision, now.expected_answer) == (5, converted.expected_answer)
    kept = [one.revision for one in night.dataset.past.revisions() if one.query_id == now.query_id]
    assert kept == [1, 2, 3, 4]


@pytest.mark.usefixtures("synthetic")
def test_an_answer_that_changed_back_is_the_earlier_revision(limits):
    """Its facts, checks and grades hold again; no call could tell more."""
    before = limits.queries["u"]
    limits.edit("limits.md", lambda text: text.replace("25", "40"))
    [lost] = changes_of(limits.json(), "u")
    limits.edit("limits.md", lambda text: text.replace("40", "25"))
    [back] = changes_of(limits.json(), "u")

    assert (lost["action"], back["action"], back["calls"]) == ("answer_changed", "revived", 0)
    now = limits.queries["u"]
    assert now == before.model_copy(update={"revision": 3, "split": now.split})
    assert limits.json()["status"] == "unchanged"


def test_another_answer_to_what_a_person_wrote_waits_for_a_person(limits):
    """And goes when the text is back."""
    before = limits.queries["u"]
    limits.edit("limits.md", lambda text: text.replace("25", "40"))
    [lost] = changes_of(limits.json(), "u")
    limits.edit("limits.md", lambda text: text.replace("40", "25"))
    [back] = changes_of(limits.json(), "u")

    assert (lost["action"], back["action"]) == ("quarantined", "revived")
    assert "40 megabytes" in lost["causes"][-1]["detail"]
    now = limits.queries["u"]
    assert (now.expected_answer, now.evidence, now.revision, now.origin) == (
        before.expected_answer,
        before.evidence,
        1,
        "human",
    )


def test_a_text_that_is_back_among_others_is_checked_by_a_call(night, converted):
    """What came in beside it may take it back."""
    quote = converted.evidence[0].quote
    night.edit("payment.md", lambda text: text.replace(quote, f"{quote} So it is told by all."))

    [change] = changes_of(night.json(), converted.query_id)

    assert (change["action"], change["revision"], change["calls"]) == ("revived", 3, 1)


def test_what_a_person_approved_meanwhile_stays(night, converted):
    """A person's word goes before what stood there."""
    approved = night.queries[converted.query_id].model_copy(
        update={"reviewed": Review(decision="approve", by="Ann")}
    )
    others = [one for one in night.dataset.all_queries() if one.query_id != approved.query_id]
    night.dataset.write_queries([*others, approved])
    night.json()
    now = night.queries[converted.query_id]

    assert (now.reviewed, now.revision, now.answerable) == (approved.reviewed, 2, False)


@pytest.fixture
def contradicted(limits):
    """A query to which a document that came for a night gives another answer."""
    before = limits.queries["u"]
    (limits.docs / "note.md").write_text(NOTE.format(LIMIT.replace("25", "80")), encoding="utf-8")
    limits.json()
    return before


def test_a_contradicted_query_comes_back_when_nothing_contradicts_it(limits, contradicted):
    """Its own quotes stood all the time."""
    assert limits.queries[contradicted.query_id].status == "quarantined"
    (limits.docs / "note.md").unlink()

    [change] = changes_of(limits.json(), contradicted.query_id)

    assert (change["action"], change["calls"]) == ("revived", 0)
    assert [(one["kind"], one["doc_id"]) for one in change["causes"]] == [
        ("document removed", "note.md")
    ]
    assert "what contradicted it stands there no longer" in change["causes"][0]["detail"]
    now = limits.queries[contradicted.query_id]
    assert now == contradicted.model_copy(update={"split": now.split})


def test_a_contradiction_under_another_name_still_stands(limits, contradicted):
    """Its document was renamed, no more."""
    (limits.docs / "note.md").rename(limits.docs / "remark.md")

    assert changes_of(limits.json(), contradicted.query_id) == []
    (limits.docs / "remark.md").rename(limits.docs / "third.md")
    assert changes_of(limits.json(), contradicted.query_id) == []


def test_a_query_that_is_back_is_held_against_new_chunks(limits, contradicted):
    """The contradiction was put otherwise, not taken back."""
    (limits.docs / "note.md").write_text(NOTE.format(LIMIT.replace("25", "90")), encoding="utf-8")

    [change] = changes_of(limits.json(), contradicted.query_id)

    assert change["action"] == "quarantined"
    assert [one["kind"] for one in change["causes"]] == ["document changed", "new chunk"]
    assert limits.json()["status"] == "unchanged"
