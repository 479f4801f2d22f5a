import json

import pytest

from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.generation.source import Prepared
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.rederiving import rederive_dataset
from ragforge.records import Chunk, Judgment

TEXT = "The fee is ten percent. Parcels arrive in three days. The fee is due at once."
WHOLE = "Parcels arrive in three days."


def cut(*ends):
    starts = [0, *ends[:-1]]
    return [
        Chunk(
            chunk_id=f"c{start:02}-{end}",
            doc_id="a.md",
            text=TEXT[start:end],
            start=start,
            end=end,
        )
        for start, end in zip(starts, ends, strict=True)
    ]


@pytest.fixture
def graded(tmp_path):
    """Make a set of one document in one chunk, with quotes that people graded."""

    def make(*quotes):
        dataset = create_dataset(tmp_path / "set", {})
        dataset.write_chunks(cut(len(TEXT)))
        relevant = [{"doc_id": "a.md", "quote": quote, "grade": grade} for quote, grade in quotes]
        path = tmp_path / "golden.json"
        path.write_text(json.dumps([{"id": "q", "query": "What?", "relevant": relevant}]))
        import_queries(path, dataset, silent, made_by="Ann")
        return dataset

    return make


@pytest.fixture
def rederive(tmp_path):
    """Put other chunks under a set."""

    def run(dataset, *ends):
        path = tmp_path / "new.jsonl"
        path.write_text("".join(f"{chunk.model_dump_json()}\n" for chunk in cut(*ends)))
        entry = FileEntry(sha256=digest_file(path), records=len(ends))
        return rederive_dataset(dataset, Prepared(path, entry))

    return run


def grades(dataset):
    return {item.chunk_id: (item.grade, item.source) for item in dataset.judgments()}


@pytest.mark.parametrize("grade", [0, 1, 2, 3])
def test_grade_of_a_quote_follows_it_and_is_not_raised(graded, rederive, grade):
    """A person who gave 2 did not say 3, and who gave 0 did say something."""
    dataset = graded((WHOLE, grade))

    found = rederive(dataset, 24, 54, len(TEXT))

    assert grades(dataset) == {"c24-54": (grade, "human")}
    assert found.n_dropped == 0


def test_chunk_with_a_part_of_a_graded_quote_has_a_part(graded, rederive):
    """It has lost what made the grade a 3."""
    dataset = graded((WHOLE, 3))

    rederive(dataset, 40, len(TEXT))

    assert {grade for grade, _ in grades(dataset).values()} == {2}


def test_doing_it_again_changes_nothing(graded, rederive):
    """An interrupted run is simply repeated."""
    dataset = graded((WHOLE, 3), ("The fee is due at once.", 1))
    rederive(dataset, 24, 54, len(TEXT))
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    rederive(dataset, 24, 54, len(TEXT))

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


def test_graded_quote_that_stands_twice_follows_its_own_place(graded, rederive):
    """`The fee is` opens two sentences; the label is of one of them."""
    dataset = graded(("The fee is", 1))

    rederive(dataset, 24, 54, len(TEXT))

    assert grades(dataset) == {"c00-24": (1, "human")}


def test_grade_whose_words_stand_nowhere_stays_with_a_chunk_that_reads_the_same(graded, rederive):
    """People also write in their own words why a chunk is relevant."""
    dataset = graded((WHOLE, 3))
    own = Judgment(
        query_id="q", chunk_id=f"c00-{len(TEXT)}", grade=1, source="human", evidence="as said above"
    )
    dataset.write_judgments([own])

    rederive(dataset, len(TEXT))

    assert dataset.judgments() == [own]
