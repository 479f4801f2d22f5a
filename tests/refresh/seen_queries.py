"""Queries whose documents changed, seen where their quotes stand now."""

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.records import Cause, Chunk, Evidence, GateResult, Lineage, Measured, Query
from ragforge.refresh.quotes.locations import LocatedQuery, LocatedQuote

OLD = "The connect timeout is 5 seconds by default."
NEW = "The connect timeout is 10 seconds by default."
REWORDED = "By default the connect timeout is 5 seconds long."
HOP = "Client B inherits the connect timeout."
CHANGED = Cause(kind="document changed", doc_id="d1", before="a" * 16, after="b" * 16)


def chunk(chunk_id, text, start=0, doc_id="d1"):
    return Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text, start=start, end=start + len(text))


def evidence(quote=OLD, **changes):
    fields = {"doc_id": "d1", "chunk_id": "old", "quote": quote, "start": 0, "end": len(quote)}
    return Evidence(**{**fields, **changes})


def query(query_id="q1", **changes):
    fields = {
        "query": "How long is the connect timeout?",
        "expected_answer": "5 seconds",
        "type": "fact",
        "evidence": (evidence(),),
        "source_chunk_ids": ("old",),
        "lineage": Lineage(kind="llm", model="writer", slot="settled", call_keys=("a",)),
        "gates": (GateResult(gate="self_contained", verdict="pass"),),
        "measured": Measured(bm25_rank=1, depth=20, closed_book="not solved"),
        **changes,
    }
    return Query(query_id=query_id, **fields)


def seen(item, state, now=None, place=None):
    """Return a quote as it is seen: in a state, at its place among chunks or at that of a text."""
    placed = None
    if now is not None:
        placed = ChunkIndex(now).place(item.model_copy(update={"quote": place or item.quote}))
    causes = () if state == "kept" else (CHANGED,)
    likeness = {"similar": 0.9, "gone": 0.0}.get(state, 1.0)
    doc_id = placed.chunks[0].doc_id if placed else item.doc_id
    return LocatedQuote(item, state, doc_id, placed, likeness, causes)


def located(state, now=None, place=None, of=None):
    item = of or query()
    return LocatedQuery(item, tuple(seen(one, state, now, place) for one in item.evidence))
