"""Grades that people gave to quotes, which follow the quotes into other chunks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ragforge.corpus.quote_locations import CONTEXT_CHARS, ChunkIndex, Placement, fold, locate
from ragforge.deferred import dataclass
from ragforge.evaluating.completion import RELEVANT
from ragforge.files.set.sorted_records import Key, key_of
from ragforge.records import Chunk, Evidence, Judgment, PoolEntry, Query, QuoteGrade
from ragforge.stages.generate.truth import grades_at, repeating_chunks

QuoteKey = tuple[str, str, str]
"""A query, a document, and a folded quote."""


class ChunkMoves(Protocol):
    """Under which ids chunks are found now."""

    def of(self, chunk_id: str) -> Sequence[str]:
        """Return the ids that a chunk has now: its own alone where it stays, none where it is gone.

        One text may stand several times now, and what stood several times may stand once.
        """


def at_chunks(judgment: Judgment, chunk_ids: Iterable[str]) -> Iterator[Judgment]:
    """Yield a judgment for each id that its chunk has now, in their order.

    A judge's is marked at a new one. Quotes that people graded stand there again after the first.
    What evidence says of a copy stays that of a copy.
    """
    for number, chunk_id in enumerate(chunk_ids):
        one = standing_again(judgment) if number else judgment
        if chunk_id == judgment.chunk_id:
            yield one
        else:
            source = "carried" if judgment.source == "judge" else judgment.source
            original = judgment.copied_from if source == "evidence" else ""
            update = {"chunk_id": chunk_id, "source": source, "copied_from": original}
            yield one.model_copy(update=update)


def standing_again(judgment: Judgment) -> Judgment:
    """Return the judgment of a chunk that has the words of another one, whose quotes it repeats."""
    given = judgment.given_to_quotes
    again = (one.model_copy(update={"again": True}) for one in given)
    return with_quotes(judgment, again) if given else judgment


def by_rank(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Order judgments so that the last of a pair stands: a person's, a judge's, the evidence's.

    Of those of people one stands first that does not only repeat quotes of other chunks.
    """
    rank = {"evidence": 1, "carried": 2, "judge": 3, "human": 4}
    return sorted(
        judgments, key=lambda item: (not item.is_failed, rank[item.source], not item.only_repeats)
    )


def in_order(of_texts: Iterable[Judgment], followed: Sequence[Judgment]) -> list[Judgment]:
    """Order grades so that the last of a pair stands: a text's, unless quotes tell all of it anew.

    Args:
        of_texts: What waited with texts that are chunks again, at these.
        followed: What came with quotes.
    """
    told_at = {
        key_of(one): {fold(quote.quote) for quote in one.given_to_quotes} for one in followed
    }
    anew: list[Judgment] = []
    others: list[Judgment] = []
    for one in of_texts:
        quotes = {fold(quote.quote) for quote in one.given_to_quotes}
        is_anew = bool(quotes) and quotes <= told_at.get(key_of(one), set())
        (anew if is_anew else others).append(one)
    return [*anew, *followed, *others]


def moved_pool(entries: Iterable[PoolEntry], moves: ChunkMoves) -> list[PoolEntry]:
    """Return pools with the ids that their chunks have now; the last of a pair stands."""
    merged: dict[tuple[str, str], PoolEntry] = {}
    for entry in entries:
        for chunk_id in moves.of(entry.chunk_id):
            here = chunk_id == entry.chunk_id
            moved = entry if here else entry.model_copy(update={"chunk_id": chunk_id})
            merged[entry.query_id, chunk_id] = moved
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class PlacedGrades:
    """Grades in other chunks.

    Args:
        judgments: Of the chunks that hold a quote now; of several grades of a pair the highest,
            with all of them in `quote_grades`.
        pairs: Query and chunk of the grades that they come from, where nothing of these is left.
    """

    judgments: list[Judgment]
    pairs: set[tuple[str, str]]


class PersonsQuote(NamedTuple):
    """A quote that a person graded.

    Args:
        judgment: Of the chunk that held it, or a part of it.
        given: What the person gave.
        item: Where it is looked for.
    """

    judgment: Judgment
    given: QuoteGrade
    item: Evidence


def note_quotes(given: dict[str, dict[str, int]], judgment: Judgment) -> None:
    """Add what a person gave to quotes, by query and folded quote; the highest grade of each."""
    for one in judgment.given_to_quotes:
        of_query, quote = given.setdefault(judgment.query_id, {}), fold(one.quote)
        of_query[quote] = max(one.grade, of_query.get(quote, 0))


def with_quotes(judgment: Judgment, given: Iterable[QuoteGrade]) -> Judgment:
    """Return a judgment with what was given to the quotes of its chunk, where a person gave it.

    Args:
        judgment: With the grade of the chunk.
        given: To its quotes; of a quote that comes twice the higher grade counts, and that it does
            not only stand there again.
    """
    if judgment.source != "human" or judgment.grade is None:
        return judgment
    highest: dict[str, QuoteGrade] = {}
    for one in given:
        old = highest.get(key := fold(one.quote))
        if old is None or (old.grade, not old.again) < (one.grade, not one.again):
            highest[key] = one
    kept = tuple(sorted(highest.values(), key=lambda one: (-one.grade, one.quote)))
    plain = judgment.model_copy(update={"quote_grades": ()})
    is_said = plain.given_to_quotes == kept
    return plain if is_said else plain.model_copy(update={"quote_grades": kept})


def _same_id(doc_id: str) -> str:
    return doc_id


class GradedQuotes:
    """Quotes that people graded, at their places in the chunks that they graded.

    Args:
        judgments: Of any kind; the others are passed over.
        chunks: All that these name; read to the end, others are not kept.
        queries: Those that are judged; their evidence knows where a quote stands.
        doc_of: Gives the id that a document has now.
        now: Evidence where it stands now, by query, the document of before, and folded quote.
    """

    def __init__(
        self,
        judgments: Iterable[Judgment],
        chunks: Iterable[Chunk],
        queries: Iterable[Query],
        doc_of: Callable[[str], str] = _same_id,
        now: Mapping[QuoteKey, Evidence] = MappingProxyType({}),
    ) -> None:
        graded = [judgment for judgment in judgments if judgment.given_to_quotes]
        wanted = {judgment.chunk_id for judgment in graded}
        found = _named(chunks, wanted) if wanted else {}
        known = _known(queries)
        self._quotes: list[PersonsQuote] = []
        for judgment in graded:
            chunk = found.get(judgment.chunk_id)
            if chunk is None:
                continue
            for given in judgment.given_to_quotes:
                key = (judgment.query_id, chunk.doc_id, fold(given.quote))
                item = known.get(key) or _quote(given.quote, chunk, is_again=given.again)
                item = now.get(key) or item.model_copy(update={"doc_id": doc_of(item.doc_id)})
                self._quotes.append(PersonsQuote(judgment, given, item))

    @property
    def documents(self) -> set[str]:
        """Those that hold the quotes."""
        return {quote.item.doc_id for quote in self._quotes}

    def place(self, index: ChunkIndex) -> PlacedGrades:
        """Return the grades that the quotes give to the chunks of an index."""
        return place_grades(self._quotes, index)


def place_grades(quotes: Iterable[PersonsQuote], index: ChunkIndex) -> PlacedGrades:
    """Return the grades that quotes give to the chunks of an index.

    Args:
        quotes: Each with what a person gave to it.
        index: Of all chunks of the documents that hold them.
    """
    here: dict[Key, list[tuple[int, PersonsQuote]]] = {}
    placed: dict[Key, list[PersonsQuote]] = {}
    for quote in quotes:
        place = index.place(quote.item)
        if place is None:
            continue
        placed.setdefault(key_of(quote.judgment), []).append(quote)
        for chunk_id, grade in _grades(quote, place, index).items():
            here.setdefault((quote.judgment.query_id, chunk_id), []).append((grade, quote))
    judgments = [_highest(chunk_id, held) for (_, chunk_id), held in here.items()]
    return PlacedGrades(judgments, {pair for pair, of in placed.items() if _is_all(of)})


def _grades(quote: PersonsQuote, place: Placement, index: ChunkIndex) -> dict[str, int]:
    """Return the grades of the chunks at the place of a quote, or at later ones."""
    if not quote.given.again:
        return grades_at(place, quote.given.grade)
    places = index.places_of_wording(place.text, quote.item.doc_id)
    return dict.fromkeys(repeating_chunks(place, places), quote.given.grade)


def _highest(chunk_id: str, of_chunk: Sequence[tuple[int, PersonsQuote]]) -> Judgment:
    """Return the judgment of a chunk by the quotes that it holds, by those that are new if any."""
    held = [one for one in of_chunk if not one[1].given.again] or of_chunk
    grade, (judgment, given, _) = max(held, key=lambda one: one[0])
    update = {
        "chunk_id": chunk_id,
        "grade": grade,
        "evidence": given.quote if judgment.evidence else "",
        "copied_from": "",
    }
    if grade != judgment.grade and judgment.contains_answer is not None:
        update["contains_answer"] = grade >= RELEVANT
    return with_quotes(judgment.model_copy(update=update), (one.given for _, one in held))


def _is_all(quotes: Sequence[PersonsQuote]) -> bool:
    """Whether the quotes of a judgment that stand make all of it: each quote, and its grade."""
    judgment = quotes[0].judgment
    stand = {fold(quote.given.quote) for quote in quotes}
    is_whole = all(fold(one.quote) in stand for one in judgment.given_to_quotes)
    return is_whole and max(quote.given.grade for quote in quotes) >= (judgment.grade or 0)


def _named(chunks: Iterable[Chunk], wanted: Collection[str]) -> dict[str, Chunk]:
    return {chunk.chunk_id: chunk for chunk in chunks if chunk.chunk_id in wanted}


def _known(queries: Iterable[Query]) -> dict[QuoteKey, Evidence]:
    """Return evidence by query, document and quote: it knows where the quote stands."""
    return {
        (query.query_id, item.doc_id, fold(item.quote)): item
        for query in queries
        for item in query.evidence
    }


def _quote(quote: str, chunk: Chunk, *, is_again: bool) -> Evidence:
    """Return a quote with what its chunk tells of its place; nothing where it stands before."""
    item = Evidence(doc_id=chunk.doc_id, chunk_id=chunk.chunk_id, quote=quote)
    at = None if is_again else locate(quote, chunk.text)
    if at is None:
        return item
    update = {
        "start": chunk.start + at.start,
        "prefix": chunk.text[max(0, at.start - CONTEXT_CHARS) : at.start],
        "suffix": chunk.text[at.end : at.end + CONTEXT_CHARS],
    }
    return item.model_copy(update=update)
