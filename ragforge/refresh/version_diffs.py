"""How any two versions of a set differ, by query, with the causes where they are written down."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from ragforge.evaluating.same_judge import have_different_judges
from ragforge.evaluating.versions import (
    ChunkCounts,
    ComparedVersion,
    DifferenceKind,
    Differences,
    DocumentDifferences,
    GradeDifferences,
    OtherGrade,
    QueryDifference,
)
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import home_of
from ragforge.files.set.sorted_records import each_chunk, each_document, key_of, side_by_side
from ragforge.records import (
    Cause,
    Chunk,
    Judgment,
    Query,
    RenamedDocument,
    SourceDocument,
    is_text_id,
)


def compare_versions(before: Dataset, after: Dataset) -> Differences:
    """Return how two versions differ; grades, documents and chunks are read as streams.

    Causes come from the events of the later one, of the versions that lie between: where it came
    of the earlier one.

    Args:
        before: The earlier one, or any set.
        after: The later one, or any other.

    Raises:
        DataError: A file cannot be read.
    """
    is_one_line = _is_one_line(before, after)
    causes = _causes(before, after) if is_one_line else {}
    old = {query.query_id: query for query in before.all_queries()}
    new = {query.query_id: query for query in after.all_queries()}
    moves = after.past.moved_chunks() if is_one_line else {}
    whole, by_query = _grades(before, after, moves)
    differences = []
    for query_id in sorted({*old, *new}):
        grades = by_query.get(query_id, GradeDifferences())
        kinds = tuple(_kinds(old.get(query_id), new.get(query_id), grades))
        if kinds:
            why = tuple(causes.get(query_id, {}))
            one = QueryDifference(
                query_id, kinds, old.get(query_id), new.get(query_id), grades, why
            )
            differences.append(one)
    chunks, doc_ids = _chunks(before, after)
    return Differences(
        before=_side(before, old),
        after=_side(after, new),
        queries=differences,
        n_same=len({*old, *new}) - len(differences),
        documents=_documents(before, after, doc_ids),
        chunks=chunks,
        grades=whole,
        is_one_line=is_one_line,
    )


def _side(dataset: Dataset, queries: Mapping[str, Query]) -> ComparedVersion:
    manifest = dataset.manifest
    n_accepted = sum(query.status == "accepted" for query in queries.values())
    return ComparedVersion(
        str(dataset.path), manifest.name, manifest.version, len(queries), n_accepted
    )


def _is_one_line(before: Dataset, after: Dataset) -> bool:
    """Whether the later version came of the earlier: it knows all that happened until then.

    After a step back to an older version a newer number is no sign of that.
    """
    if before.manifest.version >= after.manifest.version:
        return False
    is_parent = after.manifest.parent == digest_file(before.files / "manifest.json")
    is_of_same_home = home_of(before.path.resolve()) == home_of(after.path.resolve())
    return is_parent or (is_of_same_home and set(before.past.events()) <= set(after.past.events()))


def _causes(before: Dataset, after: Dataset) -> dict[str, dict[Cause, None]]:
    """Return why queries changed, by id, in the order of the versions, each cause once."""
    causes: dict[str, dict[Cause, None]] = {}
    last = before.manifest.version
    for event in after.past.events():
        if event.version > last:
            causes.setdefault(event.query_id, {}).update(dict.fromkeys(event.causes))
    return causes


def _kinds(old: Query | None, new: Query | None, grades: GradeDifferences) -> list[DifferenceKind]:
    if old is None or new is None:
        return ["gone" if new is None else "added"]
    is_proven_alike = _quotes(old) == _quotes(new)
    differs: dict[DifferenceKind, bool] = {
        "status": old.status != new.status,
        "revision": old.revision != new.revision,
        "question": (old.query, old.asked) != (new.query, new.asked),
        "answer": _answer(old) != _answer(new),
        "evidence": not is_proven_alike,
        "places": is_proven_alike and _places(old) != _places(new),
        "grades": grades.differs,
        "split": old.split != new.split,
        "labels": _labels(old) != _labels(new),
    }
    return [kind for kind, is_so in differs.items() if is_so]


def _answer(query: Query) -> tuple[str | None, bool]:
    return query.expected_answer, query.answerable


def _places(query: Query) -> tuple[object, ...]:
    """Return where a query stands: its quotes, and its sources where nothing is quoted.

    The sources of a query with quotes follow from these; an imported one has none until it is
    derived anew.
    """
    return query.evidence or query.source_chunk_ids


def _quotes(query: Query) -> list[tuple[int, str]]:
    return sorted((item.hop, " ".join(item.quote.split())) for item in query.evidence)


def _labels(query: Query) -> dict[str, object]:
    told = {"query", "standalone", "expected_answer", "answerable", "evidence", "source_chunk_ids"}
    told |= {"status", "revision", "split", "split_before"}
    found: dict[str, object] = query.model_dump(exclude=told)
    return found


def _grades(
    before: Dataset, after: Dataset, moves: Mapping[str, Sequence[str]]
) -> tuple[GradeDifferences, dict[str, GradeDifferences]]:
    """Return what became of grades in all, and by query where anything did.

    Args:
        before: The one version.
        after: The other.
        moves: Ids of chunks to those that they have in the later one.
    """
    whole, by_query = GradeDifferences(), dict[str, GradeDifferences]()
    if _is_same(before, after, "judgments.jsonl"):
        return GradeDifferences(same=after.manifest.files["judgments.jsonl"].records), by_query
    pairs = side_by_side(_of_set(before), _of_set(after), key_of)
    for query_id, of_query in groupby(pairs, key=_query_id):
        found = _of_query(of_query, moves)
        whole.add(found)
        if found.differs:
            by_query[query_id] = found
    return whole, by_query


def _of_set(dataset: Dataset) -> Iterator[Judgment]:
    """Yield the judgments of a set, without those of texts that come and go with runs."""
    return (item for item in dataset.each_judgment() if not is_text_id(item.chunk_id))


def _query_id(pair: tuple[Judgment | None, Judgment | None]) -> str:
    one = pair[0] or pair[1]
    assert one is not None
    return one.query_id


def _of_query(
    pairs: Iterable[tuple[Judgment | None, Judgment | None]], moves: Mapping[str, Sequence[str]]
) -> GradeDifferences:
    grades, gone, added = GradeDifferences(), dict[str, int | None](), dict[str, int | None]()
    for old, new in pairs:
        if old is not None and new is not None:
            pair = OtherGrade(new.chunk_id, old.grade, new.grade)
            is_relisted = old.relevant != new.relevant
            by_other = have_different_judges(old, new)
            grades.compare(pair, by_other=by_other, is_relisted=is_relisted)
        elif old is not None:
            gone[old.chunk_id] = old.grade
        elif new is not None:
            added[new.chunk_id] = new.grade
    for chunk_id, grade in gone.items():
        now = [name for name in moves.get(chunk_id, ()) if name in added and added[name] == grade]
        grades.moved += bool(now)
        grades.gone += not now
        for name in now:
            del added[name]
    grades.added = len(added)
    return grades


def _chunks(before: Dataset, after: Dataset) -> tuple[ChunkCounts, tuple[set[str], set[str]]]:
    """Return what became of chunks, and the ids of the documents that they are of."""
    kept = added = gone = 0
    doc_ids: tuple[set[str], set[str]] = (set(), set())
    entry = after.manifest.files.get("chunks.jsonl")
    if entry is not None and _is_same(before, after, "chunks.jsonl") and _are_listed(before, after):
        return ChunkCounts(entry.records, entry.records, entry.records, 0, 0), doc_ids
    for old, new in side_by_side(_each(before), _each(after), _chunk_id):
        kept += old is not None and new is not None
        added += old is None
        gone += new is None
        for chunk, ids in ((old, doc_ids[0]), (new, doc_ids[1])):
            if chunk is not None:
                ids.add(chunk.doc_id)
    return ChunkCounts(kept + gone, kept + added, kept, added, gone), doc_ids


def _each(dataset: Dataset) -> Iterator[Chunk]:
    path = dataset.chunks_path
    return (chunk for _, chunk in each_chunk(path)) if path.exists() else iter(())


def _chunk_id(chunk: Chunk) -> str:
    return chunk.chunk_id


def _documents(
    before: Dataset, after: Dataset, of_chunks: tuple[set[str], set[str]]
) -> DocumentDifferences:
    """Return what became of documents.

    Args:
        before: The one version; what it recorded of its documents says most.
        after: The other.
        of_chunks: Ids of the documents that have chunks; all that is known where there is none.
    """
    if not _are_listed(before, after):
        old_ids, new_ids = of_chunks
        return DocumentDifferences(
            before=len(old_ids),
            after=len(new_ids),
            added=tuple(sorted(new_ids - old_ids)),
            gone=tuple(sorted(old_ids - new_ids)),
            changed=None,
        )
    n_old = n_new = 0
    added, gone, changed = dict[str, SourceDocument](), list[str](), list[str]()
    for old, new in side_by_side(_each_document(before), _each_document(after), _doc_id):
        n_old += old is not None
        n_new += new is not None
        if old is None and new is not None:
            added[new.doc_id] = new
        elif old is not None and new is None:
            gone.append(old.doc_id)
        elif old is not None and new is not None and old.sha256 != new.sha256:
            changed.append(new.doc_id)
    renamed = list(_renamed(added, set(gone)))
    later = {one.after for one in renamed}
    earlier = {one.before for one in renamed}
    return DocumentDifferences(
        before=n_old,
        after=n_new,
        added=tuple(doc_id for doc_id in added if doc_id not in later),
        gone=tuple(doc_id for doc_id in gone if doc_id not in earlier),
        changed=tuple(changed),
        renamed=tuple(renamed),
    )


def _renamed(added: Mapping[str, SourceDocument], gone: set[str]) -> Iterator[RenamedDocument]:
    for doc_id, document in added.items():
        known = [alias for alias in reversed(document.aliases) if alias in gone]
        if known:
            yield RenamedDocument(before=known[0], after=doc_id)


def _are_listed(before: Dataset, after: Dataset) -> bool:
    """Whether both versions tell of their documents."""
    return _list_of(before).exists() and _list_of(after).exists()


def _list_of(dataset: Dataset) -> Path:
    return dataset.files / "documents.jsonl"


def _each_document(dataset: Dataset) -> Iterator[SourceDocument]:
    return (document for _, document in each_document(_list_of(dataset)))


def _doc_id(document: SourceDocument) -> str:
    return document.doc_id


def _is_same(before: Dataset, after: Dataset, name: str) -> bool:
    """Whether both have the same file; by the digests of what is there, if it is listed at all."""
    old, new = before.manifest.files.get(name), after.manifest.files.get(name)
    return (
        old is not None
        and old == new
        and not (before.changed_by_hand(name) or after.changed_by_hand(name))
    )
