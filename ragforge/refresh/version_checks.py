"""What a version has to hold to before it is published: it is never worse than the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ragforge.config import RefreshSettings, Settings
from ragforge.corpus.rereading import seen_digests, seen_now_sha256
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import ChurnError
from ragforge.evaluating.formatting import plural
from ragforge.files.array_files import Array
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import Key, each_chunk, key_of, query_and_chunk
from ragforge.pipeline.generation.generated_queries import is_kept
from ragforge.records import Query, VersionCheck
from ragforge.refresh.conflicts import is_found_relevant
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentChunks
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked, normal_question

_HEX = 16
_SHOWN = 3
_ANYWAY = "--accept-churn refreshes all the same"
CHURN: Final = "churn"
"""Name of the check of how much of the set changed."""
_NAMED: Final = 5
"""Ids that a sentence names."""


def check_churn(diff: CorpusDiff, settings: RefreshSettings) -> None:
    """Check that a corpus is still the same one, and that it is all there.

    Documents that were renamed or cannot be read have not vanished, and a chunk is not gone where
    its text stands under another id. Chunks that were cut anew are no sign: all are others then.

    Raises:
        ChurnError: More vanished than the settings allow.
    """
    documents = diff.documents
    n_gone = len(documents.removed)
    if n_gone > settings.vanished_most * documents.n_before:
        some = ", ".join(documents.removed[:_SHOWN])
        raise ChurnError(
            f"{n_gone} of {documents.n_before} documents vanished, such as {some}; at most "
            f"{settings.vanished_most:.0%} may (refresh.vanished_most). Is a mount missing, is "
            f"this another folder, or do include and exclude leave them out? {_ANYWAY}"
        )
    n_before = documents.chunks_kept + documents.chunks_removed
    most = settings.chunks_gone_most * n_before
    if documents.is_cut_anew or documents.chunks_removed <= most:
        return
    if (n_lost := chunks_lost(diff)) > most:
        raise ChurnError(
            f"the text of {n_lost} of {n_before} chunks is gone; at most "
            f"{settings.chunks_gone_most:.0%} may be (refresh.chunks_gone_most). Are these other "
            "documents, another branch or language of them, or were they written by another "
            f"program? {_ANYWAY}"
        )


def chunks_lost(diff: CorpusDiff) -> int:
    """Return how many chunks of the version before have a text that no chunk has now.

    What counts is what a reader sees, without blanks. All chunks are read.
    """
    now = np.unique(_texts(seen_now_sha256(chunk) for _, chunk in each_chunk(diff.chunks_path)))
    gone = _texts(digest for chunk in diff.removed() for digest in seen_digests(chunk))
    return int(np.count_nonzero(~np.isin(gone, now).reshape(-1, 2).any(axis=1)))


def _texts(digests: Iterable[str]) -> Array:
    """Return 8 bytes of the digest of each text; an accident among millions would not matter."""
    return np.fromiter((int(digest[:_HEX], 16) for digest in digests), np.uint64)


def check_version(
    parent: Dataset,
    staged: Dataset,
    updated: UpdatedQueries,
    diff: CorpusDiff,
    settings: Settings,
    *,
    is_judged: bool,
) -> list[VersionCheck]:
    """Return what was checked of a version that is ready to be published, in a fixed order.

    What the parent has as well is no fault of the version: duplicates are looked for among pairs
    with a new query, evidence in documents that changed and of queries that did, and an
    unanswerable query with relevant chunks counts where it had none.

    Args:
        parent: The version before.
        staged: The version, its files written.
        updated: Its queries.
        diff: What changed in its corpus.
        settings: With the limits.
        is_judged: Whether new chunks were judged, or none is new.

    Raises:
        DataError: A file of a version cannot be read.
    """
    ids = {query.query_id for query in updated.queries if query.status == "accepted"}
    pools = graded_pools(staged, ids)
    return [
        _accepted(updated, settings.refresh.accepted_least),
        _churn(updated, settings.refresh.churn_most),
        _duplicates(parent, updated),
        _holes(pools.n_pairs, pools.n_holes, settings.refresh.holes_most),
        _evidence(staged, updated, diff),
        _unanswerable(parent, updated, pools.relevant, is_judged=is_judged),
        _splits(updated),
        _precision(staged, settings.refresh.precision_least),
    ]


def _accepted(updated: UpdatedQueries, least: float) -> VersionCheck:
    before = len(_accepted_before(updated))
    now = sum(query.status == "accepted" for query in updated.queries)
    share = now / before if before else None
    return VersionCheck(
        name="accepted queries",
        passed=share is None or share >= least,
        found=share,
        limit=least,
        detail=f"{now} accepted, {before} before",
    )


def _churn(updated: UpdatedQueries, most: float) -> VersionCheck:
    """Check how many of the parent's queries ask or expect something else now, or are out.

    One that was remapped, verified again or proven by another quote asks and expects what it did.
    """
    before = _accepted_before(updated)
    changed = [item for item in before if _is_another(item)]
    kinds = Counter(_what_happened(item) for item in changed)
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    share = len(changed) / len(before) if before else None
    return VersionCheck(
        name=CHURN,
        passed=share is None or share <= most,
        found=share,
        limit=most,
        detail=f"{len(changed)} of {plural(len(before), 'query', 'queries')}"
        + (f": {listed}" if listed else ""),
    )


def _accepted_before(updated: UpdatedQueries) -> list[UpdatedQuery]:
    return [
        item
        for item in updated.items
        if item.before is not None and item.before.status == "accepted"
    ]


def _is_another(item: UpdatedQuery) -> bool:
    assert item.before is not None
    return item.query.status != "accepted" or _meaning(item.before) != _meaning(item.query)


def _meaning(query: Query) -> tuple[str, str | None, bool]:
    return query.asked, query.expected_answer, query.answerable


def _what_happened(item: UpdatedQuery) -> str:
    if item.change is not None:
        return item.change.action.replace("_", " ")
    return item.query.status if item.query.status != "accepted" else "changed"


def _duplicates(parent: Dataset, updated: UpdatedQueries) -> VersionCheck:
    found = [f"{new} as {old}" for new, old in _doubled(parent, updated)]
    return _none(
        "duplicates",
        "asked twice",
        found,
        f"{plural(len(updated.items), 'query', 'queries')} of any status, each asked once",
    )


def _doubled(parent: Dataset, updated: UpdatedQueries) -> Iterator[tuple[str, str]]:
    """Yield each new query that is asked already with the one that asks for the same."""
    new = [item.query for item in updated.items if item.before is None]
    if not new:
        return
    old = [item.query for item in updated.items if item.before is not None]
    taken = QuestionsAsked(
        (query.query_id, query.asked) for query in (*old, *parent.past.revisions())
    )
    for query in new:
        clash = taken.clash(query.asked)
        # Another order of the two can be no clash: spelling follows what was there before.
        if clash is not None and (clash.exact or _is_mutual(query.asked, clash.question)):
            yield query.query_id, clash.query_id
        taken.add(query.query_id, query.asked)


def _is_mutual(one: str, other: str) -> bool:
    if normal_question(one) == normal_question(other):
        return True
    return QuestionsAsked([("", one)]).clash(other) is not None


def _holes(n_pairs: int, n_holes: int, most: float) -> VersionCheck:
    share = n_holes / n_pairs if n_pairs else None
    detail = f"{n_holes:,} of {plural(n_pairs, 'pooled pair')} without a grade"
    return VersionCheck(
        name="holes",
        passed=share is None or share <= most,
        found=share,
        limit=most,
        detail=detail if n_pairs else "no pool was judged",
    )


def _evidence(staged: Dataset, updated: UpdatedQueries, diff: CorpusDiff) -> VersionCheck:
    looked_at = sorted(
        (item.query for item in updated.items if _rests_on_change(item, diff)),
        key=lambda query: (sorted({one.doc_id for one in query.evidence}), query.query_id),
    )
    documents = {one.doc_id for query in looked_at for one in query.evidence}
    lost = []
    with DocumentChunks(staged.chunks_path, documents) as chunks:
        for query in looked_at:
            index = chunks.index(frozenset(one.doc_id for one in query.evidence))
            if any(index.place(one) is None for one in query.evidence):
                lost.append(query.query_id)
    whole = plural(len(looked_at), "query", "queries")
    return _none(
        "evidence",
        "quotes that stand nowhere",
        lost,
        f"{whole} on changed documents, all quotes verbatim",
    )


def _rests_on_change(item: UpdatedQuery, diff: CorpusDiff) -> bool:
    """Whether the quotes of a query have to be looked up: it or one of its documents changed."""
    query = item.query
    if query.status != "accepted" or not query.answerable or not query.evidence:
        return False
    is_touched = item.before is None or item.change is not None or item.is_moved
    return is_touched or any(one.doc_id in diff.moves for one in query.evidence)


def _unanswerable(
    parent: Dataset, updated: UpdatedQueries, relevant: frozenset[str], *, is_judged: bool
) -> VersionCheck:
    """Check that no query without an answer has a relevant chunk, unless a person vouches for it.

    Args:
        parent: The version before.
        updated: The queries.
        relevant: Ids of the accepted ones that a chunk of grade 2 or 3 is known of.
        is_judged: Whether new chunks were judged, or none is new.
    """
    suspects = {
        item.query.query_id: item
        for item in updated.items
        if item.query.query_id in relevant and not item.query.answerable and not is_kept(item.query)
    }
    if suspects:
        before = graded_pools(parent, suspects.keys()).relevant
        known = {
            name
            for name, item in suspects.items()
            if item.before is not None and not item.before.answerable and name in before
        }
        suspects = {name: item for name, item in suspects.items() if name not in known}
    if not suspects and not is_judged:
        return VersionCheck(
            name="unanswerable",
            passed=True,
            limit=0.0,
            detail="not looked at: no new chunk was judged",
        )
    return _none(
        "unanswerable",
        "chunks answer what should have no answer",
        sorted(suspects),
        "no chunk answers what should have no answer",
    )


def _splits(updated: UpdatedQueries) -> VersionCheck:
    moved = [
        item.query.query_id
        for item in updated.items
        if item.before is not None
        and item.before.split is not None
        and item.before.split != (item.query.split or item.query.split_before)
    ]
    if moved:
        return _none("splits", "in another split", moved, "")
    in_one = [query for query in updated.queries if query.split is not None]
    clashes = updated.connections.clashes(in_one)
    n_out = sum(query.split_before is not None for query in updated.queries)
    left = f"; {plural(n_out, 'query is', 'queries are')} in none" if n_out else ""
    return _none(
        "splits",
        "connected with the other split through documents",
        [f"{name} with {other}" for name, other in sorted(clashes.items())],
        f"no query changed over to the other split, and no document connects the two{left}",
    )


def _precision(staged: Dataset, least: float) -> VersionCheck:
    audit = staged.manifest.audit
    if not least:
        detail = audit.in_words() if audit else "not asked for"
        found = audit.low if audit else None
        return VersionCheck(name="precision", passed=True, found=found, limit=least, detail=detail)
    if audit is None:
        return VersionCheck(
            name="precision",
            passed=False,
            limit=least,
            detail="nobody decided about queries drawn at random (`ragforge review`), which "
            "refresh.precision_least asks for",
        )
    return VersionCheck(
        name="precision",
        passed=audit.low >= least,
        found=audit.low,
        limit=least,
        detail=audit.in_words(),
    )


def _none(name: str, fault: str, found: Iterable[str], otherwise: str) -> VersionCheck:
    """Return a check that passes where nothing was found.

    Args:
        name: Of the check.
        fault: What is wrong with what was found.
        found: A text for each of them.
        otherwise: What is right where nothing is wrong.
    """
    listed = list(found)
    examples = ", ".join(listed[:_NAMED])
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return VersionCheck(
        name=name,
        passed=not listed,
        found=float(len(listed)),
        limit=0.0,
        detail=f"{fault}: {examples}{more}" if listed else otherwise,
    )


@dataclass(frozen=True, slots=True)
class GradedPools:
    """The pools of some queries.

    Args:
        n_pairs: Queries with a chunk of their pool.
        n_holes: Those without a grade.
        relevant: Ids of the queries to which somebody found a chunk relevant: grade 2 or 3, by a
            person or a judge.
    """

    n_pairs: int
    n_holes: int
    relevant: frozenset[str]


def graded_pools(dataset: Dataset, query_ids: Collection[str]) -> GradedPools:
    """Return how far the pools of some queries are judged; neither file is held in memory.

    Raises:
        DataError: A file cannot be read.
    """
    relevant = set[str]()
    grades = _graded(dataset, query_ids, relevant)
    graded = next(grades, None)
    n_pairs = n_holes = 0
    for entry in dataset.each_pool_entry():
        if entry.query_id not in query_ids:
            continue
        pair = query_and_chunk(entry)
        while graded is not None and graded < pair:
            graded = next(grades, None)
        n_pairs += 1
        n_holes += graded != pair
    for _ in grades:
        pass
    return GradedPools(n_pairs, n_holes, frozenset(relevant))


def _graded(dataset: Dataset, query_ids: Collection[str], relevant: set[str]) -> Iterator[Key]:
    """Yield the pairs that have a grade, and note the queries with a relevant chunk."""
    for judgment in dataset.each_judgment():
        if judgment.query_id in query_ids and not judgment.is_failed:
            if is_found_relevant(judgment):
                relevant.add(judgment.query_id)
            yield key_of(judgment)
