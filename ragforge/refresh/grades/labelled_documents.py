"""Labels that name whole documents, under a changed corpus.

A label stays with its document however that is edited, and goes with its text where that stands
under another name, whatever has the old one now. Where the text is gone the label waits; a query
that has no other relevant label is out of the set until the text is back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from ragforge.corpus.chunk_files import CUT_BY
from ragforge.corpus.document_matches import DocumentMatches, match_documents
from ragforge.corpus.moved_documents import (
    NONE_MOVED,
    MovedDocuments,
    by_text,
    find_moved_documents,
    place_of,
)
from ragforge.files.set.dataset import Dataset
from ragforge.records import Action, Cause, DormantGrade, ItemChange, Judgment, SourceDocument
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.corpus.document_map import DocumentMap
from ragforge.refresh.grades.moved_chunks import MovedChunks
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.quotes.locations import is_rejected

_DIGEST_CHARS: Final = 16
_USUAL_THRESHOLD: Final = 2


def with_documents(moves: MovedChunks, parent: Dataset, diff: CorpusDiff) -> MovedChunks:
    """Return where chunks are now, and documents too where labels of the set name these.

    Args:
        moves: Of chunks.
        parent: The version before.
        diff: What changed in its corpus.
    """
    if parent.manifest.level is None:
        return moves
    # Ready-made chunks may be called as documents are; a label of a chunk stays one.
    chunks = {item.chunk_id for item in parent.each_judgment() if item.level == "chunk"}
    moved = moved_documents(parent, diff)
    now = {name: (other,) for name, other in moved.now.items() if name not in chunks}
    return MovedChunks(moves.gone | (moved.gone - chunks) | now.keys(), {**now, **moves.now})


def moved_documents(parent: Dataset, diff: CorpusDiff) -> MovedDocuments:
    """Return where the texts of documents stand now; nothing for a set whose labels name none.

    Args:
        parent: The version before.
        diff: What changed in its corpus.
    """
    return NONE_MOVED if parent.manifest.level is None else _names_moved(parent, diff)


def document_map_of(parent: Dataset, diff: CorpusDiff) -> DocumentMap:
    """Return where documents are now, whatever labels name.

    Args:
        parent: The version before.
        diff: What changed in its corpus.
    """
    return DocumentMap(diff, parent.chunks_path, _names_moved(parent, diff))


def _names_moved(parent: Dataset, diff: CorpusDiff) -> MovedDocuments:
    if not diff.moves:
        return NONE_MOVED
    if parent.files not in diff.moved:
        diff.moved[parent.files] = _find_moved(parent, diff)
    return diff.moved[parent.files]


def _find_moved(parent: Dataset, diff: CorpusDiff) -> MovedDocuments:
    before, now = _digests_before(diff), _digests_now(diff)
    same = {name for name, digest in now.items() if before.get(name) == digest}
    before, now = _without(before, same), _without(now, same)
    wanted, stayed = {*before.values(), *now.values()}, dict[str, str]()
    for row in parent.documents() if wanted else ():
        digest = _uncut(row)
        if digest in wanted and row.doc_id not in before:
            stayed.setdefault(digest, row.doc_id)

    def match(doc_ids: Collection[str], places: Collection[str]) -> DocumentMatches:
        return match_documents(doc_ids, places, parent.chunks_path, diff.chunks_path)

    return find_moved_documents(before, now, stayed, match)


def documents_back(
    dormant: Iterable[DormantGrade], diff: CorpusDiff
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return which documents that waiting labels name are in the corpus again.

    A document is the same by its text: its name may be that of another.

    Returns:
        The id that it has now, by document and digest of the label.
    """
    labels = [one for one in dormant if one.judgment.level == "document"]
    came = _digests_now(diff) if labels else {}
    places = by_text(came)
    returned: dict[tuple[str, str], tuple[str, ...]] = {}
    for one in labels:
        if ids := places.get(one.text_sha256):
            returned[one.doc_id, one.text_sha256] = (place_of(one.doc_id, ids),)
    return returned


def waiting_label(judgment: Judgment, doc_id: str, diff: CorpusDiff) -> DormantGrade:
    """Return the label of a document that is gone."""
    move = diff.moves.get(judgment.chunk_id)
    before = move.before.sha256 if move is not None and move.before is not None else "-"
    digest = before.partition(CUT_BY)[0]
    return DormantGrade(judgment=judgment, doc_id=doc_id, text_sha256=digest)


def update_labelled(
    updated: UpdatedQueries, parent: Dataset, diff: CorpusDiff, version: int
) -> list[UpdatedQuery]:
    """Return the queries that are out as their documents are gone, or back as these are.

    Only queries without evidence are looked at: of others the quotes decide. A pinned one that
    would be lost becomes one of the `broken_pins`.

    Args:
        updated: The queries as their quotes leave them.
        parent: The version before.
        diff: What changed in its corpus.
        version: The number of the one that is made.
    """
    if parent.manifest.level is None or diff.is_empty:
        return []
    plain = {item.query.query_id: item for item in updated.items if not item.query.evidence}
    lost = _without_label(parent, diff)
    back = _with_label_again(parent, diff)
    items = []
    for query_id, item in plain.items():
        query = item.query
        if query.status == "accepted" and query.answerable and query_id in lost:
            out = _changed(item, "retired", lost[query_id], version)
            if query.pinned is not None and out.change is not None:
                updated.broken_pins.append(out.change)
            else:
                items.append(out)
        elif query.status == "retired" and query_id in back and not is_rejected(query):
            items.append(_changed(item, "revived", back[query_id], version))
    return items


def counts_of_labelled(items: Iterable[UpdatedQuery], plan: Mapping[str, int]) -> dict[str, int]:
    """Return what of a plan changes as documents that labels name are gone or back.

    Args:
        items: As `update_labelled` returns them.
        plan: Queries by what they need.
    """
    counts = Counter(item.change.action for item in items if item.change is not None)
    if not counts:
        return {}
    kept, revived = plan["kept"] - counts["retired"], plan["revived"] + counts["revived"]
    return {"kept": kept, "revived": revived, "retired": counts["retired"]}


def _without_label(parent: Dataset, diff: CorpusDiff) -> dict[str, list[Cause]]:
    """Return why queries have no relevant label left, by id, of those that lose a document now."""
    gone = moved_documents(parent, diff).gone
    judgments = [item for item in parent.each_judgment() if not item.is_failed]
    highest = max((item.grade or 0 for item in judgments), default=0)
    least = parent.manifest.rel_threshold or min(highest, _USUAL_THRESHOLD)
    relevant: dict[str, list[Judgment]] = {}
    for item in judgments:
        by_grade = (item.grade or 0) >= max(1, least)
        if by_grade if item.relevant is None else item.relevant:
            relevant.setdefault(item.query_id, []).append(item)
    chunks_gone = {chunk.chunk_id for chunk in diff.removed()}
    causes = {}
    for query_id, labels in relevant.items():
        lost = [item for item in labels if item.level == "document" and item.chunk_id in gone]
        rest = [item for item in labels if item not in lost and item.chunk_id not in chunks_gone]
        if lost and not rest:
            causes[query_id] = [_cause("document removed", item.chunk_id, diff) for item in lost]
    return causes


def _with_label_again(parent: Dataset, diff: CorpusDiff) -> dict[str, list[Cause]]:
    """Return why queries are back, by id: those that a refresh put out for lack of a label."""
    last = {change.query_id: change for change in parent.past.events()}
    dormant = parent.past.dormant_grades()
    back = documents_back(dormant, diff)
    causes: dict[str, list[Cause]] = {}
    for one in dormant:
        query_id, now = one.judgment.query_id, back.get((one.doc_id, one.text_sha256))
        change = last.get(query_id)
        is_relevant = one.judgment.grade or one.judgment.relevant
        if now and is_relevant and change is not None and _is_for_lack(change):
            causes.setdefault(query_id, []).append(_cause("document added", now[0], diff))
    return causes


def _is_for_lack(change: ItemChange) -> bool:
    kinds = {cause.kind for cause in change.causes}
    return change.action == "retired" and kinds == {"document removed"}


def _cause(kind: str, doc_id: str, diff: CorpusDiff) -> Cause:
    move = diff.moves.get(doc_id)
    before = move.before.sha256 if move is not None and move.before is not None else ""
    after = move.now.sha256 if move is not None and move.now is not None else ""
    state = "gone" if kind == "document removed" else "back"
    return Cause.model_validate(
        {
            "kind": kind,
            "doc_id": doc_id,
            "before": before[:_DIGEST_CHARS],
            "after": after[:_DIGEST_CHARS],
            "detail": f"the document that a label names is {state}",
        }
    )


def _changed(
    item: UpdatedQuery, action: Action, causes: Iterable[Cause], version: int
) -> UpdatedQuery:
    status = "retired" if action == "retired" else "accepted"
    query = item.query.model_copy(update={"status": status})
    change = ItemChange(
        version=version,
        query_id=query.query_id,
        action=action,
        revision=query.revision,
        causes=tuple(dict.fromkeys(causes)),
    )
    return replace(item, query=query, change=change)


def _digests_before(diff: CorpusDiff) -> dict[str, str]:
    """Return the digests of the documents that are not as they were, by the ids of before."""
    rows = ((name, move.before) for name, move in diff.moves.items())
    return {name: _uncut(row) for name, row in rows if row is not None and row.doc_id == name}


def _digests_now(diff: CorpusDiff) -> dict[str, str]:
    """Likewise by the ids of now."""
    rows = ((name, move.now) for name, move in diff.moves.items())
    return {name: _uncut(row) for name, row in rows if row is not None and row.doc_id == name}


def _uncut(row: SourceDocument) -> str:
    """Return the digest of a document, however it was cut."""
    return row.sha256.partition(CUT_BY)[0]


def _without(digests: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: digest for name, digest in digests.items() if name not in names}
