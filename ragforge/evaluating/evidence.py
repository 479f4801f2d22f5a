"""Evidence of queries and retrieved texts by their places: what no chunking of documents moves.

A query is measured where each of its quotes has a place. Quotes that overlap are one. What the
documents repeat is found where any of its places is retrieved; a quote of few letters is looked for
nowhere else, as it may stand there by chance.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ragforge.corpus.file_texts import file_texts
from ragforge.corpus.letters import GRAM
from ragforge.corpus.wordings import Wording
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.retrieved_places import PlacedText, retrieved_places
from ragforge.evaluating.runs import MeasuredRun, Task, estimate_of, histogram_of
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures.evidence_coverage import Quote, RetrievedText, RunEvidence, Stretch
from ragforge.measures.measure_names import of_evidence
from ragforge.records import Evidence, Query

_UNKNOWN: Final = RetrievedText(0, 0)


@dataclass(frozen=True, slots=True)
class PlacedQuote:
    """A quote with the wording by which it is found elsewhere."""

    quote: Quote
    wording: Wording


class ReturnedText(NamedTuple):
    """How much text a run returns for a query, in the mean."""

    n_chars: float
    n_tokens: float


@dataclass(frozen=True, slots=True)
class EvidenceBasis:
    """What measures of evidence are computed from.

    Args:
        quotes: By query, of those whose evidence has places.
        texts: What was retrieved, by id.
        wordings: The texts that have no place or are only like it, by id.
        unplaced: Queries with evidence of which some has no place.
    """

    quotes: Mapping[str, tuple[PlacedQuote, ...]]
    texts: Mapping[str, RetrievedText]
    wordings: Mapping[str, Wording]
    unplaced: frozenset[str]

    def of_run(
        self,
        query_ids: Collection[str],
        ranked: Mapping[str, Sequence[str]],
        failed: Collection[str],
        chosen: ChosenQueries | None,
        *,
        only_retrieved: bool,
    ) -> RunEvidence:
        """Return what a run retrieved for the queries that can be measured.

        Args:
            query_ids: Queries that it was to be asked.
            ranked: Ids by query, best first.
            failed: Queries whose retrieval failed.
            chosen: The part of the queries that it is measured on; None where that is all.
            only_retrieved: Leave queries out that the run lacks.
        """
        asked = [key for key in query_ids if key in ranked or key in failed or not only_retrieved]
        measured = {key: self.quotes[key] for key in asked if key in self.quotes}
        retrieved = {
            key: tuple(self._retrieved(quotes, ranked[key]))
            for key, quotes in measured.items()
            if key in ranked
        }
        design = chosen.design.within(self.quotes) if chosen and chosen.design else None
        n_unknown = len({item for key in retrieved for item in ranked[key]} - self.texts.keys())
        return RunEvidence(
            {key: tuple(item.quote for item in quotes) for key, quotes in measured.items()},
            retrieved,
            frozenset(failed),
            design,
            tuple(_warnings(len(asked) - len(measured), len(asked), n_unknown)),
        )

    def mean_length(self, ranked: Mapping[str, Iterable[str]]) -> float:
        """Return the characters of what a run retrieved, in the mean over its different texts."""
        ids = {item for of_query in ranked.values() for item in of_query}
        lengths = [self.texts[item].length for item in ids if item in self.texts]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def returned(
        self, ranked: Mapping[str, Mapping[str, Sequence[str]]], cutoff: int | None
    ) -> dict[str, ReturnedText]:
        """Return how much text runs return for a query, in the mean.

        Queries for which one of them returns nothing are passed over.

        Args:
            ranked: By run, ids by query, best first.
            cutoff: Ranks counted from the top; None for all.
        """
        in_all = [key for key in self.quotes if all(of.get(key) for of in ranked.values())]
        found = {}
        for name, of_run in ranked.items():
            texts = [
                self.texts.get(item, _UNKNOWN) for key in in_all for item in of_run[key][:cutoff]
            ]
            n_queries = max(1, len(in_all))
            found[name] = ReturnedText(
                sum(text.length for text in texts) / n_queries,
                sum(text.n_tokens for text in texts) / n_queries,
            )
        return found

    def _retrieved(
        self, quotes: Sequence[PlacedQuote], ids: Iterable[str]
    ) -> Iterator[RetrievedText]:
        for item in ids:
            text = self.texts.get(item, _UNKNOWN)
            if item in self.wordings:
                wording = self.wordings[item]
                held = (at for at, one in enumerate(quotes) if any(wording.places(one.wording)))
                text = replace(text, held=frozenset(held))
            yield text


def _warnings(n_left_out: int, n_asked: int, n_unknown: int) -> Iterator[str]:
    if n_left_out:
        yield (
            f"measures of evidence leave out {n_left_out:,} of "
            f"{plural(n_asked, 'query', 'queries')}: they have no evidence, or some of it has no "
            "place in the documents"
        )
    if n_unknown:
        texts = plural(n_unknown, "retrieved id is", "retrieved ids are")
        yield f"{texts} of no text that the set knows: measures of evidence take them for empty"


def evidence_basis(
    dataset: Dataset, queries: Iterable[Query], rankings: Iterable[Mapping[str, Sequence[str]]]
) -> EvidenceBasis:
    """Read what measures of evidence are computed from.

    The chunks are read twice, one at a time; the documents are kept that evidence or what was
    retrieved is of.

    Args:
        dataset: Has the chunks, and `retrieved.jsonl` where texts that are no chunks were
            retrieved.
        queries: The answerable ones, of the whole set.
        rankings: Of each run, ids by query.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    answerable = list(queries)
    by_run = list(rankings)
    retrieved: dict[str, dict[str, None]] = {}
    for ranked in by_run:
        for query_id, ids in ranked.items():
            retrieved.setdefault(query_id, {}).update(dict.fromkeys(ids))
    placed = retrieved_places(dataset, {item for of in retrieved.values() for item in of})
    doc_ids = {item.doc_id for query in answerable for item in query.evidence}
    doc_ids |= {place.doc_id for text in placed.values() for place in text.places}
    chunks = dataset.chunks() if dataset.chunks_path.exists() else ()
    texts = file_texts(chunk for chunk in chunks if chunk.doc_id in doc_ids)
    near = {
        query_id: {place.doc_id for item in ids if item in placed for place in placed[item].places}
        for query_id, ids in retrieved.items()
    }
    quotes, unplaced = placed_quotes(answerable, texts, near)
    return EvidenceBasis(
        quotes,
        {key: _retrieved_text(item, texts) for key, item in placed.items()},
        {key: Wording(item.text) for key, item in placed.items() if item.text},
        unplaced,
    )


class PlacedQuotes(NamedTuple):
    """Quotes by their places, and the queries of which some quote has none."""

    quotes: dict[str, tuple[PlacedQuote, ...]]
    unplaced: frozenset[str]


def placed_quotes(
    queries: Iterable[Query], texts: Mapping[str, str], near: Mapping[str, Collection[str]]
) -> PlacedQuotes:
    """Return where the quotes of queries stand; those without evidence are left out.

    Args:
        queries: With their evidence.
        texts: Documents by id.
        near: By query, the documents in which other places of its quotes are looked for.
    """
    documents = _Documents(texts)
    quotes, unplaced = {}, set()
    for query in queries:
        if not query.evidence:
            continue
        found = _quotes(query.evidence, documents)
        if found:
            doc_ids = sorted(near.get(query.query_id, ()))
            quotes[query.query_id] = tuple(_repeated(item, documents, doc_ids) for item in found)
        else:
            unplaced.add(query.query_id)
    return PlacedQuotes(quotes, frozenset(unplaced))


def _retrieved_text(placed: PlacedText, documents: Mapping[str, str]) -> RetrievedText:
    """Return a text with the places whose letters it has; one that is only like its place has none.

    Splitters strip blanks and marks: two pieces hold a quote together though neither has what
    stands between them.
    """
    spans = () if placed.text else placed.places
    places = tuple(
        reaching(Stretch(span.doc_id, span.start, span.end), documents) for span in spans
    )
    return RetrievedText(placed.length, placed.n_tokens, places)


def reaching(stretch: Stretch, documents: Mapping[str, str]) -> Stretch:
    """Return a stretch that reaches to the next letter behind it.

    Args:
        stretch: Of a document.
        documents: Texts by id.
    """
    document, at = documents.get(stretch.document, ""), stretch.end
    while at < len(document) and not document[at].isalnum():
        at += 1
    return stretch._replace(reach=at)


class _Documents:
    """Texts of documents, folded where they are looked into."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._wordings: dict[str, Wording] = {}

    def places(self, wording: Wording, doc_id: str) -> Iterator[Stretch]:
        """Yield the places at which a document says something."""
        if doc_id not in self.texts:
            return
        if doc_id not in self._wordings:
            self._wordings[doc_id] = Wording(self.texts[doc_id])
        for start, end in self._wordings[doc_id].places(wording):
            yield Stretch(doc_id, start, end)


def _quotes(evidence: Sequence[Evidence], documents: _Documents) -> list[PlacedQuote]:
    """Return the quotes of a query with their own places; none where one of them has none."""
    own: list[Stretch] = []
    looked_for: list[PlacedQuote] = []
    for item in evidence:
        place = _own_place(item)
        if place is not None:
            own.append(place)
            continue
        found = _looked_for(item, documents)
        if found is None:
            return []
        if not any(found.wording.says_the_same(other.wording) for other in looked_for):
            looked_for.append(found)
    quotes = [
        PlacedQuote(Quote((place,)), _wording_at(place, evidence, documents))
        for place in _merged(own)
    ]
    return [*quotes, *looked_for]


def _looked_for(item: Evidence, documents: _Documents) -> PlacedQuote | None:
    """Return a quote without offsets where its document has it, if need be within words."""
    for ends in ((True, True), (False, False)):
        wording = Wording(item.quote, ends)
        places = tuple(documents.places(wording, item.doc_id)) if wording.letters else ()
        if places:
            return PlacedQuote(Quote(places), wording)
    return None


def _own_place(item: Evidence) -> Stretch | None:
    """Return the place of a quote, from its first letter or digit to its last."""
    if item.start is None or item.end is None or item.end <= item.start:
        return None
    start, end = item.start, item.end
    if end - start >= len(item.quote):
        letters = [at for at, char in enumerate(item.quote) if char.isalnum()]
        if letters:
            start += letters[0]
            end -= len(item.quote) - letters[-1] - 1
    return Stretch(item.doc_id, start, end)


def _merged(places: Iterable[Stretch]) -> list[Stretch]:
    """Return places, those that overlap made one."""
    merged: list[Stretch] = []
    for place in sorted(places):
        last = merged[-1] if merged else None
        if last is not None and last.document == place.document and place.start < last.end:
            merged[-1] = last._replace(end=max(last.end, place.end))
        else:
            merged.append(place)
    return merged


def _wording_at(place: Stretch, evidence: Iterable[Evidence], documents: _Documents) -> Wording:
    """Return what quotes say at their place, with the signs before and behind it."""
    document = documents.texts.get(place.document, "")
    of_it = [item for item in evidence if item.doc_id == place.document]
    if len(document) < place.end:
        return Wording(of_it[0].quote)
    start, end = place.start, place.end
    for item in of_it:
        if item.start is not None and item.end is not None:
            if item.start <= place.start < item.end:
                start = min(start, item.start)
            if item.start < place.end <= item.end:
                end = max(end, item.end)
    return Wording.within(document, start, min(end, len(document)))


def _repeated(quote: PlacedQuote, documents: _Documents, doc_ids: Iterable[str]) -> PlacedQuote:
    """Return a quote with the other places that it has in some documents."""
    if len(quote.wording.letters) < GRAM:
        return quote
    places = dict.fromkeys(quote.quote.places)
    for doc_id in doc_ids:
        for place in documents.places(quote.wording, doc_id):
            places.setdefault(place)
    return replace(quote, quote=Quote(tuple(places)))


def with_evidence_measures(
    dataset: Dataset, runs: Sequence[MeasuredRun], task: Task
) -> list[MeasuredRun]:
    """Return runs with the measures of evidence that are asked for, as well as the others.

    Args:
        dataset: The runs' own.
        runs: Measured by judgments.
        task: Names the measures; has the answerable queries of the whole set.

    Raises:
        DataError: The chunks or the retrieved texts cannot be read.
    """
    if not of_evidence(task.measures):
        return list(runs)
    basis = evidence_basis(dataset, task.queries, (run.retrieved for run in runs))
    return [_with_evidence(run, run.task or task, basis) for run in runs]


def _with_evidence(run: MeasuredRun, task: Task, basis: EvidenceBasis) -> MeasuredRun:
    if run.scores is None:
        return run
    evidence = basis.of_run(
        task.qrels.keys(),
        run.retrieved,
        run.summary.attention.failed,
        task.chosen,
        only_retrieved=task.only_retrieved,
    )
    scores = run.scores.with_evidence(evidence, [*task.measures, *run.scores.measures])
    summary = replace(
        run.summary,
        estimates={name: estimate_of(scores, name) for name in task.measures},
        primary=estimate_of(scores, task.primary),
        histogram=histogram_of(scores, task.primary),
        warnings=tuple(scores.warnings),
    )
    return replace(run, scores=scores, summary=summary)
