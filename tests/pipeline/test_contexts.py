import pytest

from ragforge.pipeline.answer.asking_systems import Contexts, Found
from ragforge.records import Chunk
from ragforge.retrieval import ContextPassage

CHUNKS = [
    Chunk(chunk_id="a#1", doc_id="a", text="Blue whales eat krill."),
    Chunk(chunk_id="a#2", doc_id="a", text="Orcas hunt seals."),
    Chunk(chunk_id="b#1", doc_id="b", text="Blue whales eat krill."),
]


@pytest.mark.parametrize(
    ("passages", "found"),
    [
        ([ContextPassage(ids=("a#2",))], Found(("a#2",), 0)),
        ([ContextPassage(texts=("Blue  whales eat krill.",))], Found(("a#1",), 0)),
        ([ContextPassage(texts=("whales eat",), doc_ids=("b",))], Found(("b#1",), 0)),
        ([ContextPassage(ids=("gone",))], Found(("gone",), 0)),
        ([ContextPassage(ids=("Of no chunk.",), texts=("Of no chunk.",))], Found((), 1)),
        (
            [ContextPassage(texts=("Of no chunk.",)), ContextPassage(ids=("a#2",))],
            Found(("a#2",), 1),
        ),
        ([ContextPassage(ids=("a#2",)), ContextPassage(texts=("Orcas hunt",))], Found(("a#2",), 0)),
    ],
)
def test_passages_are_found_or_counted(passages, found):
    """One that is dropped without a trace makes what it says look made up."""
    assert Contexts(CHUNKS).find(passages) == found


@pytest.mark.parametrize(("doc_id", "chunk_id"), [("b", "b#1"), ("c", None)])
def test_a_quote_is_looked_for_in_its_document(doc_id, chunk_id):
    """The same words in another document are another passage."""
    assert Contexts(CHUNKS).quoted("eat krill", doc_id) == chunk_id
