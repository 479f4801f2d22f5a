"""Runs: what a retriever returned for each query, from files of many shapes."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_ID,
    ITEM_ID,
    QUERY_ID,
    QUERY_OF_PAIR,
    QUOTE,
    RANK,
    RANKING,
    SCORE,
    SCORES,
    Field,
)
from ragforge.files.formats.named_texts import NamedText, question_beside, text_beside
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.formats.trec import each_trec_ranking, read_trec_run
from ragforge.files.row import (
    Row,
    cell_items,
    failure_of,
    latency_of,
    make_row,
    pair_twice,
    parse_number,
    query_name,
    query_of_pair,
)
from ragforge.files.source_files import has_header, open_source, plain_name
from ragforge.files.text import shown

SHAPES: Final = (
    "TREC run: q1 Q0 d7 1 12.5 bm25",
    'JSON Lines: {"query_id": "q1", "ranking": [{"chunk_id": "d7", "score": 12.5}]}',
    'columns: {"query_id": "q1", "ids": ["d7", "d2"], "scores": [12.5, 11]}',
    'results: {"id": "q1", "retrieved_docs": ["d7", "d2"]}, one a line or in a JSON list',
    'JSON by query: {"q1": {"d7": 12.5}} or {"q1": ["d7", "d2"]}',
    "CSV or TSV with a header: query_id,chunk_id,score",
)
_FEWEST_COLUMNS: Final = 5
_PAIR: Final = 2
_RANK_BY_NAME: Final = Field("rank", ("rank",))

Ranked = Mapping[str, float] | Sequence[str]
"""Scores by chunk id, or chunk ids, best first."""


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of one retriever."""

    name: str
    """The file's name without folder and suffix: tags of TREC runs are often all alike."""
    rankings: Mapping[str, Ranked]
    """By query id. Where there are scores they decide, not the order in the file. Those that are
    all alike in a query say nothing, and the order of a list, or its ranks, does."""
    latencies_s: Mapping[str, float]
    """By query id, of those for which the file says it."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """By query id, why the file has no ranking: its error, or that the ranking is null. The
    rankings of these are empty."""
    questions: Sequence[NamedText] = ()
    """What queries ask beside their ids, where it was read with the words."""
    texts: Sequence[NamedText] = ()
    """What hits read beside their ids, likewise."""


class Scattered(Exception):
    """A file is to be read whole: hits of a query may be anywhere in it, or a query failed."""


class QueryRanking(NamedTuple):
    """What was retrieved for one query."""

    query_id: str
    ranking: Ranked
    latency_s: float | None


def read_run(path: Path) -> Run:
    """Return the run in a file.

    The shape is recognised by suffix and first line; `.gz` and `.zst` are unpacked. Query and chunk
    ids are texts. A query without id goes by its text. Infinite scores are taken where the format
    can spell them.

    Args:
        path: A file of one of `SHAPES`.

    Raises:
        DataError: The file cannot be read, has none of the shapes, holds a score that is no
            number, lists a chunk twice for a query, or gives a list whose scores rise, so that
            its order, or the ranks in it, and its scores disagree; the message names file, line and
            field.
    """
    return _read(path, _Collected())


def read_worded_run(path: Path) -> Run:
    """Return the run in a file, with what queries and hits read beside their ids; as `read_run`."""
    return _read(path, _Collected(keeps_words=True))


def _read(path: Path, collected: "_Collected") -> Run:
    source = open_source(path)
    if source.kind == "columns" and not has_header(source):
        if len(source.first.split()) < _FEWEST_COLUMNS:
            raise unknown_shape(path, SHAPES)
        return Run(plain_name(path), read_trec_run(path, source.groups), {})
    return collected.run(str(path), read_rows_of(source, SHAPES, by_query="ranking"))


def each_ranking(path: Path) -> Iterator[QueryRanking]:
    """Yield the rankings of a run one by one, as `read_run` reads them, and keep none.

    A query whose lines do not stand together comes more than once.

    Raises:
        DataError: As `read_run`.
        Scattered: The rows are of single hits, or one is of a failure.
    """
    source = open_source(path)
    if source.kind == "columns" and not has_header(source):
        for query_id, scores in each_trec_ranking(path, source.groups):
            yield QueryRanking(query_id, scores, None)
        return
    for row, is_ranking in _shaped(str(path), read_rows_of(source, SHAPES, by_query="ranking")):
        ranking = _ranking(row) if is_ranking else []
        if not is_ranking or (not ranking and failure_of(row, RANKING)):
            raise Scattered
        yield QueryRanking(query_name(row), ranking, latency_of(row))


def run_of_rows(where: str, rows: Iterator[Row]) -> Run:
    """Return the run that rows of single hits, or of a ranking each, make; as `read_run`.

    Args:
        where: Where the rows are from, for messages and the name.
        rows: All of the kind of the first.

    Raises:
        DataError: There is none, or one cannot be taken.
    """
    return _Collected().run(where, rows)


class Place(NamedTuple):
    """Where a hit is told, and its rank there."""

    where: str
    rank: float


@dataclass(slots=True)
class _Collected:
    rankings: dict[str, Ranked] = field(default_factory=dict)
    latencies_s: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    places: dict[str, dict[str, Place]] = field(default_factory=dict)
    """Where the hits of a file of pairs with scores and ranks stand, by query and chunk."""
    order: Field | None = None
    """By what the rows of a file of pairs are ordered; the first one decides."""
    pairs: dict[str, dict[str, float]] = field(default_factory=dict)
    keeps_words: bool = False
    """Whether what stands beside ids is wanted; it may be much."""
    questions: dict[NamedText, None] = field(default_factory=dict)
    texts: dict[NamedText, None] = field(default_factory=dict)

    def run(self, where: str, rows: Iterator[Row]) -> Run:
        """Return the run that rows make; see `run_of_rows`."""
        for row, is_ranking in _shaped(where, rows):
            if is_ranking:
                self.add_ranking(row)
            else:
                self.add_pair(row)
        rankings = self.settled()
        if not rankings:
            raise none_found(where, "ranking")
        return Run(
            plain_name(Path(where)),
            rankings,
            self.latencies_s,
            self.failures,
            tuple(self.questions),
            tuple(self.texts),
        )

    def add_ranking(self, row: Row) -> None:
        query_id = query_name(row)
        if query_id in self.rankings:
            raise DataError(f"{row.where}: query {shown(query_id)} comes twice")
        ranking = self.rankings[query_id] = _ranking(row)
        if self.keeps_words:
            self.questions |= dict.fromkeys(question_beside(row, query_id))
            self.texts |= dict.fromkeys(_texts_of_hits(row))
        failure = "" if ranking else failure_of(row, RANKING)
        if failure:
            self.failures[query_id] = failure
        latency_s = latency_of(row)
        if latency_s is not None:
            self.latencies_s[query_id] = latency_s

    def add_pair(self, row: Row) -> None:
        query_id, chunk_id = query_of_pair(row), row.identifier(CHUNK_ID)
        if self.order is None:
            self.order = SCORE if row.has(SCORE) else RANK
            row.require(self.order)
        chunks = self.pairs.setdefault(query_id, {})
        if chunk_id in chunks:
            raise pair_twice(row.where, query_id, chunk_id)
        if self.keeps_words:
            question = row.get(QUERY_OF_PAIR)
            self.questions |= dict.fromkeys(question_beside(row, query_id))
            self.texts |= dict.fromkeys(text_beside(row, chunk_id, question))
        value = row.get(self.order)
        chunks[chunk_id] = row.as_number(value, self.order)
        rank = row.get(RANK) if self.order is SCORE else None
        if rank not in (None, ""):
            place = Place(row.where, row.as_number(rank, RANK))
            self.places.setdefault(query_id, {})[chunk_id] = place

    def settled(self) -> dict[str, Ranked]:
        by_rank = self.order is RANK
        for query_id, chunks in self.pairs.items():
            places = self.places.get(query_id, {})
            self.rankings[query_id] = (
                sorted(chunks, key=chunks.__getitem__)
                if by_rank
                else ranked(query_id, chunks, places)
            )
        return self.rankings


def _are_alike(scores: Collection[float]) -> bool:
    """Whether scores order nothing, as those of a search that only tells what matches."""
    return len(scores) > 1 and len(set(scores)) == 1


def _tell_ranks(places: Mapping[str, Place], chunk_ids: Collection[str]) -> bool:
    return len(places) == len(chunk_ids) and len({place.rank for place in places.values()}) > 1


def _by_rank(chunk_ids: Iterable[str], places: Mapping[str, Place]) -> list[str]:
    return sorted(chunk_ids, key=lambda chunk_id: places[chunk_id].rank)


def ranked(query_id: str, scores: Mapping[str, float], places: Mapping[str, Place]) -> Ranked:
    """Return hits with their scores; by their ranks where all have one score, which orders nothing.

    Raises:
        DataError: The ranks are not in the order of the scores.
    """
    _refuse_other_order(query_id, scores, places)
    is_by_rank = _are_alike(scores.values()) and _tell_ranks(places, scores)
    return _by_rank(scores, places) if is_by_rank else scores


def _refuse_other_order(
    query_id: str, scores: Mapping[str, float], places: Mapping[str, Place]
) -> None:
    """Refuse hits whose ranks are not in the order of their scores.

    Raises:
        DataError: They are not: one of the two would turn the ranking over.
    """
    ordered = sorted(places, key=lambda chunk_id: (places[chunk_id].rank, -scores[chunk_id]))
    for first, second in pairwise(ordered):
        better, worse = places[first], places[second]
        if scores[second] > scores[first] and worse.rank > better.rank:
            raise DataError(
                f"{worse.where}: query {shown(query_id)}: rank {worse.rank:g} has a higher score "
                f"than rank {better.rank:g}, {scores[second]!r} after {scores[first]!r}; where "
                "scores are distances, leave their column out, or write them negative; where "
                "scores decide, leave out the ranks"
            )


def _shaped(where: str, rows: Iterator[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield rows, and whether they hold a ranking rather than one hit; the first decides."""
    is_ranking: bool | None = None
    for row in rows:
        if is_ranking is None:
            is_ranking = row.has(RANKING)
            if not row.has(QUERY_ID, QUERY_OF_PAIR) or not (is_ranking or row.has(CHUNK_ID)):
                raise unknown_shape(where, SHAPES)
        if is_ranking:
            row.require(RANKING)
        yield row, is_ranking


def _ranking(row: Row) -> Ranked:
    value = cell_items(row, RANKING)
    if isinstance(value, Mapping):
        return {
            row.as_id(chunk_id, RANKING): row.as_number(score, RANKING)
            for chunk_id, score in value.items()
        }
    if not isinstance(value, list):
        raise row.wrong(RANKING, "a list of chunks or scores by chunk", value)
    hits = [_hit_row(row, item) for item in value]
    chunk_ids = [hit.identifier(ITEM_ID) for hit in hits]
    _refuse_twice(row, chunk_ids)
    scores = [hit.as_number(hit.get(SCORE), SCORE) for hit in hits if hit.get(SCORE) is not None]
    scores = scores or _aligned_scores(row)
    places = _places(hits, chunk_ids, is_scored=bool(scores))
    if not scores:
        return _by_rank(chunk_ids, places) if places else chunk_ids
    checked = _checked(row, scores, len(chunk_ids), is_sorted=len(places) < len(chunk_ids))
    ranking = dict(zip(chunk_ids, checked, strict=True))
    by_rank = ranked(query_name(row), ranking, places)
    return chunk_ids if by_rank is ranking and _are_alike(scores) else by_rank


def _texts_of_hits(row: Row) -> Iterator[NamedText]:
    """Yield what the hits of a list read beside their ids."""
    value = cell_items(row, RANKING)
    for item in value if isinstance(value, list) else ():
        hit = _hit_row(row, item)
        yield from text_beside(hit, hit.identifier(ITEM_ID))


def _places(hits: Sequence[Row], chunk_ids: Sequence[str], *, is_scored: bool) -> dict[str, Place]:
    """Return the ranks of the hits of a list, by chunk; {} where they tell none.

    Positions but 1, 2, 3 … or 0, 1, 2 … are those of chunks in their documents.

    Raises:
        DataError: A rank is no number, or some hits without scores have one and others not.
    """
    hit_of = dict(zip(chunk_ids, hits, strict=True))
    told = {chunk_id: hit for chunk_id, hit in hit_of.items() if hit.get(RANK) not in (None, "")}
    if not any(hit.has(_RANK_BY_NAME) for hit in told.values()):
        numbers = sorted(parse_number(hit.get(RANK)) or 0 for hit in told.values())
        if numbers not in (list(range(len(hits))), list(range(1, len(hits) + 1))):
            return {}
    elif not is_scored:
        told = hit_of
    return {
        chunk_id: Place(hit.where, hit.as_number(hit.get(RANK), RANK))
        for chunk_id, hit in told.items()
    }


def _refuse_twice(row: Row, chunk_ids: list[str]) -> None:
    seen: set[str] = set()
    for chunk_id in chunk_ids:
        if chunk_id in seen:
            raise pair_twice(row.where, query_name(row), chunk_id)
        seen.add(chunk_id)


def _aligned_scores(row: Row) -> list[float]:
    value = row.get(SCORES)
    if value is None:
        return []
    if not isinstance(value, list):
        raise row.wrong(SCORES, "a list of numbers", value)
    return [row.as_number(score, SCORES) for score in value]


def _hit_row(row: Row, item: object) -> Row:
    """Return a hit as a row: from an object, (id, score) or an id."""
    where = f"{row.where}: {RANKING.name}"
    if isinstance(item, Mapping):
        hit = make_row(where, item)
        if hit.has(QUOTE):
            raise hit.wrong(QUOTE, "chunk ids, not quotes, in a run", hit.get(QUOTE))
        return hit
    if isinstance(item, list) and len(item) == _PAIR:
        return make_row(where, {"id": item[0], "score": item[1]})
    return make_row(where, {"id": item})


def _checked(row: Row, scores: list[float], n_chunks: int, *, is_sorted: bool) -> list[float]:
    if len(scores) != n_chunks:
        raise row.wrong(RANKING, f"{n_chunks} scores or none", len(scores))
    for better, worse in pairwise(scores if is_sorted else ()):
        if worse > better:
            raise DataError(
                f"{row.where}: {RANKING.name}: expected scores that fall along the list, got "
                f"{better!r} before {worse!r}; sort it, or leave out scores that are distances"
            )
    return scores
