import asyncio
import shutil

import pytest

from ragforge.config import ChunkSettings, Settings
from ragforge.errors import UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped
from ragforge.observe import silent
from ragforge.pipeline.generation.generating import generate_dataset
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.job import Job
from ragforge.pipeline.rederiving import rederive_dataset
from ragforge.pipeline.validating import validate
from ragforge.records import Judgment, Pin

pytestmark = pytest.mark.slow


DOCUMENTS = shipped("datasets") / "helpcentre" / "documents"


@pytest.fixture
def made(tmp_path):
    """A set of the shipped sample, drawn by rule."""
    settings = Settings.model_validate({"generate": {"n": 40}})
    asyncio.run(generate_dataset(tmp_path / "set", cut(2000), Job(settings, silent)))
    return Dataset(tmp_path / "set")


def cut(max_chars, documents=DOCUMENTS):
    return ChunkSource([documents], None, ChunkSettings(max_chars=max_chars), silent)


def rederive(dataset, max_chars=400, documents=DOCUMENTS):
    with cut(max_chars, documents).prepared(dataset.store_path.parent) as prepared:
        return rederive_dataset(dataset, prepared)


@pytest.mark.parametrize("max_chars", [120, 400, 5000])
def test_quotes_outlive_another_size_of_chunks(made, max_chars):
    """A set that a new chunker makes worthless cannot compare chunkers."""
    found = rederive(made, max_chars)

    assert (found.n_found, found.n_quotes) == (40, 40)
    assert validate(made).problems == []


def test_every_query_keeps_relevant_chunks(made):
    """Its qrels follow from the quotes, without a call."""
    rederive(made, 120)

    chunk_ids = {chunk.chunk_id for chunk in made.chunks()}
    relevant = {item.query_id for item in made.judgments() if item.chunk_id in chunk_ids}
    assert relevant == {query.query_id for query in made.queries()}


def test_doing_it_again_changes_nothing(made):
    """An interrupted run is simply repeated."""
    rederive(made)
    before = {path.name: path.read_bytes() for path in made.path.glob("*.json*")}
    rederive(made)

    assert {path.name: path.read_bytes() for path in made.path.glob("*.json*")} == before


def test_grades_follow_a_chunk_that_reads_the_same(made):
    """What was paid for stays where it is still true, and is dropped where it is not."""
    chunks = sorted(made.chunks(), key=lambda chunk: len(chunk.text))
    query = made.queries()[0]
    graded = [
        Judgment(query_id=query.query_id, chunk_id=chunk.chunk_id, grade=1, source="judge")
        for chunk in (chunks[0], chunks[-1])
    ]
    made.write_judgments([*graded, *(j for j in made.judgments() if j.query_id != query.query_id)])

    found = rederive(made, 400)

    assert (found.n_kept, found.n_dropped) == (1, 1)


def test_documents_that_changed_are_told(made, tmp_path):
    """A quote that stands somewhere may answer no more: nobody is asked here."""
    documents = tmp_path / "documents"
    shutil.copytree(DOCUMENTS, documents)
    doc_id = made.queries()[0].evidence[0].doc_id
    text = (documents / doc_id).read_text(encoding="utf-8")
    (documents / doc_id).write_text(f"{text}\nMore of it.\n", encoding="utf-8")

    assert rederive(made, 400, documents).changed == [doc_id]


def test_documents_that_are_cut_otherwise_are_not_told_as_changed(made):
    """Another size of chunks is what it is for."""
    assert rederive(made, 400).changed == []


def test_a_renamed_document_keeps_its_evidence_and_grades(made, tmp_path):
    """Its text is the same, so that nothing is lost and nothing judged again."""
    query = made.queries()[0]
    before = query.evidence[0].doc_id
    documents = shutil.copytree(DOCUMENTS, tmp_path / "documents")
    path = next(path for path in documents.rglob("*") if before.endswith(path.name))
    path.rename(path.with_name(f"other-{path.name}"))
    chunk = next(chunk for chunk in made.chunks() if chunk.doc_id == before)
    grade = Judgment(query_id=query.query_id, chunk_id=chunk.chunk_id, grade=1, source="human")
    made.write_judgments([*made.judgments(), grade])

    found = rederive(made, 2000, documents)

    assert (found.n_found, found.n_kept, found.n_dropped) == (40, 1, 0)
    assert list(found.renamed) == [before]
    [now] = [item for item in made.judgments() if item.source == "human"]
    [text] = [one.text for one in made.chunks() if one.chunk_id == now.chunk_id]
    assert text == chunk.text


def test_a_lost_quote_quarantines_its_query_unless_it_is_pinned(made, tmp_path):
    """A query without its evidence must not count; a person's word is not overruled in silence."""
    first, second, *_ = made.queries()
    pinned = second.model_copy(update={"pinned": Pin(by="ada")})
    made.write_queries([*(q for q in made.all_queries() if q.query_id != second.query_id), pinned])
    documents = tmp_path / "documents"
    for path in DOCUMENTS.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for query in (first, second):
                text = text.replace(query.evidence[0].quote, "Nothing.")
            copy = documents / path.relative_to(DOCUMENTS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")

    found = rederive(made, 2000, documents)

    assert {name for name, _ in found.lost} >= {first.query_id, second.query_id}
    status = {query.query_id: query.status for query in made.all_queries()}
    assert (status[first.query_id], status[second.query_id]) == ("quarantined", "accepted")


def test_chunks_of_other_documents_are_refused(made, tmp_path):
    """A wrong path must not quarantine a whole set."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# Whales\n\nThey eat krill, and a lot of it every day.\n")

    with pytest.raises(UsageError, match="none of its 40 quotes stands in these chunks"):
        rederive(made, documents=other)


def test_a_set_under_new_chunks_grows_and_keeps_what_it_had(made):
    """Generation would make other queries from these chunks; those that are there were paid for."""
    rederive(made, 400)
    before = {query.query_id: query for query in made.queries()}
    settings = Settings.model_validate({"generate": {"n": 46}})

    result = asyncio.run(generate_dataset(made.path, cut(400), Job(settings, silent)))

    after = {query.query_id: query for query in made.queries()}
    assert (result.n_wanted, len(after)) == (46, 46)
    assert {name: after[name] for name in before} == before
    assert {j.query_id for j in made.judgments() if j.source == "evidence"} == set(after)


def test_growing_under_new_chunks_is_free_the_second_time(made):
    """What was settled stays, and what came after is made again as it was."""
    rederive(made, 400)
    settings = Settings.model_validate({"generate": {"n": 46}})
    asyncio.run(generate_dataset(made.path, cut(400), Job(settings, silent)))
    before = {path.name: path.read_bytes() for path in made.path.iterdir() if path.is_file()}
    asyncio.run(generate_dataset(made.path, cut(400), Job(settings, silent)))

    assert {
        path.name: path.read_bytes() for path in made.path.iterdir() if path.is_file()
    } == before


def test_the_same_chunks_again_change_nothing(made):
    """A set whose chunks did not change is the one that was generated."""
    before = made.manifest

    rederive(made, 2000)

    assert made.manifest.made_from == before.made_from
    assert made.manifest.steps == before.steps


def test_a_quote_that_comes_back_frees_its_query(made, tmp_path):
    """A page that was gone for a night must not cost its queries for good."""
    query = made.queries()[0]
    documents = tmp_path / "documents"
    for path in DOCUMENTS.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace(query.evidence[0].quote, "Nothing.")
            copy = documents / path.relative_to(DOCUMENTS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
    assert query.query_id in rederive(made, 2000, documents).quarantined

    assert query.query_id in rederive(made, 2000).freed
    assert query.query_id in {item.query_id for item in made.queries()}
