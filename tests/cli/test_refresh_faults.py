"""`ragforge refresh` when the corpus, the settings or the machine are not what they were."""

import shutil
import time
from collections import Counter

import pytest
from nights import SIX, make_night
from pipeline.generation.making import endpoint, run, stages

from ragforge.files.shipped_folders import shipped

pytestmark = pytest.mark.slow


PRIVACY = "privacy.md"
RIGHTS = "## Your rights"
"""A heading of that document, behind which it is split."""
CHECKS = {"recheck", "find_answer"}


@pytest.fixture(scope="module")
def running():
    """An endpoint for all runs."""
    with endpoint() as served:
        yield served


@pytest.fixture(scope="module")
def base(tmp_path_factory, running):
    """Six queries about six documents, as generating left them."""
    return make_night(tmp_path_factory.mktemp("base") / "night", running.url, *SIX)


@pytest.fixture
def night(tmp_path, base):
    """The same, to be changed."""
    return base.copy(tmp_path / "night")


@pytest.fixture
def asked(running):
    """Say what was asked for since the test began, by stage."""
    before = len(running.seen)
    return lambda: Counter(stages(running)[before:])


def grades(night):
    """Return the grades by query, and by what the chunks say."""
    texts = {chunk.chunk_id: chunk.text for chunk in night.dataset.chunks()}
    return {
        (one.query_id, " ".join(texts[one.chunk_id].split())): one.grade
        for one in night.dataset.each_judgment()
    }


def splits(night):
    """Return the split of each query."""
    return {query_id: query.split for query_id, query in night.queries.items()}


def evidence_of(night, query_id):
    """Return the document of a query's quote, where it stands in that as it says."""
    [item] = night.queries[query_id].evidence
    [chunk] = [one for one in night.dataset.chunks() if one.chunk_id == item.chunk_id]
    return chunk.doc_id, item.quote in chunk.text


@pytest.mark.parametrize(
    "leave", [shutil.rmtree, lambda path: [p.unlink() for p in path.iterdir()]]
)
def test_a_corpus_that_vanished_stops_the_refresh(night, asked, leave):
    """A mount that is missing is no reason to retire a whole set."""
    before = night.state()
    leave(night.docs)

    done = night.refresh("--accept-churn")

    assert done.code == 3
    assert str(night.docs) in done.err
    assert (night.state(), asked().total()) == (before, 0)


@pytest.fixture(scope="module")
def renamed(tmp_path_factory, base, running):
    """Half of the documents under other names, what was printed, and how often was asked."""
    night = base.copy(tmp_path_factory.mktemp("renamed") / "night")
    for name in SIX[:3]:
        (night.docs / f"{name}.md").rename(night.docs / f"new-{name}.md")
    before = len(running.seen)
    return night, night.json("--vanished-most", "0.3"), len(running.seen) - before


def test_renaming_half_of_the_documents_takes_no_call(renamed):
    """A folder that was tidied up says nothing new."""
    _, found, calls = renamed

    assert (found["status"], calls) == ("published", 0)
    assert found["items"] == {"kept": 3, "remapped": 3}
    assert found["documents"]["removed"] == []


def test_evidence_and_grades_follow_renamed_documents(renamed, base):
    """Their chunks have other ids, and say the same."""
    night, found, _ = renamed
    documents = {item.doc_id for query in night.dataset.queries() for item in query.evidence}

    assert documents == {
        *(f"new-{name}.md" for name in SIX[:3]),
        *(f"{name}.md" for name in SIX[3:]),
    }
    assert grades(night) == grades(base)
    assert found["judgments"]["dropped"] == 0


def test_ids_and_splits_stay_when_documents_are_renamed(renamed, base):
    """What was trained on yesterday must not be tested on today."""
    assert splits(renamed[0]) == splits(base)


def test_a_document_in_another_encoding_stays_as_it_was_and_is_told(night, asked):
    """One that cannot be read was not deleted."""
    before = night.state()
    text = (night.docs / PRIVACY).read_text(encoding="utf-8")
    (night.docs / PRIVACY).write_bytes(text.encode("utf-16"))

    done = night.refresh("--json")

    assert (done.code, done.json["status"]) == (0, "unchanged")
    assert f"{PRIVACY}: passed over: is UTF-16" in done.err
    assert "1 known documents cannot be read now and stay as they were" in done.err
    assert (night.state(), asked().total()) == (before, 0)


def test_a_document_that_cannot_be_read_stays_beside_others_that_changed(night):
    """Its queries are as good as they were."""
    query_id = night.about(PRIVACY).query_id
    (night.docs / PRIVACY).write_bytes(b"caf\xe9 \xff\n")
    night.add_beside("payment.md")

    found = night.json()

    assert found["documents"]["unreadable"] == [PRIVACY]
    assert evidence_of(night, query_id) == (PRIVACY, True)
    assert night.queries[query_id].status == "accepted"


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.replace("\n", "\r\n").encode(),
    ],
    ids=["byte order mark", "line ends"],
)
def test_bytes_that_say_the_same_are_no_change(night, write):
    """An editor on another system writes them."""
    for path in night.docs.iterdir():
        path.write_bytes(write(path.read_text(encoding="utf-8")))

    assert night.json()["status"] == "unchanged"


def respaced(night, old, new):
    """Change the white space of all documents."""
    for path in night.docs.iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"), [("\n\n", "\n\n\n"), (". ", ".  ")], ids=["blank lines", "blanks"]
)
def test_white_space_takes_no_call(night, base, asked, old, new):
    """A formatter went over all documents."""
    respaced(night, old, new)

    found = night.json()

    assert (found["status"], asked().total()) == ("published", 0)
    assert set(found["items"]) <= {"kept", "remapped"}
    assert grades(night) == grades(base)


def test_white_space_that_moves_the_ends_of_chunks_verifies_nothing(night, asked):
    """Blanks count as characters of a chunk; what the documents say is the same."""
    respaced(night, ", ", ",            ")

    found = night.json()

    assert found["documents"]["chunks_added"] > 0
    assert set(found["items"]) <= {"kept", "remapped"}
    assert CHECKS.isdisjoint(asked())


def test_a_document_that_is_split_keeps_its_queries(night, base):
    """Each quote is in one of the two, and is found there."""
    query = night.about(PRIVACY)
    query_id, [item] = query.query_id, query.evidence
    text = (night.docs / PRIVACY).read_text(encoding="utf-8")
    at = text.index(RIGHTS)
    stays, moves = sorted((text[at:], text[:at]), key=lambda part: item.quote in part)
    (night.docs / PRIVACY).write_text(stays, encoding="utf-8")
    (night.docs / "data.md").write_text(moves, encoding="utf-8")

    found = night.json()

    assert found["status"] == "published"
    assert evidence_of(night, query_id) == ("data.md", True)
    assert night.queries[query_id].status == "accepted"
    assert splits(night).items() >= splits(base).items()


def test_documents_that_are_merged_keep_their_queries(night, base):
    """Likewise where two become one, though a query may come to stand between the splits."""
    query_id = night.about(PRIVACY).query_id
    text = (night.docs / PRIVACY).read_text(encoding="utf-8")
    (night.docs / PRIVACY).unlink()
    night.edit("payment.md", lambda before: f"{before}\n\n{text}")

    found = night.json()

    assert (found["status"], found["documents"]["removed"]) == ("published", [PRIVACY])
    assert evidence_of(night, query_id) == ("payment.md", True)
    assert night.queries[query_id].status == "accepted"
    # The text of one split is beside that of the other now, and the query that moved is in neither.
    assert splits(night) == splits(base) | {query_id: None}
    assert night.queries[query_id].split_before == splits(base)[query_id]


def test_documents_that_change_their_names_with_each_other_keep_their_queries(night, base):
    """A name alone says nothing of what stands in a file."""
    ids = {name: night.about(name).query_id for name in (PRIVACY, "payment.md")}
    (night.docs / PRIVACY).rename(night.docs / "third.md")
    (night.docs / "payment.md").rename(night.docs / PRIVACY)
    (night.docs / "third.md").rename(night.docs / "payment.md")

    found = night.json()

    assert found["status"] == "published"
    assert evidence_of(night, ids[PRIVACY]) == ("payment.md", True)
    assert evidence_of(night, ids["payment.md"]) == (PRIVACY, True)
    assert grades(night) == grades(base)


def test_renamed_headings_cost_no_query(night, asked):
    """The answers below them are what they were."""
    night.edit(PRIVACY, lambda text: text.replace("## ", "## About: "))

    found = night.json()

    assert found["items"] == {"kept": 5, "reverified": 1}
    assert asked()["recheck"] == 1


def test_another_chunk_size_verifies_nothing(night, asked):
    """Documents that are cut elsewhere say what they said."""
    found = night.json("--max-chars", "500")

    assert found["documents"]["is_cut_anew"]
    assert set(found["items"]) == {"kept", "remapped"}
    assert CHECKS.isdisjoint(asked())
    assert [evidence_of(night, query_id)[1] for query_id in night.queries] == [True] * 6


def test_a_chunk_size_that_stays_is_no_change_on_the_next_night(night):
    """A schedule has the same flags each night."""
    night.json("--max-chars", "500")

    assert night.json("--max-chars", "500")["status"] == "unchanged"


def test_another_judge_carries_the_grades_and_marks_them(night, asked):
    """Grades of the judge before are not asked for again, nor sold as those of the new one."""
    night.add_beside(PRIVACY)

    found = night.json("--model", "other", "--other-judge", "mix")
    judges = {(one.source, one.provenance.model) for one in night.dataset.each_judgment()}

    assert found["status"] == "published"
    assert judges == {("carried", "mock"), ("evidence", "mock"), ("judge", "other")}
    assert asked()["judge"] == found["calls"]["judge"]
    assert found["judgments"]["kept"] == 0


def test_another_prompt_of_the_judge_carries_the_grades_and_marks_them(tmp_path, night):
    """Likewise where the model stays and is told something else."""
    prompts = tmp_path / "prompts"
    shutil.copytree(shipped("prompts"), prompts)
    for path in prompts.glob("judge*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("system = '''\n", "system = '''\nBe strict.\n"))
    night.add_beside(PRIVACY)

    found = night.json("--prompts-dir", str(prompts))

    assert found["status"] == "published"
    assert (found["judgments"]["kept"], found["judgments"]["carried"] > 0) == (0, True)


def test_a_clock_that_was_set_back_changes_no_byte(tmp_path, base, monkeypatch):
    """Versions are told by their numbers and digests, and by no time."""
    base.copy(tmp_path / "now")
    now, back = base.copy(tmp_path / "a" / "night"), base.copy(tmp_path / "b" / "night")
    true = time.time
    for night in (now, back):
        night.add_beside(PRIVACY)

    now.json()
    monkeypatch.setattr(time, "time", lambda: true() - 10 * 365 * 86_400)
    found = back.json()

    assert (found["status"], back.json()["status"]) == ("published", "unchanged")
    assert back.version(2) == now.version(2)


def test_a_lost_store_changes_nothing_where_nothing_changed(night, asked):
    """What is published is whole without it."""
    shutil.rmtree(night.set / ".ragforge")

    assert night.json()["status"] == "unchanged"
    assert asked().total() == 0


def test_a_lost_store_costs_what_changed_and_no_more(tmp_path, night, asked):
    """Grades and queries stand in the published files, and are taken from there."""
    night.add_beside(PRIVACY)
    whole = night.copy(tmp_path / "whole").json()
    shutil.rmtree(night.set / ".ragforge")

    found = night.json()

    assert found["status"] == "published"
    assert found["spent"]["calls"] == whole["spent"]["calls"]
    assert {key: found[key] for key in ("items", "judgments", "changes")} == {
        key: whole[key] for key in ("items", "judgments", "changes")
    }


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory, base):
    """A set from which one of six documents was deleted."""
    night = base.copy(tmp_path_factory.mktemp("forgotten") / "night")
    query_id = night.about(PRIVACY).query_id
    (night.docs / PRIVACY).unlink()
    return night, query_id, night.json("--vanished-most", "0.3")


def test_queries_of_a_deleted_document_do_not_stay_active(forgotten):
    """Nobody can answer them any more."""
    night, query_id, found = forgotten

    assert found["documents"]["removed"] == [PRIVACY]
    assert night.queries[query_id].status == "retired"
    assert PRIVACY not in {chunk.doc_id for chunk in night.dataset.chunks()}


def test_queries_of_a_document_that_comes_back_come_back(tmp_path, forgotten, base):
    """They are paid for, and people know them."""
    night, query_id = forgotten[0].copy(tmp_path / "night"), forgotten[1]
    shutil.copy(base.docs / PRIVACY, night.docs)

    found = night.json()

    assert found["items"]["revived"] == 1
    assert evidence_of(night, query_id) == (PRIVACY, True)
    assert night.queries[query_id].status == "accepted"
    assert night.queries[query_id].split == base.queries[query_id].split


def review(night, **decided):
    """Have a person decide about the query of the document."""
    row = {"query_id": night.about(PRIVACY).query_id, "revision": "1", **decided}
    path = night.folder / "review.csv"
    path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n", encoding="utf-8")
    words = ["review", "import", str(path), "--reviewer", "Ann", "--dataset", str(night.set)]
    done = run(words)
    assert done.code == 0, done.err
    return row["query_id"]


@pytest.fixture(scope="module")
def edited(tmp_path_factory, base):
    """A set of which a person wrote one query anew, and a document changed; its plan as well."""
    night = base.copy(tmp_path_factory.mktemp("edited") / "night")
    wording = {"new_query": "When do petals end?", "new_answer": "With the account."}
    query_id = review(night, decision="edit", **wording)
    night.add_beside("payment.md")
    plan = night.json("--dry-run")["plan"]
    return night, query_id, plan, night.json()


def test_what_a_person_wrote_survives(edited):
    """It was the dearest part of the set."""
    night, query_id, _, found = edited
    query = night.queries[query_id]

    assert found["status"] == "published"
    assert (query.query, query.expected_answer) == ("When do petals end?", "With the account.")
    assert query.reviewed.by == "Ann"


def test_the_pool_of_what_a_person_wrote_is_judged(edited):
    """Its grades were of another wording; without any the version would have holes."""
    night, query_id, plan, found = edited
    judged = [
        one
        for one in night.dataset.each_judgment()
        if (one.query_id, one.source) == (query_id, "judge")
    ]

    assert len(judged) >= 10
    assert 10 <= plan["pairs_to_judge"] <= found["judgments"]["judged"]


def test_what_a_person_rejected_does_not_come_back(night):
    """However often its document changes."""
    query_id = review(night, decision="reject")
    before = night.queries[query_id].status
    night.add_beside("payment.md")
    night.edit(PRIVACY, lambda text: f"{text}\nThe end.\n")

    found = night.json()

    assert found["status"] == "published"
    assert night.queries[query_id].status == before != "accepted"


@pytest.mark.parametrize("spoil", [lambda path: path.write_text(""), lambda path: path.unlink()])
def test_queries_that_are_lost_stop_the_refresh(night, asked, spoil):
    """A version with no queries is not one that is as good as the last."""
    (night.docs / PRIVACY).unlink()
    spoil(night.set / "queries.jsonl")
    before = night.state()

    done = night.refresh()

    assert done.code == 3
    assert "queries.jsonl: " in done.err
    assert (night.state(), asked().total()) == (before, 0)
