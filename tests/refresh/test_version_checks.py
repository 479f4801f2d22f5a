import shutil

import pytest

from ragforge.config import Settings
from ragforge.files.manifest import FileEntry, Manifest, ReviewAudit
from ragforge.files.set.dataset import Dataset
from ragforge.records import (
    Cause,
    Chunk,
    DocumentsDiff,
    Evidence,
    ItemChange,
    Judgment,
    Pin,
    PoolEntry,
    Query,
    SourceDocument,
)
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.version_checks import check_version
from ragforge.stages.generate.splits import Connections

TEXT = "The oven reaches 250 degrees after nine minutes of heating."
QUESTIONS = (
    "How long does the oven need to reach 250 degrees?",
    "Which detergent removes limescale from a kettle?",
    "Who repairs a broken espresso grinder?",
    "Where is the serial number of a dishwasher printed?",
    "When does the warranty of a fridge end?",
    "Why does the freezer build up so much ice?",
    "What colour is the door of the microwave?",
    "How loud is the extractor hood at night?",
    "Can the toaster handle frozen bagels?",
    "Does the blender crush ice cubes?",
)


def query(number, **changes):
    fields = {
        "query_id": f"q_{number}",
        "query": QUESTIONS[number],
        "expected_answer": "nine minutes",
        "evidence": (Evidence(doc_id="oven.md", chunk_id="c_1", quote="after nine minutes"),),
        "split": "dev",
        **changes,
    }
    return Query(**fields)


def kept(found):
    return UpdatedQuery(found, found)


def turned(before, action="retired", **changes):
    change = ItemChange(
        version=2,
        query_id=before.query_id,
        action=action,
        revision=1,
        causes=(Cause(kind="document changed", doc_id="oven.md"),),
    )
    return UpdatedQuery(before, before.model_copy(update=changes), change)


class Version:
    """Ten queries on one document, and the version that follows."""

    def __init__(self, place):
        self.place = place
        place.mkdir()
        self.parent = Dataset(place / "parent")
        self.parent.path.mkdir()
        self.parent.write_manifest(Manifest(name="ovens"))
        self.parent.write_chunks([Chunk(chunk_id="c_1", doc_id="oven.md", text=TEXT)])
        self.items = [kept(query(number)) for number in range(10)]
        self.text = TEXT
        self.judgments, self.pool, self.audit = [], [], None
        self.connections = Connections()

    def check(self, name, *, is_judged=True, **refresh):
        self.parent.write_queries([item.before for item in self.items if item.before])
        staged = Dataset(self.place / "staged")
        shutil.copytree(self.parent.path, staged.path)
        staged.write_queries([item.query for item in self.items])
        staged.write_chunks([Chunk(chunk_id="c_1", doc_id="oven.md", text=self.text)])
        staged.write_judgments(self.judgments)
        staged.write_pool(self.pool)
        staged.write_manifest(staged.manifest.model_copy(update={"audit": self.audit}))
        settings = Settings.model_validate({"refresh": refresh})
        updated = UpdatedQueries(self.items, connections=self.connections)
        found = check_version(
            self.parent, staged, updated, self._diff(), settings, is_judged=is_judged
        )
        return next(check for check in found if check.name == name)

    def _diff(self):
        nothing, entry = self.place / "nothing.jsonl", FileEntry(sha256="0", records=0)
        nothing.write_text("")
        document = SourceDocument(doc_id="oven.md", sha256="0", n_chars=1, n_chunks=1)
        moves = {} if self.text == TEXT else {"oven.md": DocumentMove(document, document)}
        files = (nothing, entry, nothing, entry, nothing, nothing, "")
        return CorpusDiff(DocumentsDiff(n_before=1, n_now=1), moves, *files)


@pytest.fixture
def version(tmp_path):
    return Version(tmp_path / "version")


CHECKS = (
    "accepted queries",
    "churn",
    "duplicates",
    "holes",
    "evidence",
    "unanswerable",
    "splits",
    "precision",
)


@pytest.mark.parametrize("name", CHECKS)
def test_a_version_that_changes_nothing_passes(version, name):
    """A check that stops what is as good as it was would be switched off."""
    assert version.check(name).passed


@pytest.mark.parametrize(("n_lost", "passed"), [(2, True), (3, False)])
def test_a_version_needs_most_of_the_accepted_queries(version, n_lost, passed):
    """Means over half of a set are not comparable with those over the whole."""
    version.items[:n_lost] = [turned(query(at), status="retired") for at in range(n_lost)]

    check = version.check("accepted queries")

    assert (check.passed, check.found, check.limit) == (passed, 1 - n_lost / 10, 0.8)


@pytest.mark.parametrize(("n_changed", "passed"), [(1, True), (2, False)])
def test_few_queries_may_expect_something_else(version, n_changed, passed):
    """A faulty model at night must not rewrite a set."""
    version.items[:n_changed] = [
        turned(query(at), "answer_changed", expected_answer="ten minutes", revision=2)
        for at in range(n_changed)
    ]

    check = version.check("churn")

    assert (check.passed, check.found) == (passed, n_changed / 10)
    assert check.detail == f"{n_changed} of 10 queries: {n_changed} answer changed"


@pytest.mark.parametrize("action", ["remapped", "reverified", "relinked"])
def test_what_asks_and_expects_the_same_is_no_churn(version, action):
    """Quotes that moved with their document change no figure."""
    version.items = [turned(item.query, action) for item in version.items]

    assert version.check("churn").found == 0


@pytest.mark.parametrize(
    "question",
    [
        "how long does the oven need to reach 250 degrees",
        "How long does an oven need to reach 250 degrees?",
    ],
)
def test_no_new_query_asks_what_another_does(version, question):
    """Two of one kind count twice in every mean."""
    version.items.append(UpdatedQuery(None, query(0, query_id="q_new", query=question)))

    check = version.check("duplicates")

    assert not check.passed
    assert check.detail == "asked twice: q_new as q_0"


def test_a_new_query_asks_nothing_that_was_retired(version):
    """A retired question that comes back under another id has two histories."""
    version.items[0] = turned(query(0), status="retired")
    version.items.append(UpdatedQuery(None, query(0, query_id="q_new")))

    assert not version.check("duplicates").passed


def test_duplicates_that_the_parent_has_are_its_own(version):
    """A hand-made set with two alike could never be refreshed."""
    version.items[1] = kept(query(1, query=QUESTIONS[0]))

    assert version.check("duplicates").passed


def entry(number, chunk_id):
    return PoolEntry(query_id=f"q_{number}", chunk_id=chunk_id, probes={"bm25:query": 1})


def judgment(number, chunk_id, grade, source="judge"):
    return Judgment(query_id=f"q_{number}", chunk_id=chunk_id, grade=grade, source=source)


def test_pooled_pairs_without_a_grade_are_counted(version):
    """A failed judgment and a missing one both leave a hole."""
    version.pool = [entry(0, "c_1"), entry(0, "c_2"), entry(1, "c_1"), entry(1, "c_2")]
    failed = judgment(1, "c_1", None).model_copy(update={"failure": "error"})
    version.judgments = [judgment(0, "c_1", 0), judgment(0, "c_2", 2), failed]

    check = version.check("holes")

    assert (check.passed, check.found) == (False, 0.5)
    assert check.detail == "2 of 4 pooled pairs without a grade"


def test_holes_of_retired_queries_do_not_count(version):
    """Nobody measures by them."""
    version.items[0] = turned(query(0), status="retired")
    version.pool = [entry(0, "c_1")]

    assert version.check("holes").detail == "no pool was judged"


def test_quotes_have_to_stand_in_the_changed_document(version):
    """No query whose evidence is gone stays active."""
    version.text = "The oven reaches 250 degrees after ten minutes."

    check = version.check("evidence")

    assert (check.passed, check.found) == (False, 10)
    assert check.detail.startswith("quotes that stand nowhere: q_0, q_1")


def test_what_did_not_change_is_not_looked_up(version):
    """The cost grows with what changed."""
    lost = query(0, evidence=(Evidence(doc_id="a.md", chunk_id="c_9", quote="gone"),))
    version.items[0] = kept(lost)

    assert version.check("evidence").found == 0


def test_quotes_of_new_queries_are_looked_up(version):
    """What a model makes up is no evidence."""
    made_up = (Evidence(doc_id="oven.md", chunk_id="c_1", quote="after two hours"),)
    version.items[0] = UpdatedQuery(None, query(0, evidence=made_up))

    assert version.check("evidence").detail == "quotes that stand nowhere: q_0"


def test_no_chunk_answers_what_has_no_answer(version):
    """A system that finds the answer would be told that it is wrong."""
    version.items[0] = turned(query(0), "converted", answerable=False, evidence=())
    version.judgments = [judgment(0, "c_1", 3)]

    assert not version.check("unanswerable").passed


def test_what_nobody_judged_was_not_looked_at(version):
    """A new document may well hold the answer."""
    check = version.check("unanswerable", is_judged=False)

    assert (check.passed, check.found) == (True, None)
    assert check.detail == "not looked at: no new chunk was judged"


def test_an_answer_that_is_known_stops_a_version_that_nobody_judged(version):
    """A person may have graded the chunk."""
    version.items[0] = turned(query(0), "converted", answerable=False, evidence=())
    version.judgments = [judgment(0, "c_1", 3)]

    assert not version.check("unanswerable", is_judged=False).passed


def test_a_person_may_say_that_it_has_no_answer(version):
    """People know more than the judge."""
    pinned = {"answerable": False, "evidence": (), "pinned": Pin(by="Ada")}
    version.items[0] = turned(query(0), "converted", **pinned)
    version.judgments = [judgment(0, "c_1", 3)]

    assert version.check("unanswerable").passed


def test_an_old_contradiction_is_the_parents(version):
    """A set that people brought in could never be refreshed."""
    version.items[0] = kept(query(0, answerable=False, evidence=()))
    version.judgments = [judgment(0, "c_1", 3)]
    version.parent.write_judgments(version.judgments)

    assert version.check("unanswerable").passed


def test_no_query_changes_its_split(version):
    """What was tuned on must not come into test."""
    version.items[0] = turned(query(0), "remapped", split="test")

    check = version.check("splits")

    assert (check.passed, check.detail) == (False, "in another split: q_0")


def test_a_query_that_left_its_split_is_no_query_of_another(version):
    """It is in the figures of neither, which is what the check asks for."""
    version.items[0] = turned(query(0), "remapped", split=None, split_before="dev")

    check = version.check("splits")

    assert check.passed
    assert check.detail.endswith("no document connects the two; 1 query is in none")


def test_pinned_queries_that_documents_connect_stop_a_version(version):
    """The tool must not move them, so that a person has to decide."""
    pinned = Pin(by="Ada")
    version.items[0] = kept(query(0, pinned=pinned))
    version.items[1] = turned(query(1, pinned=pinned, split="test"), "reverified")
    documents = {item.query.query_id: [item.query.query_id] for item in version.items}
    documents |= {"q_0": ["oven.md"], "q_1": ["oven.md"]}
    version.connections = Connections(documents, {"q_1"})

    check = version.check("splits")

    assert not check.passed
    assert check.detail.endswith("connected with the other split through documents: q_1 with q_0")


@pytest.mark.parametrize(("least", "passed"), [(0.7, True), (0.8, False)])
def test_the_low_end_of_the_precision_counts(version, least, passed):
    """Nine of ten may well be seven of ten."""
    version.audit = ReviewAudit(
        n=10, n_right=9, precision=0.9, low=0.75, high=0.98, reviewers=("Ada",)
    )

    check = version.check("precision", precision_least=least)

    assert (check.passed, check.found) == (passed, 0.75)


def test_precision_that_nobody_looked_at_fails_where_it_is_asked_for(version):
    """A missing value is no pass."""
    check = version.check("precision", precision_least=0.5)

    assert (check.passed, check.found) == (False, None)
    assert "ragforge review" in check.detail
