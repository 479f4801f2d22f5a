"""New chunks that say otherwise than a query expects: what is then in doubt is set aside."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import pairwise
from typing import Final, Literal

from ragforge.corpus.quote_locations import Location
from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass, pattern
from ragforge.evaluating.completion import RELEVANT
from ragforge.files.set.dataset import Dataset
from ragforge.records import Cause, Chunk, Failure, ItemChange, Judgment, Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.queries.rechecking import Recheckers
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.stages.recheck import Finding, Passage, Subject, widened
from ragforge.stages.runner import Collected, Work, Workers, collect

_LIST_ITEM: Final = pattern(r"^[ \t]*(?:[-*+>]|\d+[.)])[ \t]+", re.MULTILINE)
_PARAGRAPHS: Final = pattern(r"\n\s*\n")
"""Between paragraphs; a single line break may be of a wrap."""
_SENTENCE_END: Final = pattern(r"(?<=[.!?\u3002\uff01\uff1f])\s+|(?<=[\u3002\uff01\uff1f])")
_HEADING: Final = pattern(r"\s*#{1,6}\s")
_RULE: Final = pattern(r"\s*([=\-~^\"'`#*+.:_])\1{2,}\s*")
"""Under a heading, or a line across the page."""
MOST_PASSAGES: Final = 8
"""Chunks that one check looks at; more are looked at in further checks."""


def with_new_text(diff: CorpusDiff, chunk_ids: Collection[str]) -> frozenset[str]:
    """Return those of some new chunks that hold a sentence which is new.

    A chunk of a document whose text is to the byte as before holds none, however it is cut or named
    now. In another document a sentence is new where it stood in none of the chunks that are gone;
    blanks are folded, and headings left aside.

    Args:
        diff: What changed. Its new and its removed chunks are read as streams; held are digests of
            the sentences of those chunks that are asked for.
        chunk_ids: Of new chunks.
    """
    digests_of = {
        chunk.chunk_id: {*_digests(chunk)}
        for chunk in (diff.added() if chunk_ids else ())
        if chunk.chunk_id in chunk_ids and not _is_of_same_text(diff, chunk.doc_id)
    }
    new = {digest for digests in digests_of.values() for digest in digests}
    for chunk in diff.removed() if new else ():
        new.difference_update(_digests(chunk))
    return frozenset(chunk_id for chunk_id, digests in digests_of.items() if digests & new)


def _is_of_same_text(diff: CorpusDiff, doc_id: str) -> bool:
    move = diff.moves.get(doc_id)
    if move is None or move.before is None or move.now is None or move.now.doc_id != doc_id:
        return False
    return bool(move.now.sha256) and move.before.sha256 == move.now.sha256


def _digests(chunk: Chunk) -> Iterator[bytes]:
    for sentence in _sentences(chunk):
        yield hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()


def _sentences(chunk: Chunk) -> Iterator[str]:
    for part in _PARAGRAPHS.split(
        _LIST_ITEM.sub("\n\n", "\n".join(_lines_without_headings(chunk)))
    ):
        for sentence in _SENTENCE_END.split(part):
            if folded := " ".join(sentence.split()):
                yield folded


def _lines_without_headings(chunk: Chunk) -> Iterator[str]:
    """Yield the lines of a chunk; for a heading an empty one."""
    for line, below in pairwise([*chunk.text.splitlines(), ""]):
        is_title = line.strip() in chunk.heading_path or bool(_RULE.fullmatch(below))
        yield "" if is_title or _HEADING.match(line) or _RULE.fullmatch(line) else line


@dataclass(frozen=True, slots=True)
class Conflicts:
    """What new chunks put in doubt.

    Args:
        items: Queries that are quarantined now, sorted by id.
        broken_pins: What would have become of queries that a person pinned; nothing may be
            published.
        failures: Checks that gave no result, pair by pair; their queries stay.
        n_calls: Checks that were made, those that the store answered included.
    """

    items: Sequence[UpdatedQuery] = ()
    broken_pins: Sequence[ItemChange] = ()
    failures: Sequence[Failure] = ()
    n_calls: int = 0


@dataclass(frozen=True, slots=True)
class PossibleConflicts:
    """Chunks to be looked at for queries, by id; the more relevant first.

    Args:
        unanswerable: That answer a query which is to have no answer.
        answerable: That may give another answer than a query expects.
        earlier: Keys of the failed checks of an earlier refresh that are made again, or needless.
        new: Those of the chunks whose text no version before had.
    """

    unanswerable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    answerable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    earlier: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()

    def cause(self, chunk: Chunk, detail: str, quote: str) -> Cause:
        """Return a chunk as the cause, which is not always one that came."""
        is_new = chunk.chunk_id in self.new
        kind: Literal["new chunk", "chunk there before"] = (
            "new chunk" if is_new else "chunk there before"
        )
        return Cause(kind=kind, doc_id=chunk.doc_id, detail=detail, quote=quote)


@dataclass(frozen=True, slots=True)
class _Check:
    item: UpdatedQuery
    chunks: tuple[Chunk, ...]

    @property
    def keys(self) -> list[str]:
        """Name its pairs in failures."""
        return [f"{self.item.query.query_id}/{chunk.chunk_id}" for chunk in self.chunks]

    @property
    def key(self) -> str:
        """Names it while it is in work: by its first pair."""
        return self.keys[0]


@dataclass(frozen=True, slots=True)
class _Checked:
    check: _Check
    finding: Finding


def possible_conflicts(
    staged: Dataset,
    parent: Dataset,
    updated: UpdatedQueries,
    new_chunks: Collection[str],
    whole: Collection[str] = (),
    *,
    diff: CorpusDiff,
    failed_before: Collection[tuple[str, str]] = (),
) -> PossibleConflicts:
    """Return which chunks may say otherwise than accepted queries expect.

    These are new ones that a judge found relevant, where they do not hold evidence of the query,
    and with them those of which an earlier refresh failed to tell. One whose text is not new was
    there when the query was accepted, in whatever chunk; see `with_new_text`.

    Args:
        staged: With the grades of all that is in pools.
        parent: The version before; it knows which checks failed.
        updated: The queries as they are now.
        new_chunks: Ids of the chunks that the version before did not have.
        whole: Ids of queries that were never held against the corpus; all chunks count for them.
        diff: What changed in the corpus.
        failed_before: Pairs of query and chunk that could not be judged before; those found
            relevant count for queries that are to have no answer, as those of their whole pools do.
    """
    queries = {query.query_id: query for query in updated.queries if query.status == "accepted"}
    failed = {failure.key for failure in parent.failures() if failure.what == "recheck"}
    earlier = failed - {query.query_id for query in updated.queries} if new_chunks else set[str]()
    retried = _Retried(earlier, staged)
    found: dict[str, list[tuple[int, str]]] = {}
    relevant = [*_relevant(staged, queries)]
    unseen = {one.chunk_id for one in relevant if _is_new(one, new_chunks)}
    told = with_new_text(diff, unseen)
    for judgment in relevant:
        query = queries[judgment.query_id]
        is_new = _is_new(judgment, told) or retried.has(judgment)
        was_failed = (judgment.query_id, judgment.chunk_id) in failed_before
        if is_new or (not query.answerable and (was_failed or query.query_id in whole)):
            of_query = found.setdefault(query.query_id, [])
            of_query.append((-(judgment.listed_grade or 0), judgment.chunk_id))
    chunks = {name: [chunk_id for _, chunk_id in sorted(of)] for name, of in found.items()}
    return PossibleConflicts(
        {name: of for name, of in chunks.items() if not queries[name].answerable},
        {
            name: others
            for name, of in chunks.items()
            if queries[name].answerable and (others := _without_evidence(queries[name], of))
        },
        frozenset(earlier),
        told,
    )


async def find_conflicts(
    staged: Dataset,
    survey: Survey,
    updated: UpdatedQueries,
    recheckers: Recheckers,
    *,
    possible: PossibleConflicts,
    version: int,
) -> Conflicts:
    """Quarantine queries that new chunks contradict.

    An unanswerable query that a chunk answers is one; so is another query where a model finds
    another answer in chunks than the one that is expected. Where the check fails the query stays,
    as its own evidence does; the failure is recorded, and the next refresh tries again.

    Args:
        staged: Gets the failures.
        survey: The corpus as it is now.
        updated: The queries; nothing is changed in it.
        recheckers: Say whether chunks give the expected answer.
        possible: The chunks; see `possible_conflicts`.
        version: Number of the version that is made.

    Raises:
        EndpointError, BudgetError: The run was stopped.
    """
    items = {item.query.query_id: item for item in updated.items}
    causes = {
        name: [_answered(chunks[0], possible)]
        for name, chunk_ids in possible.unanswerable.items()
        if (chunks := _there(survey, chunk_ids))
    }
    checks = [
        check
        for name in sorted(possible.answerable)
        for check in _checks(items[name], survey, possible)
    ]
    done = await _check_all(checks, recheckers)
    for checked in sorted(done.results, key=lambda one: one.check.key):
        if checked.finding.verdict == "changed":
            name = checked.check.item.query.query_id
            causes.setdefault(name, []).append(_contradicted(checked, possible))
    failures = list(_failures_by_pair(checks, done.failures))
    tried = {key for check in checks for key in check.keys} | possible.earlier
    staged.replace_failures("recheck", failures, tried.__contains__)
    calls = Counter(check.item.query.query_id for check in checks)
    return _quarantined(items, causes, calls, failures, version)


async def _check_all(checks: Sequence[_Check], recheckers: Recheckers) -> Collected[_Checked]:
    async def recheck(check: _Check) -> _Checked:
        return _Checked(check, await recheckers.recheck.judge(_subject(check)))

    work: Work[_Check, _Checked] = Work(
        stage="recheck",
        key=lambda check: check.key,
        do=recheck,
        workers=Workers(recheckers.concurrency, recheckers.observer, recheckers.on_stop),
    )
    return await collect(checks, work)


def _quarantined(
    items: Mapping[str, UpdatedQuery],
    causes: Mapping[str, Sequence[Cause]],
    calls: Mapping[str, int],
    failures: Sequence[Failure],
    version: int,
) -> Conflicts:
    changed, pins = [], []
    for name in sorted(causes):
        item = items[name]
        before = item.change
        change = ItemChange(
            version=version,
            query_id=name,
            action="quarantined",
            revision=item.query.revision,
            causes=(*(before.causes if before else ()), *causes[name]),
            calls=calls.get(name, 0) + (before.calls if before else 0),
        )
        if item.query.pinned is not None:
            pins.append(change)
            continue
        query = item.query.model_copy(update={"status": "quarantined"})
        changed.append(UpdatedQuery(item.before, query, change, item.is_moved))
    return Conflicts(changed, pins, failures, sum(calls.values()))


class _Retried:
    """Pairs of which an earlier refresh could not tell whether they are in conflict."""

    def __init__(self, keys: Collection[str], staged: Dataset) -> None:
        self._keys = keys
        self._before: dict[str, list[str]] = {}
        for before, now in staged.past.moved_chunks().items() if keys else ():
            for chunk_id in now:
                self._before.setdefault(chunk_id, []).append(before)

    def has(self, judgment: Judgment) -> bool:
        if not self._keys:
            return False
        names = (judgment.chunk_id, *self._before.get(judgment.chunk_id, ()))
        return any(f"{judgment.query_id}/{name}" in self._keys for name in names)


def _relevant(staged: Dataset, queries: Collection[str]) -> Iterator[Judgment]:
    """Yield what people and judges found relevant to some queries."""
    for judgment in staged.each_judgment():
        if is_found_relevant(judgment) and judgment.query_id in queries:
            yield judgment


def is_found_relevant(judgment: Judgment) -> bool:
    """Whether a person or a judge found a chunk relevant, rather than the evidence of its query."""
    return (judgment.listed_grade or 0) >= RELEVANT and judgment.source != "evidence"


def _is_new(judgment: Judgment, new_chunks: Collection[str]) -> bool:
    """Whether a judge saw a text that was not there before."""
    original = judgment.copied_from or judgment.chunk_id
    return judgment.source == "judge" and judgment.chunk_id in new_chunks and original in new_chunks


def _without_evidence(query: Query, chunk_ids: Iterable[str]) -> list[str]:
    """Return the chunks without those of the evidence; none where no answer is expected."""
    own = {item.chunk_id for item in query.evidence}
    return [one for one in chunk_ids if one not in own] if query.expected_answer else []


def _checks(item: UpdatedQuery, survey: Survey, found: PossibleConflicts) -> Iterator[_Check]:
    chunks = _there(survey, found.answerable[item.query.query_id])
    for first in range(0, len(chunks), MOST_PASSAGES):
        yield _Check(item, tuple(chunks[first : first + MOST_PASSAGES]))


def _there(survey: Survey, chunk_ids: Iterable[str]) -> list[Chunk]:
    """Return those chunks that are in the corpus.

    Grades are also of texts that only a run has, of whole documents, and of what a corpus lacks.
    """
    found = []
    for chunk_id in chunk_ids:
        with suppress(KeyError):
            found.append(survey.chunk(chunk_id))
    return found


def _subject(check: _Check) -> Subject:
    query = check.item.query
    return Subject(
        key=query.query_id,
        question=query.asked,
        expected=query.expected_answer or "",
        expects=query.expected_behaviour,
        language=query.language,
        quotes=tuple(item.quote for item in query.evidence),
        others=(),
        passages=tuple(Passage(chunk.text, chunk.heading_path) for chunk in check.chunks),
    )


def _answered(chunk: Chunk, possible: PossibleConflicts) -> Cause:
    detail = f"chunk {chunk.chunk_id} is relevant to a query that is to have no answer"
    return possible.cause(chunk, detail, chunk.text)


def _contradicted(checked: _Checked, possible: PossibleConflicts) -> Cause:
    proof = checked.finding.proof
    chunk = checked.check.chunks[proof.passage if proof else 0]
    detail = f"chunk {chunk.chunk_id} gives another answer: {checked.finding.answer}"
    held = widened(proof.place, chunk.text) if proof else Location(0, len(chunk.text))
    return possible.cause(chunk, detail, chunk.text[held.start : held.end])


def _failures_by_pair(checks: Iterable[_Check], failures: Iterable[Failure]) -> Iterator[Failure]:
    """Yield the failure of a check for each of its chunks: that is how they are found again."""
    by_key = {check.key: check for check in checks}
    for failure in failures:
        for key in by_key[failure.key].keys:
            yield failure.model_copy(update={"key": key})
