import json
import shutil

import pytest

from ragforge.cli import main
from ragforge.files.manifest import FileEntry, Manifest, digest_file
from ragforge.files.record_files import write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import publish, refresh_lock, stage_version
from ragforge.records import (
    Cause,
    Chunk,
    Evidence,
    ItemChange,
    Judgment,
    MovedChunk,
    Query,
    SourceDocument,
)

pytestmark = pytest.mark.slow


CAUSE = Cause(kind="document changed", doc_id="oven.md", before="aa", after="bb")


def query(query_id, **changes):
    quote = Evidence(doc_id="oven.md", chunk_id="c_1", quote="nine minutes", start=0, end=12)
    fields = {
        "query_id": query_id,
        "query": f"How long does {query_id} take?",
        "expected_answer": "nine minutes",
        "evidence": (quote,),
        "source_chunk_ids": ("c_1",),
        "split": "dev",
        **changes,
    }
    return Query(**fields)


def chunk(chunk_id, doc_id="oven.md"):
    return Chunk(chunk_id=chunk_id, doc_id=doc_id, text=f"a text of {chunk_id}")


def document(doc_id, sha256="aa", aliases=()):
    return SourceDocument(doc_id=doc_id, sha256=sha256, n_chars=9, n_chunks=1, aliases=aliases)


def judgment(query_id, chunk_id, grade):
    return Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade)


def event(version, query_id, action, cause=CAUSE):
    return ItemChange(
        version=version, query_id=query_id, action=action, revision=1, causes=(cause,)
    )


def write_documents(dataset, documents):
    path = dataset.files / "documents.new"
    count = write_records(path, documents, lambda one: one.doc_id)
    dataset.take_documents(path, FileEntry(sha256=digest_file(path), records=count))


def first(path):
    """Write a set with a query of each fate."""
    dataset = Dataset(path)
    path.mkdir()
    dataset.write_manifest(Manifest(name="ovens"))
    dataset.write_chunks([chunk("c_1"), chunk("c_2"), chunk("c_3", "old.md")])
    write_documents(dataset, [document("oven.md"), document("old.md", "cc")])
    dataset.write_queries(query(f"q_{name}") for name in ("answer", "kept", "moved", "retired"))
    grades = {"c_1": 3, "c_2": 0}
    dataset.write_judgments(
        [
            *(judgment("q_kept", name, grade) for name, grade in grades.items()),
            judgment("q_moved", "c_2", 2),
        ]
    )
    return dataset


def second(staged):
    """Write what became of them."""
    moved = query("q_moved").evidence[0].model_copy(update={"chunk_id": "c_9", "start": 40})
    staged.write_chunks([chunk("c_1"), chunk("c_3", "new.md"), chunk("c_9")])
    write_documents(staged, [document("oven.md", "bb"), document("new.md", "cc", ("old.md",))])
    staged.write_queries(
        [
            query("q_added", query="What is \x1b[31mnew?"),
            query("q_answer", expected_answer="ten minutes", revision=2),
            query("q_kept"),
            query("q_moved", evidence=(moved,)),
            query("q_retired", status="retired"),
        ]
    )
    staged.write_judgments(
        [
            judgment("q_kept", "c_1", 2),
            judgment("q_kept", "c_3", 1),
            judgment("q_moved", "c_9", 2),
        ]
    )
    staged.past.write_moved_chunks([MovedChunk(before="c_2", now=("c_9",))])
    staged.past.write_events(
        [
            event(2, "q_answer", "answer_changed"),
            event(2, "q_moved", "remapped"),
            event(2, "q_retired", "retired"),
        ]
    )


@pytest.fixture
def versions(tmp_path):
    """A set of two versions."""
    dataset = first(tmp_path / "set")
    with refresh_lock(dataset.path), stage_version(dataset, 2) as staged:
        second(staged)
        publish(staged, dataset.path)
    return tmp_path / "set"


def diff(capsys, *words):
    assert main(["diff", *map(str, words)]) == 0
    return capsys.readouterr().out


@pytest.fixture
def found(versions, capsys):
    return json.loads(diff(capsys, "--dataset", versions, "--since", 1, "--json"))


@pytest.fixture
def by_id(found):
    return {one["query_id"]: one for one in found["queries"]}


@pytest.mark.parametrize(
    ("query_id", "kinds"),
    [
        ("q_added", ["added"]),
        ("q_answer", ["revision", "answer"]),
        ("q_kept", ["grades"]),
        ("q_moved", ["places"]),
        ("q_retired", ["status"]),
    ],
)
def test_it_is_told_in_what_each_query_differs(by_id, query_id, kinds):
    """A figure that moved is explained by the queries behind it."""
    assert by_id[query_id]["kinds"] == kinds


def test_old_and_new_answers_are_both_there(by_id):
    """Whoever reviews a change looks at both."""
    one = by_id["q_answer"]

    assert one["before"]["expected_answer"] == "nine minutes"
    assert one["after"]["expected_answer"] == "ten minutes"


@pytest.mark.parametrize("query_id", ["q_answer", "q_moved", "q_retired"])
def test_causes_are_those_that_the_refreshes_wrote_down(by_id, query_id):
    """A change without its cause asks for a search by hand."""
    assert by_id[query_id]["causes"] == [CAUSE.model_dump()]


def test_a_cause_that_nobody_wrote_down_is_not_known(by_id):
    """A guess would be taken for a record."""
    assert by_id["q_kept"]["causes"] is None


def test_grades_are_counted(found, by_id):
    """Another grade moves a measure as much as another ranking."""
    grades = by_id["q_kept"]["grades"]

    assert {name: grades[name] for name in ("changed", "added", "gone")} == {
        "changed": 1,
        "added": 1,
        "gone": 1,
    }
    assert grades["examples"] == [{"chunk_id": "c_1", "before": 3, "after": 2}]
    assert (found["grades"]["same"], found["grades"]["moved"]) == (0, 1)


def test_documents_and_chunks_are_counted(found):
    """The corpus is the first suspect."""
    assert found["documents"] == {
        "before": 2,
        "after": 2,
        "added": [],
        "gone": [],
        "changed": ["oven.md"],
        "renamed": [{"before": "old.md", "after": "new.md"}],
    }
    assert found["chunks"] == {"before": 3, "after": 3, "kept": 2, "added": 1, "gone": 1}


def test_directories_of_versions_can_be_named(versions, capsys):
    """They are datasets like any other."""
    names = [versions / "versions" / f"00000{number}" for number in (1, 2)]

    found = json.loads(diff(capsys, *names, "--json"))

    assert [found["before"]["version"], found["after"]["version"]] == [1, 2]
    assert found["is_one_line"]


def test_the_text_tells_all_on_one_line_each(versions, capsys):
    """People read it in a terminal, and texts of data must not steer that."""
    out = diff(capsys, "--dataset", versions, "--since", 1)

    assert out.startswith("ovens version 1 -> ovens version 2\n")
    assert '  answer: "nine minutes" -> "ten minutes"\n' in out
    assert "  cause: document changed oven.md\n" in out
    assert "  cause: not known\n" in out
    assert "\x1b" not in out


def test_few_queries_can_be_asked_for(versions, capsys):
    """Ten thousand lines hide what is above them."""
    out = diff(capsys, "--dataset", versions, "--since", 1, "-n", 1)

    assert "q_added" in out
    assert "… and 4 queries more" in out


def test_a_version_and_itself_do_not_differ(versions, capsys):
    """A difference out of nothing would be believed."""
    found = json.loads(diff(capsys, versions, versions / "versions" / "000002", "--json"))

    assert (found["queries"], found["n_same"]) == ([], 5)
    assert found["chunks"]["kept"] == 3


def test_causes_are_not_known_of_two_lines(versions, capsys, tmp_path):
    """Events of another set explain nothing about this one."""
    shutil.copytree(versions / "versions" / "000001", tmp_path / "copy")
    other = Dataset(tmp_path / "copy")
    other.write_manifest(other.manifest.model_copy(update={"licence": "other"}))

    found = json.loads(diff(capsys, other.path, versions, "--json"))

    assert not found["is_one_line"]
    assert {one["causes"] for one in found["queries"]} == {None}


def test_causes_of_the_way_back_are_not_those_of_the_way_there(versions, capsys):
    """Nothing was retired by going back to where it was not."""
    found = json.loads(diff(capsys, versions, versions / "versions" / "000001", "--json"))

    assert not found["is_one_line"]


def test_sets_without_a_list_of_documents_have_their_names(versions, capsys):
    """Sets of ready-made chunks know no more."""
    for number in (1, 2):
        Dataset(versions / "versions" / f"00000{number}").drop_documents()

    found = json.loads(diff(capsys, "--dataset", versions, "--since", 1, "--json"))

    assert found["documents"]["added"] == ["new.md"]
    assert found["documents"]["gone"] == ["old.md"]
    assert found["documents"]["changed"] is None


@pytest.mark.parametrize("words", [[], ["--since", "1"], ["one"], ["a", "b", "--since", "1"]])
def test_what_cannot_be_compared_is_a_usage_error(capsys, words):
    """One version alone has no difference."""
    assert main(["diff", *words]) == 2
    assert "expected two directories" in capsys.readouterr().err


def test_a_version_that_is_not_there_is_named_with_those_that_are(versions, capsys):
    """Versions beyond the newest few are removed."""
    assert main(["diff", "--dataset", str(versions), "--since", "9"]) == 3
    assert "has no version 9; there are: 1, 2" in capsys.readouterr().err


def test_a_directory_of_a_version_that_is_not_there_is_too(versions, capsys):
    """Likewise by its path."""
    gone = versions / "versions" / "000009"

    assert main(["diff", str(gone), str(versions)]) == 3
    assert "has no version 9; there are: 1, 2" in capsys.readouterr().err


def test_a_rejected_version_that_is_not_there_is_told(tmp_path, capsys):
    """The set itself is whole, and must not be called broken."""
    missing = tmp_path / "set" / "rejected" / "000002"

    assert main(["diff", str(missing), str(missing)]) == 3
    assert "000002: no such directory" in capsys.readouterr().err


def test_sources_that_follow_from_quotes_are_no_other_place(tmp_path, capsys):
    """An imported set names none until its quotes are looked up again, where they were."""
    imported, derived = first(tmp_path / "imported"), first(tmp_path / "derived")
    imported.write_queries([query("q", source_chunk_ids=())])
    derived.write_queries([query("q")])

    found = json.loads(diff(capsys, imported.path, derived.path, "--json"))

    assert found["queries"] == []


def test_other_sources_of_a_query_without_quotes_are_other_places(tmp_path, capsys):
    """Nothing else tells where it comes from."""
    before, after = first(tmp_path / "before"), first(tmp_path / "after")
    before.write_queries([query("q", evidence=())])
    after.write_queries([query("q", evidence=(), source_chunk_ids=("c_2",))])

    found = json.loads(diff(capsys, before.path, after.path, "--json"))

    assert [one["kinds"] for one in found["queries"]] == [["places"]]
