"""Tests of the lengths and places of what runs retrieved."""

import pytest

from ragforge.evaluating.retrieved_places import PlacedText, retrieved_places
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, RetrievedText, Span


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="d", text="Alpha beta.", start=2, end=13),
            Chunk(chunk_id="c2", doc_id="d", text="Gamma delta.", start=15, end=27),
            Chunk(chunk_id="c3", doc_id="e", text="Without offsets."),
        ]
    )
    made.write_retrieved_texts(
        [
            RetrievedText(chunk_id="t_a", text="beta", places=(span("d", 8, 12),)),
            RetrievedText(chunk_id="t_b", text="of no document"),
        ]
    )
    return made


def span(doc_id, start, end):
    return Span(doc_id=doc_id, start=start, end=end)


def test_a_chunk_has_the_place_of_its_offsets(dataset):
    """What is covered is counted in characters of documents."""
    assert retrieved_places(dataset, {"c1"}) == {"c1": PlacedText(11, 2, (span("d", 2, 13),))}


def test_a_retrieved_text_has_the_places_that_were_found(dataset):
    """It was located once, when it was retrieved."""
    assert retrieved_places(dataset, {"t_a"}) == {"t_a": PlacedText(4, 1, (span("d", 8, 12),))}


def test_what_has_no_place_has_its_wording(dataset):
    """A quote can be looked for in the text itself."""
    placed = retrieved_places(dataset, {"t_b", "c3"})

    assert {key: (item.places, item.text) for key, item in placed.items()} == {
        "t_b": ((), "of no document"),
        "c3": ((), "Without offsets."),
    }


def test_a_whole_document_reaches_from_its_first_chunk_to_its_last(dataset):
    """Where labels name documents, retrievers do."""
    dataset.write_manifest(dataset.manifest.model_copy(update={"level": "document"}))

    assert retrieved_places(dataset, {"d"})["d"].places == (span("d", 2, 27),)


def test_the_id_of_a_document_is_unknown_where_labels_name_chunks(dataset):
    """It can be relevant to no query, so that it must not hold evidence either."""
    assert retrieved_places(dataset, {"d"}) == {}


def test_unknown_ids_are_left_out(dataset):
    """Nothing is known of them."""
    assert retrieved_places(dataset, {"gone"}) == {}


def test_a_whole_document_is_as_long_as_a_reader_sees_it(dataset):
    """Hidden markup takes nothing of a prompt."""
    text = "See the guide."
    chunk = Chunk(chunk_id="c", doc_id="f", text=text, end=54, hidden=((13, 40),))
    dataset.write_chunks([chunk])
    dataset.write_manifest(dataset.manifest.model_copy(update={"level": "document"}))
    placed = retrieved_places(dataset, {"c", "f"})

    assert placed["f"] == placed["c"] == PlacedText(len(text), 3, (span("f", 0, 54),))
