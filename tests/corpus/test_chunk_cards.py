import numpy as np
import pytest

from ragforge.corpus.chunk_cards import CardReader, CardWriter, is_askable, write_cards
from ragforge.corpus.survey import ChunkCard
from ragforge.files.record_files import write_records
from ragforge.files.set.sorted_records import each_chunk
from ragforge.records import Chunk

ENOUGH = "one two three four five six seven eight nine ten eleven twelve"
CHUNKS = [
    Chunk(chunk_id="c1", doc_id="b/x.md", text=ENOUGH, heading_path=("A", "B"), start=20, end=82),
    Chunk(chunk_id="c2", doc_id="a.md", text="short"),
    Chunk(chunk_id="c3", doc_id="b/x.md", text="first", start=0, end=5),
    Chunk(chunk_id="c4", doc_id="b/x.md", text="last", start=90, end=94),
    Chunk(chunk_id="c5", doc_id="b/c/ÿ.md", text="short"),
]


def write(folder, chunks, stands, topics):
    """Write chunks and their cards."""
    path = folder / "chunks.jsonl"
    write_records(path, chunks, key=lambda chunk: chunk.chunk_id)
    read = list(each_chunk(path))
    parts = {folder / "first": read[:2], folder / "second": read[2:]}
    for part, chunks_read in parts.items():
        with CardWriter(part) as writer:
            writer.add(chunks_read)
    write_cards(folder, list(parts), np.array(stands), np.array(topics))
    return path


@pytest.fixture
def cards(tmp_path):
    """The cards of five chunks; c2 stands for c5."""
    path = write(tmp_path, CHUNKS, [0, 1, 2, 3, 1], [0, 1, 0, 0, 2])
    with CardReader(tmp_path, path) as opened:
        yield opened


def test_cards_say_what_planning_needs(cards):
    """They are all that is known of a chunk without reading it."""
    assert list(cards.cards()) == [
        ChunkCard("c1", "b/x.md", "b", 2, 0, "c1", is_askable=True),
        ChunkCard("c2", "a.md", "", 0, 1, "c2", is_askable=False),
        ChunkCard("c3", "b/x.md", "b", 0, 0, "c3", is_askable=False),
        ChunkCard("c4", "b/x.md", "b", 0, 0, "c4", is_askable=False),
        ChunkCard("c5", "b/c/ÿ.md", "b/c", 0, 2, "c2", is_askable=False),
    ]


def test_cards_of_many_chunks_are_read_part_by_part(cards, monkeypatch):
    """The parts must leave none out."""
    whole = list(cards.cards())
    monkeypatch.setattr("ragforge.corpus.chunk_cards._CARDS_AT_ONCE", 2)

    assert list(cards.cards()) == whole


def test_counts(cards):
    """Reports give them."""
    assert (cards.n_chunks, cards.n_documents) == (5, 3)


def test_a_chunk_is_read_by_its_id(cards):
    """Texts stay on disk until they are asked about."""
    assert [cards.chunk(chunk.chunk_id) for chunk in CHUNKS] == CHUNKS


@pytest.mark.parametrize("method", ["chunk", "neighbours", "near_duplicates"])
def test_an_unknown_id_is_an_error(cards, method):
    """The chunk next in order must not be taken for it."""
    with pytest.raises(KeyError, match="c22"):
        getattr(cards, method)("c22")


@pytest.mark.parametrize(
    ("chunk_id", "expected"),
    [("c3", ["c1"]), ("c1", ["c3", "c4"]), ("c4", ["c1"]), ("c2", []), ("c5", [])],
)
def test_neighbours_are_those_beside_it_in_its_document(cards, chunk_id, expected):
    """The order is that of the text and not of the ids."""
    assert cards.neighbours(chunk_id) == expected


@pytest.mark.parametrize(
    ("doc_id", "expected"),
    [("b/x.md", ["c3", "c1", "c4"]), ("a.md", ["c2"]), ("b/c/ÿ.md", ["c5"]), ("b", [])],
)
def test_chunks_of_a_document_come_in_its_order(cards, doc_id, expected):
    """Quotes are looked up in the text that they make."""
    assert cards.in_document(doc_id) == expected


def test_chunks_without_offsets_come_in_the_order_of_their_numbers(tmp_path):
    """Ready-made files say no more of where a chunk stands, and 10 is not before 2."""
    order = ["a-1", "a-2", "a-9", "a-10", "a-10b", "a-010c", f"a-{'9' * 5000}", "b"]
    chunks = [Chunk(chunk_id=name, doc_id="d", text="x") for name in order]
    other = [Chunk(chunk_id=f"z{name}", doc_id="e", text="x") for name in order]
    path = write(tmp_path, chunks + other, range(16), [0] * 16)

    with CardReader(tmp_path, path) as opened:
        assert opened.in_document("d") == order
        assert opened.in_document("e") == [f"z{name}" for name in order]
        assert opened.neighbours("a-10") == ["a-9", "a-10b"]


@pytest.mark.parametrize(("chunk_id", "expected"), [("c2", ["c5"]), ("c5", ["c2"]), ("c1", [])])
def test_near_duplicates_are_the_others_of_its_group(cards, chunk_id, expected):
    """What is relevant of one is relevant of all."""
    assert cards.near_duplicates(chunk_id) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENOUGH, True),
        (ENOUGH.removesuffix(" twelve"), False),
        ("北京是中国的首都也是一座历史悠久的城市人口很多了", True),
        ("北京是中国的首都", False),
        ("é " * 12, True),
        ("", False),
    ],
)
def test_askable_are_texts_of_words_enough(text, expected):
    """A title alone cannot be asked about; Chinese has no blanks to count words by."""
    assert is_askable(text) == expected
