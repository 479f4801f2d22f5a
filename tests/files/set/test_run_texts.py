"""Tests of the texts of runs that are no chunks of the set."""

import multiprocessing

import pytest
from measured_set import ranking

from ragforge.files.set.document_level import DocumentNames, document_level
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.records import Chunk, Hit, Judgment, Ranking, RetrievedText, Span, text_id

A, B, C = map(text_id, "abc")


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    made.write_chunks([Chunk(chunk_id="c", doc_id="d", text="A chunk.")])
    return made


def text(name, *starts, doc_ids=()):
    places = tuple(Span(doc_id="d", start=start, end=start + 1) for start in starts)
    return RetrievedText(chunk_id=text_id(name), text=name, places=places, doc_ids=doc_ids)


def add(dataset, run, *texts):
    dataset.add_retrieved_texts(texts, run)
    dataset.write_run(run, [ranking("q", *(text.chunk_id for text in texts))])
    dataset.drop_uncited_texts()


def held(dataset):
    return {item.text: [span.start for span in item.places] for item in dataset.retrieved_texts()}


def test_texts_of_all_runs_are_held_once(dataset):
    """A grade belongs to the text, whichever run it came with."""
    add(dataset, "one", text("a", 1), text("b", 2))
    add(dataset, "two", text("b", 5), text("c", 3))

    assert held(dataset) == {"a": [1], "b": [2, 5], "c": [3]}


def test_what_no_run_holds_any_more_is_dropped(dataset):
    """A run that is made again must not leave its old texts behind."""
    add(dataset, "one", text("a", 1), text("b", 2))
    add(dataset, "one", text("b", 7))

    assert held(dataset) == {"b": [7]}


def test_a_place_that_two_runs_give_with_and_without_blanks_is_one(dataset):
    """As two places the text was no passage of its own any more, and P@5 of a run doubled."""
    whole = text("a", 4)
    places = (Span(doc_id="d", start=3, end=6),)
    add(dataset, "one", whole)
    add(dataset, "two", whole.model_copy(update={"places": places}))

    assert [item.places for item in dataset.retrieved_texts()] == [whole.places]


def test_such_places_of_an_older_version_are_read_as_one(dataset):
    """Runs that were made before are measured right as well."""
    places = tuple(Span(doc_id=doc, start=at, end=6) for doc, at in (("d", 3), ("d", 4), ("e", 3)))
    dataset.write_retrieved_texts([text("a").model_copy(update={"places": places})])

    assert [item.places for item in dataset.retrieved_texts()] == [places[1:]]


def test_removing_the_last_run_removes_the_file(dataset):
    """The set is again what it was."""
    add(dataset, "one", text("a", 1))
    dataset.remove_run("one")

    assert not (dataset.files / "retrieved.jsonl").exists()
    assert "retrieved.jsonl" not in dataset.manifest.files


def test_a_renamed_run_keeps_its_texts(dataset):
    """They are cited under the new name."""
    add(dataset, "one", text("a", 1))
    dataset.rename_run("one", "two")

    assert held(dataset) == {"a": [1]}


def test_runs_of_texts_are_of_the_set(dataset):
    """Texts that the set holds are no chunks of another one."""
    add(dataset, "one", text("a", 1), text("b"), text("c", 2))

    assert usable_runs(dataset).names == ("one",)


def test_texts_are_read_where_chunks_are(dataset):
    """Who judges or shows a hit needs its text, whatever it is."""
    add(dataset, "one", text("a", 1))

    with dataset.chunk_texts({"c", A, B}) as texts:
        assert (texts["c"], texts[A], B in texts) == ("A chunk.", "a", False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("help/store.md", ("help/store.md",)),
        ("/srv/me/docs/help/store.md", ("help/store.md",)),
        ("C:\\docs\\help\\store.md", ("help/store.md",)),
        ("store.md", ("help/store.md",)),
        ("https://docs.example/help/store/", ("help/store.md",)),
        ("https://docs.example/en/help/store.html?v=2#top", ("help/store.md",)),
        ("file:///srv/a%20b.md", ("a b.md",)),
        ("https://docs.example/guide/", ("guide/index.md",)),
        ("Store", ("help/store.md",)),
        ("setup", ()),
        ("nothing", ()),
        ("https://docs.example/", ()),
        ("/srv/me/docs/cafe\N{COMBINING ACUTE ACCENT}.md", ("café.md",)),
        ("", ()),
    ],
)
def test_frameworks_name_documents_by_paths_and_addresses(name, expected):
    """Their loaders know nothing of the ids of the set."""
    names = DocumentNames(
        ["help/store.md", "a b.md", "guide/index.md", "one/setup.md", "two/setup.md", "café.md"]
    )

    assert names.resolve(name) == expected


def write_runs(path, run):
    """Make a run anew, many times, each with texts of its own."""
    dataset = open_dataset(path)
    for number in range(40):
        with dataset.alone():
            add(dataset, run, text("both", number), text(f"{run} {number}"))
        dataset.note(models=[f"{run} {number}"])


def test_processes_that_write_runs_at_once_lose_nothing(dataset):
    """Without a text of it a run would count as stale, and so would one without its record."""
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_runs, args=(dataset.path, run)) for run in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0, 0]
    assert held(dataset).keys() == {"both", "a 39", "b 39"}
    assert dataset.manifest.files.keys() >= {"runs/a.jsonl", "runs/b.jsonl", "retrieved.jsonl"}
    assert len(dataset.manifest.models) == 80
    assert not any(map(dataset.changed_by_hand, dataset.manifest.files))
    assert usable_runs(dataset).names == ("a", "b")


def add_judgments(path, judge):
    """Grade many pairs, each on its own."""
    dataset = open_dataset(path)
    for number in range(30):
        new = Judgment(query_id=f"q{number:02}", chunk_id=judge, grade=1, source="human")
        dataset.add_judgments(iter([new]))


def test_processes_that_judge_at_once_lose_nothing(dataset):
    """A grade may be bought."""
    spawn = multiprocessing.get_context("spawn")
    judges = [spawn.Process(target=add_judgments, args=(dataset.path, name)) for name in "ab"]
    for judge in judges:
        judge.start()
    for judge in judges:
        judge.join()

    assert len(dataset.judgments()) == 60
    assert not dataset.changed_by_hand("judgments.jsonl")


@pytest.mark.parametrize(
    ("labelled", "expected"), [(("d",), ["d"]), (("d", "e"), ["e", "d"]), (("f",), ["e", "d"])]
)
def test_a_text_that_may_be_of_several_documents_is_one_of_the_labelled_one(
    dataset, labelled, expected
):
    """Of two it is that which people graded higher; of none it keeps its rank."""
    places = [Span(doc_id=doc_id, start=0, end=9) for doc_id in ("d", "e")]
    texts = [text("a").model_copy(update={"places": tuple(places)}), text("b", 1), text("c", 2)]
    add(dataset, "one", *texts)
    dataset.write_judgments(
        Judgment(query_id="q", chunk_id=name, grade=grade, source="human", level="document")
        for grade, name in enumerate(labelled, start=1)
    )

    hits = tuple(Hit(chunk_id=name, score=score) for name, score in ((A, 3), (B, 2), (C, 1)))
    level = document_level(dataset, dataset.judgment_table())
    folded = level.ranking(Ranking(query_id="q", ranking=hits))
    assert [hit.chunk_id for hit in folded.ranking] == expected
