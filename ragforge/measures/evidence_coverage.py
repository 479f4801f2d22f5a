"""How much of the evidence retrieved texts hold, however they were cut.

nDCG and recall count chunks: a system with larger chunks finds more with fewer of them, one with
smaller chunks has more to find, and neither is better for it. These measures count the text that
holds the answer, and the text that was retrieved for it. They are those of Smith and Troynikov
2024, "Evaluating Chunking Strategies for Retrieval" (Chroma technical report): token recall,
precision and intersection over union, over characters, which no choice of a tokenizer moves;
beside them the share of whole quotes, and both within a budget of tokens as well as of ranks.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import inf
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.measures.measure_names import Measure
from ragforge.measures.strata import Design, mean_over_queries


class Stretch(NamedTuple):
    """Characters [start, end) of a document, whose id is any number or name."""

    document: str
    start: int
    end: int
    reach: int = 0
    """Offset of the next letter behind it, where that is known: what begins there goes on from it,
    as splitters strip the blanks between two pieces."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote that holds the answer or a part of it.

    Args:
        places: Where it stands; more than one where the documents repeat it. One of them is enough.
    """

    places: tuple[Stretch, ...]

    @property
    def length(self) -> int:
        """Characters of it."""
        return self.places[0].end - self.places[0].start


@dataclass(frozen=True, slots=True)
class RetrievedText:
    """A text that was retrieved.

    Args:
        length: Its characters.
        n_tokens: What it takes of a prompt.
        places: Where it stands in the documents; none where that is not known, several where the
            documents repeat it: then it covers each.
        held: Quotes that it holds by its wording, as numbers in the order of the query's: for texts
            without a place.
    """

    length: int
    n_tokens: int
    places: tuple[Stretch, ...] = ()
    held: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the texts retrieved for a query hold of its evidence.

    Args:
        n_quotes, n_whole: Quotes of the query, and those that the texts hold from end to end.
        evidence: Characters of all quotes.
        covered: Those of them that the texts hold.
        retrieved: Characters of all texts; what two of them share counts twice, as in a prompt.
    """

    n_quotes: int
    n_whole: int
    evidence: int
    covered: int
    retrieved: int

    @property
    def evidence_recall(self) -> float:
        """Share of the quotes that are held from end to end."""
        return _ratio(self.n_whole, self.n_quotes)

    @property
    def token_recall(self) -> float:
        """Share of the evidence that is held."""
        return _ratio(self.covered, self.evidence)

    @property
    def token_precision(self) -> float:
        """Share of what was retrieved that is evidence."""
        return _ratio(self.covered, self._paid)

    @property
    def token_iou(self) -> float:
        """Evidence held, over evidence and retrieved text together."""
        return _ratio(self.covered, self.evidence + self._paid - self.covered)

    @property
    def _paid(self) -> int:
        """Characters retrieved; a text that lost marks or blanks may hold more than it has."""
        return max(self.retrieved, self.covered)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def coverage(quotes: Sequence[Quote], retrieved: Iterable[RetrievedText]) -> Coverage:
    """Return what some texts hold of the quotes of a query.

    A quote that several texts hold in parts is whole where they leave nothing out. Of a quote that
    stands in several places the one that is held best counts.

    Args:
        quotes: One or more.
        retrieved: Any number, in any order; see `within` for the top of a ranking.
    """
    texts = list(retrieved)
    spans = _united(stretch for text in texts for stretch in text.places)
    held = frozenset[int]().union(*(text.held for text in texts))
    lengths = [quote.length for quote in quotes]
    covered = [
        quote.length if at in held else _held(quote, spans) for at, quote in enumerate(quotes)
    ]
    return Coverage(
        n_quotes=len(quotes),
        n_whole=sum(part >= length for part, length in zip(covered, lengths, strict=True)),
        evidence=sum(lengths),
        covered=sum(covered),
        retrieved=sum(text.length for text in texts),
    )


def within(
    ranking: Sequence[RetrievedText], *, cutoff: int | None = None, tokens: int | None = None
) -> Sequence[RetrievedText]:
    """Return the top of a ranking: k texts at most, and those that fit into a budget of tokens.

    A prompt is filled from the top and ends before the first text that does not fit.
    """
    top = ranking[:cutoff]
    if tokens is None:
        return top
    totals = takewhile(lambda total: total <= tokens, _totals(text.n_tokens for text in top))
    return top[: sum(1 for _ in totals)]


def _totals(numbers: Iterable[int]) -> Iterator[int]:
    total = 0
    for number in numbers:
        total += number
        yield total


def _united(stretches: Iterable[Stretch]) -> dict[str, list[tuple[int, int]]]:
    """Return stretches by document, sorted, those that touch but for blanks made one."""
    united: dict[str, list[tuple[int, int]]] = {}
    reach = 0
    for document, start, end, beyond in sorted(stretches):
        of_document = united.setdefault(document, [])
        if of_document and start <= max(of_document[-1][1], reach):
            of_document[-1] = (of_document[-1][0], max(end, of_document[-1][1]))
            reach = max(beyond, reach)
        else:
            of_document.append((start, end))
            reach = beyond
    return united


def _held(quote: Quote, spans: dict[str, list[tuple[int, int]]]) -> int:
    """Return how many characters of a quote some stretches hold, at the place that is held best.

    A place that is held whole holds all of it, though it has fewer blanks than the first one.
    """
    shared = [(place, _shared(place, spans)) for place in quote.places]
    if any(part >= place.end - place.start for place, part in shared):
        return quote.length
    return min(quote.length, max(part for _, part in shared))


def _shared(place: Stretch, spans: dict[str, list[tuple[int, int]]]) -> int:
    """Return how many characters of a place some stretches have that do not overlap."""
    return sum(
        max(0, min(place.end, end) - max(place.start, start))
        for start, end in spans.get(place.document, ())
    )


_VALUES: Final[dict[str, Callable[[Coverage], float]]] = {
    "EvidenceR": lambda found: found.evidence_recall,
    "TokenR": lambda found: found.token_recall,
    "TokenP": lambda found: found.token_precision,
    "TokenIoU": lambda found: found.token_iou,
}


class RunEvidence:
    """What a run retrieved for the queries whose evidence has places.

    Attributes:
        query_ids: Queries with a value, sorted.
        failed: Queries with evidence whose retrieval failed, sorted: they have no value.
        design: What the queries are a sample of; None where they are all there is.
        warnings: One text each for what the measures leave out.

    Args:
        quotes: By query, one or more each; of those that count, failed ones too.
        retrieved: By query, best first. A query that is missing here has value 0.
        failed: Queries whose retrieval failed; others than those with quotes are passed over.
        design: Of all queries with quotes that could have been drawn, drawn or not.
        warnings: As the attribute.
    """

    def __init__(
        self,
        quotes: Mapping[str, Sequence[Quote]],
        retrieved: Mapping[str, Sequence[RetrievedText]],
        failed: Collection[str] = (),
        design: Design | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.query_ids = sorted(quotes.keys() - set(failed))
        self.failed = sorted(quotes.keys() & set(failed))
        self.design = design
        self.warnings = warnings
        self._quotes = quotes
        self._retrieved = retrieved
        self._found: dict[tuple[int | None, int | None], list[Coverage]] = {}

    def values(self, measure: Measure) -> list[float]:
        """Return the values of a measure of evidence, aligned with `query_ids`."""
        top = measure.cutoff, measure.tokens
        if top not in self._found:
            self._found[top] = [self._coverage(query_id, measure) for query_id in self.query_ids]
        return [_VALUES[measure.name](found) for found in self._found[top]]

    def n_beyond(self, measure: Measure) -> int:
        """Return of how many queries the whole ranking fits into the budget of a measure.

        What a deeper ranking would add to them is not known. 0 where there is no budget, or the
        cutoff ends a ranking.
        """
        if measure.tokens is None:
            return 0
        longest = max(map(len, self._retrieved.values()), default=0)
        rankings = (self._retrieved.get(query_id, ()) for query_id in self.query_ids)
        return sum(
            sum(text.n_tokens for text in ranking) < measure.tokens
            for ranking in rankings
            if len(ranking) == longest < (measure.cutoff or inf)
        )

    def mean(self, values: Mapping[str, float]) -> float | None:
        """Return the mean of values by query, over what the queries stand for."""
        return mean_over_queries(self.design, values)

    def _coverage(self, query_id: str, measure: Measure) -> Coverage:
        ranking = self._retrieved.get(query_id, ())
        top = within(ranking, cutoff=measure.cutoff, tokens=measure.tokens)
        return coverage(self._quotes[query_id], top)
