"""What people graded, over nights in which their texts change, go and come back."""

import json
import shutil

import pytest
from nights import POLICIES, SIX, WIDE, Night
from pipeline.generation.making import generate, run

from ragforge.records import DormantGrade

LEAVES = "The zeppelin leaves at seven in the morning"
GATHER = "Passengers of the zeppelin gather early."
MAST = f"# Mast\n\n{LEAVES} from the northern mast.\n"
HALL = f"# Hall\n\n{GATHER}\n"


def golden(query_id, query, answer, *relevant):
    """Return a row of a hand-made set, whose relevant quotes a person graded."""
    rows = [{"doc_id": doc, "quote": quote, "grade": grade} for doc, quote, grade in relevant]
    return {"query_id": query_id, "query": query, "expected_answer": answer, "relevant": rows}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A hand-made set: of one query a person graded the answer 2, and a text beside it 1."""
    night = Night(tmp_path_factory.mktemp("people") / "base", ("--churn-most", "1", *WIDE))
    night.docs.mkdir(parents=True)
    rows = [
        golden(
            "z",
            "When does the zeppelin leave?",
            "seven in the morning",
            ("mast.md", LEAVES, 2),
            ("hall.md", GATHER, 1),
        )
    ]
    (night.docs / "mast.md").write_text(MAST, encoding="utf-8")
    (night.docs / "hall.md").write_text(HALL, encoding="utf-8")
    for n in range(8):
        said = f"gadget{n} is assembled by worker{n} in hall {n}"
        text = f"# Topic {n}\n\nParagraph {n} speaks about widget{n} and how {said}.\n"
        (night.docs / f"misc{n}.md").write_text(text, encoding="utf-8")
        question = f"Who assembles gadget{n} and where?"
        rows.append(golden(f"m{n}", question, f"worker{n} in hall {n}", (f"misc{n}.md", said, 3)))
    path = night.folder / "golden.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set), "-q"]
    assert run(words).code == 0
    return night


@pytest.fixture
def night(tmp_path, base):
    """The set, to be changed."""
    return base.copy(tmp_path / "night")


def grades(night):
    """Return what the query's chunks were given, by the beginning of their documents' names."""
    documents = {chunk.chunk_id: chunk.doc_id for chunk in night.dataset.chunks()}
    return {
        documents[one.chunk_id]: (one.grade, one.source)
        for one in night.dataset.judgments()
        if one.query_id == "z"
    }


BY_PEOPLE = {"mast.md": (2, "human"), "hall.md": (1, "human")}


def lose(night, *names):
    for name in names:
        (night.docs / name).unlink()
    assert night.refresh().code == 0


def bring(night, name, text):
    (night.docs / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [("in the morning", "in the morn", "reverified"), ("at seven", "at about seven", "relinked")],
)
def test_grades_do_not_follow_quotes_in_other_words(night, old, new, action):
    """Nobody graded them: evidence claims no more than the person gave, whose grade waits."""
    night.edit("mast.md", lambda text: text.replace(old, new))

    found = night.json()

    assert [one["action"] for one in found["changes"]] == [action]
    assert grades(night) == {**BY_PEOPLE, "mast.md": (2, "evidence")}
    assert [one.judgment.grade for one in night.dataset.past.dormant_grades()] == [2]


def test_a_changed_word_is_looked_at(night):
    """Without a model nobody can tell what another word says."""
    night.edit("mast.md", lambda text: text.replace("leaves", "departs"))

    [change] = night.json()["changes"]

    assert (change["action"], night.queries["z"].status) == ("quarantined", "quarantined")
    assert grades(night) == {"hall.md": (1, "human")}


@pytest.mark.parametrize("new", ["departs", "departs at about seven, not"])
def test_grades_follow_quotes_back(night, new):
    """A change that is taken back leaves the set as it was."""
    night.edit("mast.md", lambda text: text.replace("leaves", new))
    night.refresh()
    bring(night, "mast.md", MAST)
    night.refresh()

    assert grades(night) == BY_PEOPLE


def test_a_grade_does_not_go_to_a_text_that_nobody_graded(night):
    """What another page says of the same answer is not what the person read."""
    night.edit("mast.md", lambda text: text.replace(LEAVES, "It is moored"))
    bring(night, "times.md", "# Times\n\nSeven in the morning is when zeppelins depart.\n")

    night.refresh()

    assert grades(night).get("times.md", (None, ""))[1] != "human"


def test_grades_come_back_with_their_documents(night):
    """A folder that was away for a night must not cost what people did."""
    lose(night, "mast.md", "hall.md")
    assert grades(night) == {}
    bring(night, "mast.md", MAST)
    bring(night, "hall.md", HALL)

    night.refresh()

    assert grades(night) == BY_PEOPLE


def test_grades_come_back_with_a_document_of_another_name(night):
    """The text is what was graded, not its place."""
    lose(night, "hall.md")
    bring(night, "lounge.md", HALL)

    night.refresh()

    assert grades(night) == {"mast.md": (2, "human"), "lounge.md": (1, "human")}


def test_graded_quotes_come_back_in_another_text(night):
    """A person graded the quote, whatever stands around it."""
    lose(night, "hall.md")
    bring(night, "hall.md", f"# Hall\n\nTea is served. {GATHER} So be early.\n")

    night.refresh()

    assert grades(night) == BY_PEOPLE


def test_grades_wait_in_a_file_of_the_version(night):
    """Whoever looks for what became of a person's grade finds it."""
    lose(night, "hall.md")

    path = night.dataset.files / "dormant_grades.jsonl"
    rows = [DormantGrade.model_validate_json(line) for line in path.read_text().splitlines()]

    assert [(row.doc_id, row.judgment.grade, row.judgment.evidence) for row in rows] == [
        ("hall.md", 1, GATHER)
    ]


def test_grades_wait_over_several_versions(night):
    """A document may be away for long."""
    lose(night, "hall.md")
    night.add_document()
    night.refresh()
    bring(night, "hall.md", HALL)
    night.refresh()

    assert grades(night) == BY_PEOPLE


def test_grades_that_are_back_wait_no_longer(night):
    """One grade that is told twice may be told in two ways."""
    lose(night, "hall.md")
    bring(night, "hall.md", HALL)
    night.refresh()

    assert night.dataset.past.dormant_grades() == []


def test_a_set_with_dormant_grades_is_valid(night):
    """A check of the set must not take what waits for damage."""
    lose(night, "hall.md")

    assert run(["validate", "--dataset", str(night.set)]).code == 0


def test_a_query_that_is_revived_has_its_evidence_grades_again(tmp_path):
    """A query without a relevant chunk marks down every system, whatever it finds."""
    night = Night(tmp_path / "night")
    night.docs.mkdir(parents=True)
    for name in SIX:
        shutil.copy(POLICIES / f"{name}.md", night.docs)
    assert generate(night.set, documents=night.docs, n=16).code == 0
    name = "privacy.md"
    query_id = night.about(name).query_id
    before = of_query(night, query_id)
    lose(night, name)
    shutil.copy(POLICIES / name, night.docs)

    found = night.json()

    revived = [one["query_id"] for one in found["changes"] if one["action"] == "revived"]
    assert (query_id in revived, of_query(night, query_id)) == (True, before)


def of_query(night, query_id):
    """Return the judgments of a query."""
    return [one for one in night.dataset.judgments() if one.query_id == query_id]


@pytest.mark.parametrize("nights", [1, 2])
def test_a_grade_goes_to_a_copy_that_was_there_before(night, nights):
    """A file that is copied one night and removed the next is a move in two steps.

    The grade waited for its text, which was in the corpus all the time.
    """
    (night.docs / "foyer.md").write_text(HALL, encoding="utf-8")
    if nights == 2:
        assert night.refresh().code == 0
    lose(night, "hall.md")

    assert grades(night) == {"mast.md": (2, "human"), "foyer.md": (1, "human")}
    assert night.dataset.past.dormant_grades() == []


def section(name):
    """Return a page of a template, which says the same of each airship."""
    filler = "Whoever comes late has to wait for the next one, which may take a day."
    return f"# {name}\n\n{filler}\n\nIt leaves at seven. Tickets are sold at the mast.\n"


def test_grades_of_pages_that_are_merged_stay_apart(tmp_path):
    """Of two sections with the same words, a person read one for each question."""
    night = Night(tmp_path / "night", ("--churn-most", "1", *WIDE))
    night.docs.mkdir(parents=True)
    names = ("Zeppelin", "Balloon")
    for name in names:
        (night.docs / f"{name}.md").write_text(section(name), encoding="utf-8")
    rows = [
        golden(
            name, f"When does the {name} leave?", "seven", (f"{name}.md", "It leaves at seven.", 3)
        )
        for name in names
    ]
    path = night.folder / "golden.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set), "-q"]
    assert run(words).code == 0
    for name in names:
        (night.docs / f"{name}.md").unlink()
    both = f"{section('Balloon')}\n{section('Zeppelin')}"
    bring(night, "ships.md", both)
    assert night.refresh("--accept-churn").code == 0

    texts = {chunk.chunk_id: chunk.text for chunk in night.dataset.chunks()}
    graded = [(one.query_id, texts[one.chunk_id]) for one in night.dataset.judgments()]
    assert [(query_id, f"# {query_id}" in text) for query_id, text in graded] == [
        ("Balloon", True),
        ("Zeppelin", True),
    ]

    bring(night, "ships.md", both[::-1].replace("neves", "enin", 1)[::-1])
    assert night.refresh("--accept-churn").code == 0

    texts = {chunk.chunk_id: chunk.text for chunk in night.dataset.chunks()}
    graded = {
        one.query_id: texts[one.chunk_id]
        for one in night.dataset.judgments()
        if one.source == "human"
    }
    assert set(graded) == {"Balloon"}
    assert "# Balloon" in graded["Balloon"]
