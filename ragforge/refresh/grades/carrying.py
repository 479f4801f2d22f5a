"""What becomes of grades and pools when the corpus changed: they follow their chunks.

A judge can be asked again, and its replies are stored; a person cannot. So no grade of a person is
given up: it stands where its text or its quote does, and waits where that is gone.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Final, Literal

from ragforge.corpus.quote_locations import ChunkIndex, fold
from ragforge.corpus.rereading import seen_now_sha256
from ragforge.deferred import dataclass
from ragforge.evaluating.completion import RELEVANT
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import Key, key_of, pair_and_judge, pair_of
from ragforge.pipeline.graded_quotes import (
    GradedQuotes,
    PersonsQuote,
    PlacedGrades,
    QuoteKey,
    at_chunks,
    by_rank,
    in_order,
    moved_pool,
    place_grades,
    with_quotes,
)
from ragforge.pipeline.judge.pooling import KeptGrades
from ragforge.pipeline.text_grades import may_hold_more, move_failures
from ragforge.records import (
    DormantGrade,
    Evidence,
    Judgment,
    JudgmentsDiff,
    PoolEntry,
    Provenance,
    Query,
    QuoteGrade,
    is_text_id,
)
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentChunks
from ragforge.refresh.corpus.document_map import DocumentMap, doc_id_now
from ragforge.refresh.grades.labelled_documents import (
    document_map_of,
    documents_back,
    waiting_label,
    with_documents,
)
from ragforge.refresh.grades.moved_chunks import (
    MovedChunks,
    find_moved,
    moved_since,
    named_chunks,
    new_places,
    originals_back,
    places_anywhere,
    texts_back,
)
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.quotes.locations import is_unchecked
from ragforge.stages.generate.truth import derive

_Kind = Literal["kept", "carried", "judged", "evidence", "failed"]
_NEW: Final = frozenset({"judge"})
"""What only this version's judges leave: what follows a chunk is marked, or a person's."""


def carry_judgments(
    staged: Dataset,
    parent: Dataset,
    diff: CorpusDiff,
    updated: UpdatedQueries,
    judges: Sequence[Provenance],
) -> JudgmentsDiff:
    """Write the grades and pools of a version that follow from those of its parent; no call.

    A grade stays where its chunk does, and goes where a new chunk reads the same; a judge's is
    marked as carried there, as is one that another judge would give today. A grade that a person
    gave to a quote follows the quote, and one to a chunk the evidence that it held, both word for
    word. Where nothing of the kind stands, it waits until it does. What the evidence of a query
    says is told anew where the query changed. New evidence is not given up for a lower grade of a
    judge, and gives none up that a person gave; where a person or a judge saw the evidence and
    found its chunk not relevant, it says nothing.
    Relevance is judged against the question: where only the answer changed, grades stand.

    Args:
        staged: Gets `judgments.jsonl`, `dormant_grades.jsonl`, `pool.jsonl`, `label_checks.jsonl`,
            `moved_chunks.jsonl`, and in `failures.jsonl` the ids of now.
        parent: The version before.
        diff: What changed in the corpus.
        updated: The queries as they are now.
        judges: Who would judge today; see `Judges.provenances`.

    Returns:
        Numbers of grades, as they are in `staged` now.
    """
    earlier = parent.past.moved_chunks()
    document_map = document_map_of(parent, diff)
    moves = with_documents(find_moved(diff, named_chunks(parent), document_map), parent, diff)
    records = moved_since(earlier, moves, diff)
    if records or earlier:
        staged.past.write_moved_chunks(records)
    touched = _touched(updated.items, parent, diff, moves)
    people = peoples_grades(parent, document_map, updated.items, moves)
    theirs = frozenset(people.documents)
    doc_ids = {item.doc_id for query in touched.values() for item in query.evidence}
    with DocumentChunks(diff.chunks_path, doc_ids | theirs) as documents:
        evidence = _derived(touched, documents)
        followed, dormant = people.place(documents.index(theirs))
    if dormant or people.dormant:
        staged.past.write_dormant_grades(dormant)
    proofs = {
        item.query.query_id: item.before.evidence
        for item in updated.items
        if item.before is not None
    }
    kept_grades = KeptGrades(tuple(judges), again=False)
    same = {item.query.query_id for item in updated.items if _has_same_answer(item)}
    texts = {one.chunk_id for one in parent.each_judgment() if _is_of_text_alone(one)}
    back = texts_back(diff, texts)
    copied = {one.copied_from for one in parent.each_judgment() if one.source == "human"}
    originals = originals_back(diff, copied)
    copies_count = bool(originals) and may_hold_more(parent)
    carrying = _Carrying(
        moves, back, originals, copies_count, kept_grades, evidence, followed, proofs, same
    )
    staged.put_judgments(carrying.judgments(parent.each_judgment()))
    _carry_pool(staged, parent, moves)
    _carry_checks(staged, parent, moves)
    move_failures(staged, moves.of)
    return count_grades(parent, staged, carrying.n_dropped)


@dataclass(slots=True)
class _Carrying:
    """The judgments of a version, query by query.

    Args:
        moves: Where chunks are now.
        back: The chunks that texts are again, by the id of the text.
        originals: The chunks that read as one that is back under its id, by that.
        copies_count: Whether copies of what people graded are graded too: labels are not complete.
        kept_grades: Who would judge today.
        evidence: What evidence says, by the id of each query for which it is told anew.
        followed: Grades of people that come to chunks, for those whose chunk is gone.
        proofs: The evidence that each query had.
        same: Ids of the queries that ask and expect what they did.
    """

    moves: MovedChunks
    back: Mapping[str, Sequence[str]]
    originals: Mapping[str, Collection[str]]
    copies_count: bool
    kept_grades: KeptGrades
    evidence: Mapping[str, Sequence[Judgment]]
    followed: PlacedGrades
    proofs: Mapping[str, Sequence[Evidence]]
    same: Container[str]
    n_dropped: int = 0
    _following: dict[str, list[Judgment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for judgment in self.followed.judgments:
            self._following.setdefault(judgment.query_id, []).append(judgment)

    def judgments(self, old: Iterable[Judgment]) -> Iterator[Judgment]:
        """Yield all judgments of now, sorted; `old` is sorted by query and chunk."""
        groups = ((name, [*of]) for name, of in groupby(old, lambda one: one.query_id))
        others = ((name, list[Judgment]()) for name in sorted({*self.evidence, *self._following}))
        both = heapq.merge(groups, others, key=lambda group: group[0])
        for query_id, parts in groupby(both, lambda group: group[0]):
            yield from self._of_query(query_id, [one for _, of in parts for one in of])

    def _of_query(self, query_id: str, old: Sequence[Judgment]) -> list[Judgment]:
        again = self.evidence.get(query_id)
        judgments: list[Judgment] = []
        returned: list[Judgment] = []
        for judgment in old:
            if judgment.source == "evidence" and not self._is_of_copy(judgment):
                judgments += [judgment] if again is None else []
            elif judgment.chunk_id in self.back and _is_of_text_alone(judgment):
                now = self.back[judgment.chunk_id]
                returned += [self._marked(one) for one in at_chunks(judgment, now)]
            else:
                judgments += self._carried(judgment)
        # What was given to chunks says more than what waited as a text: it comes last.
        judgments = [*in_order(returned, self._following.get(query_id, ())), *judgments]
        judgments = self._at_originals(judgments) if self.originals else judgments
        by_chunk = {judgment.chunk_id: judgment for judgment in by_rank(judgments)}
        graded = {chunk_id for chunk_id, one in by_chunk.items() if not one.is_failed}
        for judgment in self._claims(query_id, old, graded) if again else ():
            if _says_more(judgment, by_chunk.get(judgment.chunk_id)):
                by_chunk[judgment.chunk_id] = judgment
        return [by_chunk[chunk_id] for chunk_id in sorted(by_chunk)]

    def _is_of_copy(self, judgment: Judgment) -> bool:
        """Whether evidence that stands was found in a copy of its chunk, which says what it did."""
        stands = bool(self.evidence.get(judgment.query_id, True))
        return bool(judgment.copied_from) and judgment.query_id in self.same and stands

    def _at_originals(self, judgments: Sequence[Judgment]) -> list[Judgment]:
        """Let grades go back that copies had while the chunk was gone that people graded."""
        own = {one.chunk_id for one in judgments if one.source == "human" and not one.copied_from}
        originals = self.originals.items()
        back = {name for name, copies in originals if own.isdisjoint({*copies} - {name})}
        found: list[Judgment] = []
        for one in judgments:
            original = one.copied_from
            is_back = original in back and one.chunk_id in self.originals[original]
            if is_back:
                update = {"chunk_id": original, "copied_from": ""}
                found.append(one.model_copy(update=update))
            if not is_back or self.copies_count:
                found.append(one)
        return found

    def _claims(
        self, query_id: str, old: Sequence[Judgment], graded: Container[str]
    ) -> Iterator[Judgment]:
        """Yield what the evidence says that nobody who saw it there has said otherwise.

        In other words than before it says no more than people said of it.

        Args:
            query_id: The query.
            old: Its judgments in the version before.
            graded: Ids of the chunks for which one of these stands.
        """
        proofs = self.proofs.get(query_id, ())
        known = {fold(item.quote) for item in proofs}
        refuted = {one.chunk_id for one in old if one.source != "evidence" and _is_refuted(one)}
        refuted_quotes = {fold(item.quote) for item in proofs if item.chunk_id in refuted}
        of_people = [one for one in old if one.source == "human" and not one.is_failed]
        proofs_at = {item.chunk_id for item in proofs}
        highest = max((one.grade or 0 for one in of_people if one.chunk_id in proofs_at), default=0)
        proved = {
            now for one in old if one.source == "evidence" for now in self.moves.of(one.chunk_id)
        }
        for judgment in self.evidence[query_id]:
            quote = fold(judgment.evidence)
            was_seen = quote in known and judgment.chunk_id in graded
            if judgment.chunk_id in proved or not (was_seen or quote in refuted_quotes):
                is_reworded = quote not in known and query_id in self.same
                yield _at_most(judgment, highest) if is_reworded else judgment

    def _carried(self, judgment: Judgment) -> list[Judgment]:
        now = self.moves.of(judgment.chunk_id)
        found = [self._marked(one) for one in at_chunks(judgment, now)]
        has_followed = (judgment.query_id, judgment.chunk_id) in self.followed.pairs
        if not judgment.is_failed:
            self.n_dropped += not found and not has_followed
        return found

    def _marked(self, judgment: Judgment) -> Judgment:
        by = judgment.provenance
        if judgment.source != "judge" or by is None or by.kind != "llm":
            return judgment
        if self.kept_grades.is_baseline or self.kept_grades.is_same(by):
            return judgment
        return judgment.model_copy(update={"source": "carried"})


def _is_of_text_alone(judgment: Judgment) -> bool:
    """Whether a grade is of a text that is no chunk, and no person's of its words elsewhere.

    That one goes or waits by itself: of other chunks that read the same the person said nothing.
    """
    is_persons_copy = judgment.source == "human" and bool(judgment.copied_from)
    return is_text_id(judgment.chunk_id) and not (judgment.is_failed or is_persons_copy)


def _at_most(judgment: Judgment, highest: int) -> Judgment:
    """Return a claim with a grade that people gave to what it stands for; 0 where none did."""
    if not highest or (judgment.grade or 0) <= highest:
        return judgment
    return judgment.model_copy(update={"grade": highest})


def _is_refuted(judgment: Judgment) -> bool:
    """Whether a chunk as a whole was found not relevant."""
    return not judgment.is_failed and (judgment.listed_grade or 0) < RELEVANT


def _says_more(evidence: Judgment, old: Judgment | None) -> bool:
    if old is None or old.is_failed:
        return True
    return old.source != "human" and (old.grade or 0) < (evidence.grade or 0)


def _carry_pool(staged: Dataset, parent: Dataset, moves: MovedChunks) -> None:
    if not any(True for _ in parent.each_pool_entry()):
        return
    groups = groupby(parent.each_pool_entry(), lambda entry: entry.query_id)
    staged.put_pool(entry for _, entries in groups for entry in _pool_of(entries, moves))


def _pool_of(entries: Iterable[PoolEntry], moves: MovedChunks) -> list[PoolEntry]:
    return sorted(moved_pool(entries, moves), key=lambda entry: entry.chunk_id)


def _carry_checks(staged: Dataset, parent: Dataset, moves: MovedChunks) -> None:
    """Let what judges said beside grades of people follow these."""
    checks = parent.label_checks()
    if any(check.chunk_id in moves.gone for check in checks):
        moved = [
            (check if chunk_id == check.chunk_id else _on_chunk(check, chunk_id))
            for check in checks
            for chunk_id in moves.of(check.chunk_id)
        ]
        staged.write_label_checks({pair_and_judge(check): check for check in moved}.values())


def _on_chunk(check: Judgment, chunk_id: str) -> Judgment:
    return check.model_copy(update={"chunk_id": chunk_id, "copied_from": ""})


@dataclass(frozen=True, slots=True)
class PeoplesGrades:
    """Grades by people whose chunk is gone, now or since an earlier version.

    Args:
        gone: Those whose chunk is gone now.
        dormant: Those that waited already.
        quotes: Those among the gone that were given to quotes.
        items: The queries as they are now, by id; all that are graded here.
        moves: Where chunks are now.
        back: Ids of the new chunks with the text of a dormant grade, by its document and digest.
        read_alike: Ids of the chunks that read as those that are gone, by the digest of the text.
        graded: Pairs that people graded in a chunk that stays.
        changed: Ids of documents that are not as they were; a dormant grade waits for these only.
        judged: Pairs of these queries that a model graded in a chunk that stays.
    """

    gone: Sequence[DormantGrade]
    dormant: Sequence[DormantGrade]
    quotes: GradedQuotes
    items: Mapping[str, UpdatedQuery]
    moves: MovedChunks
    back: Mapping[tuple[str, str], tuple[str, ...]]
    read_alike: Mapping[str, tuple[str, ...]]
    graded: Container[tuple[str, str]]
    changed: Container[str]
    judged: Container[tuple[str, str]]

    @property
    def documents(self) -> set[str]:
        """Those that may hold quotes of them."""
        others = (*self._dormant_quotes(), *self._proofs([*self.dormant, *self.gone]))
        return self.quotes.documents | {quote.item.doc_id for quote in others}

    def place(self, index: ChunkIndex) -> tuple[PlacedGrades, list[DormantGrade]]:
        """Return the grades that stand in other chunks or stand again, and those that wait.

        Args:
            index: Of the `documents`.
        """
        places = [
            place_grades(self._dormant_quotes(), index),
            self._returned(),
            self.quotes.place(index),
        ]
        updated = {pair for placed in places for pair in placed.pairs}
        updated |= {pair_of(grade) for grade in self.gone if self.moves.of(grade.judgment.chunk_id)}
        open_ = [grade for grade in (*self.dormant, *self.gone) if pair_of(grade) not in updated]
        # What a person graded at its place says more than what was found elsewhere: it comes last.
        places = [place_grades(self._proofs(open_), index), *places]
        pairs = {pair for placed in places for pair in placed.pairs}
        waiting = {pair_of(grade): grade for grade in open_ if pair_of(grade) not in pairs}
        return PlacedGrades(_joined(places), pairs), [*waiting.values()]

    def _returned(self) -> PlacedGrades:
        returned: list[Judgment] = []
        pairs: set[tuple[str, str]] = set()
        for one in (*self.dormant, *self.gone):
            now = self.back.get(_text_of(one), ())
            read_alike = () if now else self._chunks_that_read_alike(one)
            returned += at_chunks(one.judgment, now)
            for judgment in at_chunks(one.judgment, read_alike):
                update = {"copied_from": one.judgment.chunk_id}
                returned.append(judgment.model_copy(update=update))
            pairs |= {pair_of(one)} if now or read_alike else set()
        return PlacedGrades(returned, pairs)

    def _chunks_that_read_alike(self, one: DormantGrade) -> tuple[str, ...]:
        """Return the chunks that read as one that is gone and that people did not grade."""
        if self.moves.of(one.judgment.chunk_id):
            return ()
        graded, query_id = self.graded, one.judgment.query_id
        read_alike = self.read_alike.get(one.text_sha256, ())
        return tuple(chunk_id for chunk_id in read_alike if (query_id, chunk_id) not in graded)

    def _dormant_quotes(self) -> Iterator[PersonsQuote]:
        for one in self.dormant:
            if _text_of(one) in self.back or one.doc_id not in self.changed:
                continue
            if _is_unplaced(one.judgment, self.items.get(one.judgment.query_id)):
                continue
            chunk_id = one.judgment.chunk_id
            for given in one.judgment.given_to_quotes:
                item = Evidence(doc_id=one.doc_id, chunk_id=chunk_id, quote=given.quote)
                yield PersonsQuote(one.judgment, given, item)

    def _proofs(self, grades: Iterable[DormantGrade]) -> Iterator[PersonsQuote]:
        """Yield grades with the evidence of their query that they are of, where it stands now.

        A grade of a chunk as a whole is taken for one of the evidence that the chunk held, where it
        says that the chunk is relevant: what else stands beside the evidence now nobody has seen.
        Evidence in other words has no grade of a person, nor has a text that a model graded.
        """
        gone = {pair_of(one) for one in self.gone}
        for one in grades:
            judgment, item = one.judgment, self.items.get(one.judgment.query_id)
            if item is None or _is_unplaced(judgment, item):
                continue
            is_new = pair_of(one) in gone or item.is_moved or item.change is not None
            for given, now in _same_words(item, judgment):
                if (judgment.query_id, now.chunk_id) in self.judged:
                    continue
                if is_new or now.doc_id in self.changed:
                    yield PersonsQuote(judgment, given, now)


def peoples_grades(
    parent: Dataset, document_map: DocumentMap, items: Iterable[UpdatedQuery], moves: MovedChunks
) -> PeoplesGrades:
    """Return the grades that people gave to chunks that a changed corpus does not have.

    Args:
        parent: The version before.
        document_map: Where documents are now, in the corpus that changed.
        items: The queries as they are now.
        moves: Where the chunks that the version before names are now.
    """
    diff = document_map.diff
    dormant = [_renamed(grade, document_map) for grade in parent.past.dormant_grades()]
    lost = [
        judgment
        for judgment in parent.each_judgment()
        if judgment.source == "human" and not judgment.is_failed and judgment.chunk_id in moves.gone
    ]
    gone = [*_gone(lost, document_map)]
    graded = {grade.judgment.query_id for grade in (*dormant, *gone)}
    named = {item.query.query_id: item for item in items if item.query.query_id in graded}
    queries = [item.before for item in named.values() if item.before is not None]
    placed = [one for one in lost if not _is_unplaced(one, named.get(one.query_id))]
    unmoved = [grade for grade in gone if not moves.of(grade.judgment.chunk_id)]
    read_alike = places_anywhere(
        diff, {grade.text_sha256 for grade in unmoved if _is_of_chunk(grade.judgment)}
    )
    return PeoplesGrades(
        gone=gone,
        dormant=dormant,
        quotes=GradedQuotes(
            placed,
            document_map.before(),
            queries,
            document_map.of,
            _evidence_now(named, document_map),
        ),
        items=named,
        moves=moves,
        back={
            **new_places(
                diff, (_text_of(grade) for grade in dormant if _is_of_chunk(grade.judgment))
            ),
            **documents_back(dormant, diff),
        },
        read_alike=read_alike,
        graded=_by_people(parent) if read_alike else frozenset(),
        changed=diff.moves,
        judged={
            (one.query_id, one.chunk_id)
            for one in (parent.each_judgment() if graded else ())
            if one.query_id in graded and one.chunk_id not in moves.gone and _is_by_model(one)
        },
    )


def _is_unplaced(judgment: Judgment, item: UpdatedQuery | None) -> bool:
    """Whether a grade is of evidence of which nobody could say that it is the same where it stands.

    Such a grade waits: the place may be a section of the same words on something else.
    """
    if item is None or not is_unchecked(item.query):
        return False
    proofs = {fold(one.quote) for one in item.query.evidence}
    return any(fold(one.quote) in proofs for one in judgment.given_to_quotes)


def _evidence_now(
    items: Mapping[str, UpdatedQuery], document_map: DocumentMap
) -> dict[QuoteKey, Evidence]:
    """Return where evidence stands now that has the words of before, in its document."""
    return {
        (query_id, was.doc_id, quote): now
        for query_id, item in items.items()
        if item.before is not None and len(item.before.evidence) == len(item.query.evidence)
        for was, now in zip(item.before.evidence, item.query.evidence, strict=True)
        if (quote := fold(was.quote)) == fold(now.quote)
        and now.doc_id == document_map.of(was.doc_id)
    }


def _by_people(dataset: Dataset) -> frozenset[tuple[str, str]]:
    given = dataset.judgment_table().pairs(lambda grading: grading.source == "human")
    return frozenset((pair.query_id, pair.chunk_id) for pair in given)


def _gone(lost: Sequence[Judgment], document_map: DocumentMap) -> Iterator[DormantGrade]:
    wanted = {judgment.chunk_id for judgment in lost if _is_of_chunk(judgment)}
    chunks = {
        chunk.chunk_id: (document_map.of(chunk.doc_id), seen_now_sha256(chunk))
        for chunk in (document_map.before() if wanted else ())
        if chunk.chunk_id in wanted
    }
    for judgment in lost:
        if not _is_of_chunk(judgment):
            doc_id = doc_id_now(document_map.diff, judgment.chunk_id)
            yield waiting_label(judgment, doc_id, document_map.diff)
            continue
        doc_id, digest = chunks[judgment.chunk_id]
        yield DormantGrade(judgment=judgment, doc_id=doc_id, text_sha256=digest)


def _is_by_model(judgment: Judgment) -> bool:
    by = judgment.provenance
    is_judged = judgment.source in ("judge", "carried") and not judgment.is_failed
    return is_judged and by is not None and by.kind != "baseline"


def _is_of_chunk(judgment: Judgment) -> bool:
    return judgment.level == "chunk"


def _renamed(one: DormantGrade, document_map: DocumentMap) -> DormantGrade:
    is_of_chunk = _is_of_chunk(one.judgment)
    doc_id = (
        document_map.of(one.doc_id) if is_of_chunk else doc_id_now(document_map.diff, one.doc_id)
    )
    return one.model_copy(update={"doc_id": doc_id})


def _text_of(one: DormantGrade) -> tuple[str, str]:
    return one.doc_id, one.text_sha256


def _has_same_answer(item: UpdatedQuery) -> bool:
    """Whether a query asks and expects what it did."""
    return item.before is not None and item.before.revision == item.query.revision


def _same_words(item: UpdatedQuery, judgment: Judgment) -> Iterator[tuple[QuoteGrade, Evidence]]:
    """Yield the evidence of a query whose words a person graded, where the answer is the same."""
    before = item.before
    if before is None or not _has_same_answer(item):
        return
    given = {fold(one.quote): one.grade for one in judgment.given_to_quotes}
    if not judgment.evidence and not _is_refuted(judgment):
        held = (old.quote for old in before.evidence if old.chunk_id == judgment.chunk_id)
        given = {**dict.fromkeys(map(fold, held), judgment.grade or 0), **given}
    for now in item.query.evidence:
        grade = given.get(fold(now.quote))
        if grade is not None:
            yield QuoteGrade(quote=now.quote, grade=grade), now


def _joined(places: Iterable[PlacedGrades]) -> list[Judgment]:
    """Return one judgment a chunk, the last of several, with what each knows of its quotes."""
    joined: dict[Key, Judgment] = {}
    for judgment in (one for placed in places for one in placed.judgments):
        before = joined.get(key_of(judgment))
        if before is not None and judgment.grade is not None:
            own = judgment.given_to_quotes
            said = {fold(one.quote): one.grade for one in own}
            others = (
                one
                for one in before.given_to_quotes
                if said.get(fold(one.quote), one.grade) == one.grade
            )
            judgment = with_quotes(judgment, (*own, *others))
        joined[key_of(judgment)] = judgment
    return [*joined.values()]


def _touched(
    items: Iterable[UpdatedQuery], parent: Dataset, diff: CorpusDiff, moves: MovedChunks
) -> dict[str, Query]:
    """Return the queries whose evidence is told anew, by id."""
    lost = {
        judgment.query_id
        for judgment in parent.each_judgment()
        if judgment.source == "evidence" and judgment.chunk_id in moves.gone
    }
    return {
        item.query.query_id: item.query
        for item in items
        if item.is_moved
        or item.before is None
        or item.change is not None
        or item.before.revision != item.query.revision
        or item.query.query_id in lost
        or _is_out_beside_changes(item.query, diff)
    }


def _is_out_beside_changes(query: Query, diff: CorpusDiff) -> bool:
    """Whether a query is retired, so that nothing else tells that a quote of it is back."""
    return query.status == "retired" and any(item.doc_id in diff.moves for item in query.evidence)


def _derived(touched: Mapping[str, Query], documents: DocumentChunks) -> dict[str, list[Judgment]]:
    """Return what the evidence of queries says, by id, as far as it stands.

    Retired ones are among them: what stands of their evidence is there when they come back.
    """
    derived: dict[str, list[Judgment]] = {query_id: [] for query_id in touched}
    proved = [query for query in touched.values() if query.evidence]
    # In the order of their documents, as one index is held at a time.
    for query in sorted(proved, key=lambda query: (sorted(_documents(query)), query.query_id)):
        index = documents.index(_documents(query))
        derived[query.query_id] = [*derive(query, index).judgments]
    return derived


def _documents(query: Query) -> frozenset[str]:
    return frozenset(item.doc_id for item in query.evidence)


def count_grades(parent: Dataset, staged: Dataset, dropped: int) -> JudgmentsDiff:
    """Return how many rows of a version's judgments are of which kind.

    Args:
        parent: The version before.
        staged: The version.
        dropped: Grades of people and judges whose chunk is gone.

    Raises:
        DataError: A file cannot be read.
    """
    counts = Counter[str](_kinds(parent.each_judgment(), staged.each_judgment()))
    waiting = len(staged.past.dormant_grades())
    return JudgmentsDiff(dropped=dropped, dormant=waiting, **counts)


def _kinds(before: Iterator[Judgment], now: Iterator[Judgment]) -> Iterator[_Kind]:
    old = next(before, None)
    for judgment in now:
        while old is not None and key_of(old) < key_of(judgment):
            old = next(before, None)
        yield _kind(judgment, is_same=old == judgment)


def _kind(judgment: Judgment, *, is_same: bool) -> _Kind:
    if judgment.is_failed:
        return "failed"
    if judgment.source == "evidence":
        return "evidence"
    if is_same:
        return "kept"
    return "judged" if judgment.source in _NEW else "carried"
