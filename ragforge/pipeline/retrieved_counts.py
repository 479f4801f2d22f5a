"""What the hits of runs are: chunks, texts that stand in documents, and ids that nobody knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural
from ragforge.records import Ranking, RetrievedText
from ragforge.retrieval.retrieved_texts import RetrievedTexts

if TYPE_CHECKING:
    pass

_PLACES_IN_WORDS: Final = ("nowhere", "placed", "ambiguous")
_EXAMPLES: Final = 2
_SHOWN: Final = 60
"""Characters of a text that is an example."""
_MANY: Final = 3
"""Rankings that are hardly the same by chance."""


@dataclass(frozen=True, slots=True)
class RetrievedCounts:
    """What the hits of a run are, over all queries.

    Args:
        n_chunks: Chunks of the set.
        n_placed: Other texts that stand in one place of its documents.
        n_ambiguous: Those that stand in several, which nothing tells apart.
        n_nowhere: Those that stand in none.
        n_unknown: Ids that the set knows nothing of, without a text.
        nowhere, ambiguous: The beginnings of some such texts.
    """

    n_chunks: int
    n_placed: int
    n_ambiguous: int
    n_nowhere: int
    n_unknown: int
    nowhere: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    has_chunks: bool = True
    """Whether the set has any; else its runs hold nothing but texts."""

    def sentences(self, run: str) -> Iterator[str]:
        """Yield what is to be told of texts that are no chunks; nothing where there are none."""
        n_texts = self.n_placed + self.n_ambiguous + self.n_nowhere
        if not n_texts:
            return
        if not self.has_chunks:
            hits = plural(n_texts, "hit is a text", "hits are texts")
            yield f"run {run}: {hits} to be judged as they are, as the set has no documents"
            return
        n_hits = self.n_chunks + n_texts + self.n_unknown
        yield (
            f"run {run}: of {n_hits:,} hits {self.n_chunks:,} are chunks of the set and "
            f"{n_texts:,} other texts: {self.n_placed:,} stand in one place of the documents, "
            f"{self.n_ambiguous:,} in several, {self.n_nowhere:,} nowhere"
        )
        if self.ambiguous:
            yield (
                f"run {run}: texts that stand in several places, such as "
                f"{', '.join(self.ambiguous)}, count wherever they stand; the name of the "
                "document in a hit's metadata (source, file_path, …) tells which"
            )
        if self.nowhere:
            yield (
                f"run {run}: texts that stand nowhere, such as {', '.join(self.nowhere)}, are "
                "judged by their text; were the documents of the set indexed, and nothing else?"
            )


def retrieved_counts(
    rankings: Iterable[Ranking], texts: Iterable[RetrievedText], known: Set[str]
) -> RetrievedCounts:
    """Count what the hits of a run are.

    Args:
        rankings: The run.
        texts: Those of its texts that are no chunks.
        known: The ids of all chunks.
    """
    by_id = {text.chunk_id: text for text in texts}
    counts = Counter(hit.chunk_id for item in rankings for hit in item.ranking)
    kinds = Counter[str]()
    for chunk_id, count in counts.items():
        text = by_id.get(chunk_id)
        if text is None:
            kinds["chunk" if chunk_id in known else "unknown"] += count
        else:
            kinds[_PLACES_IN_WORDS[min(len(text.places), 2)]] += count
    return RetrievedCounts(
        n_chunks=kinds["chunk"],
        n_placed=kinds["placed"],
        n_ambiguous=kinds["ambiguous"],
        n_nowhere=kinds["nowhere"],
        n_unknown=kinds["unknown"],
        nowhere=_beginnings(text for text in by_id.values() if not text.places),
        ambiguous=_beginnings(text for text in by_id.values() if len(text.places) > 1),
        has_chunks=bool(known),
    )


def misnamed_texts(texts: RetrievedTexts, what: str) -> str:
    """Return what is to be told of those with another text than their id has; "" for none."""
    if not texts.n_misnamed:
        return ""
    named, text = texts.misnamed
    kind = "document" if named in texts.documents.retrievable else "chunk"
    return (
        f"{plural(texts.n_misnamed, what)} came with the id of a {kind} of the set and with "
        f"another text, such as {named!r} with {one_line(text, _SHOWN)!r}; the text counts, and "
        f"not the id: was the index made of other {kind}s?"
    )


def _beginnings(texts: Iterable[RetrievedText]) -> tuple[str, ...]:
    return tuple(repr(one_line(text.text, _SHOWN)) for text in islice(texts, _EXAMPLES))


def _ids(ranking: Ranking) -> tuple[str, ...]:
    return tuple(hit.chunk_id for hit in ranking.ranking)


def retrieval_warnings(name: str, rankings: Sequence[Ranking], known: Set[str]) -> Iterator[str]:
    """Yield sentences on what a retriever found.

    Args:
        name: Of the run.
        rankings: What was found.
        known: The ids of all chunks.
    """
    if rankings and not any(item.ranking for item in rankings):
        yield f"run {name}: all {len(rankings)} rankings are empty; is there an index?"
    elif len(rankings) >= _MANY and len({_ids(item) for item in rankings}) == 1:
        yield f"run {name}: all {len(rankings)} rankings are the same; is the query read?"
    unknown = {hit.chunk_id for item in rankings for hit in item.ranking} - known
    if unknown:
        shown = ", ".join(sorted(unknown)[:3])
        yield (
            f"{len(unknown)} retrieved chunk ids are not in chunks.jsonl, such as {shown}; they "
            "can be neither judged nor relevant"
        )
