"""What the records of a dataset's files are sorted by, where that is more than one id."""

from ragforge.records import DormantGrade, ItemChange, Judgment, PoolEntry, Query, Rejected


def query_and_chunk(entry: PoolEntry) -> tuple[str, str]:
    """Return the ids of a query and a chunk in its pool."""
    return entry.query_id, entry.chunk_id


def pair_and_judge(judgment: Judgment) -> tuple[str, ...]:
    """Return what a judgment is about and who made it: of a pair there is one a judge."""
    by = judgment.provenance
    judge = (by.model, by.prompt_sha256, by.protocol) if by else ()
    return (judgment.query_id, judgment.chunk_id, *judge)


def slot_and_place(rejected: Rejected) -> tuple[str, str]:
    """Return the slot of a candidate and its place there, as a text that sorts like the number."""
    return rejected.slot_id, f"{rejected.place:06d}"


def id_and_revision(query: Query) -> tuple[str, str]:
    """Return the id of a query and its revision, as a text that sorts like the number."""
    return query.query_id, f"{query.revision:06d}"


def change_key(change: ItemChange) -> tuple[str, str, str]:
    """Return when a query changed, which, and how: a version does nothing twice to a query."""
    return f"{change.version:06d}", change.query_id, change.action


def pair_of(grade: DormantGrade) -> tuple[str, str]:
    """Return the ids of the query and the chunk that a person graded."""
    return grade.judgment.query_id, grade.judgment.chunk_id
