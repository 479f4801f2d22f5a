"""Runs that a refresh brings along: the texts that a retriever found before the corpus changed."""

import shutil

import pytest
from pipeline.generation.making import run
from refresh.changed_corpora import FIRST, folder_of

from ragforge.cli import main
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import read_history
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.records import (
    Failure,
    Hit,
    Judgment,
    Ranking,
    RetrievedText,
    Span,
    is_text_id,
    text_id,
)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A set with a run of bm25 that is judged, and the folder of its documents."""
    place = tmp_path_factory.mktemp("runs")
    documents, out = folder_of(place / "documents", FIRST), place / "set"
    run(["generate", "--documents", str(documents), "-n", "8", "--out", str(out)])
    assert main(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"]) == 0
    assert main(["judge", "--dataset", str(out), "-q"]) == 0
    return place


@pytest.fixture
def place(before, tmp_path):
    """The same once more."""
    return shutil.copytree(before, tmp_path / "copy", symlinks=True)


def refresh(place, *flags):
    words = ["refresh", "--documents", str(place / "documents"), "--dataset", str(place / "set")]
    assert main([*words, "--accept-churn", *flags]) == 0
    return open_dataset(place / "set")


def edited(place):
    """Change the first words of every paragraph of one document, so that its chunks are others."""
    path = sorted((place / "documents").glob("*.md"))[0]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\n\n", "\n\nIn short: ", 2), encoding="utf-8")


def ids(dataset: Dataset):
    return {hit.chunk_id for item in dataset.run("bm25") for hit in item.ranking}


def test_a_run_is_brought_along_and_told_to_be_of_other_chunks(place, capsys):
    """It is of use until it is made again, and nobody takes it for one of now."""
    edited(place)
    now = refresh(place)
    usable = usable_runs(now)

    assert "run bm25: of " in capsys.readouterr().err
    assert usable.names == ("bm25",)
    assert usable.warnings[0].startswith(
        "run bm25: was made on the chunks of an earlier version, and is measured by the texts that "
        "it found then; `ragforge retrieve"
    )


def test_chunks_that_are_gone_go_along_as_texts_with_their_places(place):
    """What was found stands in the documents, however they are cut now."""
    gone = {chunk.chunk_id: chunk.text for chunk in open_dataset(place / "set").chunks()}
    edited(place)
    now = refresh(place)
    chunks = {chunk.chunk_id for chunk in now.chunks()}
    texts = {text.chunk_id: text for text in now.retrieved_texts()}

    assert texts
    assert {text.text for text in texts.values()} <= set(gone.values())
    assert all(text.places for text in texts.values())
    assert ids(now) <= chunks | texts.keys()


def test_their_grades_go_along(place):
    """A grade belongs to the text."""
    edited(place)
    now = refresh(place)
    graded = {item.chunk_id for item in now.judgments() if is_text_id(item.chunk_id)}

    assert graded == {text.chunk_id for text in now.retrieved_texts()}


def bounds(dataset):
    [run] = load_evaluation_data(dataset, measures=["nDCG@5"], run_names=["bm25"]).runs
    return run.summary.estimates["nDCG@5"]


def test_what_failed_to_be_judged_stays_so(place):
    """A night judges nothing of it: bounds that get narrower would claim knowledge."""
    before = open_dataset(place / "set")
    name = sorted((place / "documents").glob("*.md"))[0].name
    of_document = {chunk.chunk_id for chunk in before.chunks() if chunk.doc_id == name}
    judgments = [
        one.model_copy(update={"grade": None, "failure": "invalid", "contains_answer": None})
        if one.chunk_id in of_document and one.source == "judge"
        else one
        for one in before.judgments()
    ]
    before.write_judgments(judgments)
    keys = [f"{one.query_id}/{one.chunk_id}" for one in judgments if one.is_failed]
    failures = [Failure(what="judge", key=key, kind="invalid", message="no grade") for key in keys]
    before.replace_failures("judge", failures, lambda _: True)
    wide = bounds(before)

    edited(place)
    now = refresh(place)

    failed = [one for one in now.judgments() if one.is_failed]
    assert wide.low < wide.mean < wide.high
    assert bounds(now) == wide
    assert any(is_text_id(one.chunk_id) for one in failed)
    assert [one.key for one in now.failures() if one.what == "judge"] == [
        f"{one.query_id}/{one.chunk_id}" for one in failed
    ]


def test_a_run_that_is_made_again_is_of_now(place):
    """Its texts are gone with it."""
    edited(place)
    now = refresh(place)
    assert main(["retrieve", "--dataset", str(place / "set"), "--retriever", "bm25", "-q"]) == 0

    assert usable_runs(now).warnings == ()
    assert list(now.retrieved_texts()) == []


def test_a_second_refresh_brings_it_along_once_more(place):
    """A text that is a chunk again is that chunk."""
    documents = place / "documents"
    kept = shutil.copytree(documents, place / "kept")
    run_before = open_dataset(place / "set").run("bm25")
    edited(place)
    refresh(place)
    shutil.rmtree(documents)
    kept.rename(documents)
    now = refresh(place)

    assert [item.ranking for item in now.run("bm25")] == [item.ranking for item in run_before]
    assert list(now.retrieved_texts()) == []
    assert usable_runs(now).warnings == ()


def test_no_gate_decides_by_a_run_that_was_brought_along(place, capsys):
    """It says nothing of the system of now: a retriever that failed tonight must not pass."""
    edited(place)
    refresh(place)
    words = ["gate", "--dataset", str(place / "set"), "--run", "bm25", "--min", "RR=0"]

    assert main([*words, "--allow-baseline-judge"]) == 3
    assert "was made on the chunks of an earlier version" in capsys.readouterr().err


def test_the_history_knows_on_which_chunks_it_was_made(place):
    """Else the retriever would have changed on the same corpus."""
    words = ["evaluate", "--dataset", str(place / "set"), "-q"]
    assert main(words) == 0
    edited(place)
    now = refresh(place)
    assert main(words) == 0
    digests = {item.digests.corpus for item in read_history(now.home).evaluations}

    assert len(digests) == 1


def test_texts_of_a_retriever_of_its_own_move_with_their_documents(place):
    """Text put in front moves all offsets, also where the chunks are cut anew at once."""
    before = open_dataset(place / "set")
    path = sorted((place / "documents").glob("*.md"))[0]
    old = path.read_text(encoding="utf-8")
    found = RetrievedText(
        chunk_id=text_id(old[10:90]),
        text=old[10:90],
        places=(Span(doc_id=path.name, start=10, end=90),),
    )
    before.add_retrieved_texts([found], "mine")
    query_id = before.queries()[0].query_id
    hit = Hit(chunk_id=found.chunk_id, score=1.0)
    before.write_run("mine", [Ranking(query_id=query_id, ranking=(hit,))])

    front = "Nobody read this before.\n\n"
    path.write_text(front + old, encoding="utf-8")
    for flags in ((), ("--max-chars", "200")):
        now = refresh(place, *flags)
        moved = {text.chunk_id: text for text in now.retrieved_texts()}[found.chunk_id]

        shift = len(front)
        assert moved.places == (Span(doc_id=path.name, start=10 + shift, end=90 + shift),)
        assert [item.ranking for item in now.run("mine")] == [(hit,)]
        assert "mine" in usable_runs(now).names


def test_a_text_of_a_renamed_document_keeps_its_grade(place):
    """The documents hold it twice, so that its id has the name of the document in it."""
    documents, out = place / "documents", place / "twins"
    path = sorted(documents.glob("*.md"))[0]
    old = path.read_text(encoding="utf-8")
    (documents / "twin.md").write_text(f"# Twin\n\nOf another one.\n\n{old}", encoding="utf-8")
    run(["generate", "--documents", str(documents), "-n", "8", "--out", str(out)])
    before = open_dataset(out)
    span = Span(doc_id=path.name, start=10, end=90)
    found = RetrievedText(chunk_id=text_id(old[10:90], path.name), text=old[10:90], places=(span,))
    before.add_retrieved_texts([found], "mine")
    query_id = before.queries()[0].query_id
    hit = Hit(chunk_id=found.chunk_id, score=1.0)
    before.write_run("mine", [Ranking(query_id=query_id, ranking=(hit,))])
    grade = Judgment(query_id=query_id, chunk_id=found.chunk_id, grade=1, source="human")
    before.write_judgments([*before.judgments(), grade])

    path.rename(documents / "other.md")
    words = ["refresh", "--documents", str(documents), "--dataset", str(out), "--accept-churn"]
    assert main(words) == 0
    now = open_dataset(out)

    [text] = now.retrieved_texts()
    assert text.chunk_id == text_id(found.text, "other.md")
    assert [place.doc_id for place in text.places] == ["other.md"]
    assert [hit.chunk_id for hit in now.run("mine")[0].ranking] == [text.chunk_id]
    graded = {(item.query_id, item.chunk_id): item for item in now.judgments()}
    again = graded[query_id, text.chunk_id]
    assert (again.grade, again.source) == (1, "human")
