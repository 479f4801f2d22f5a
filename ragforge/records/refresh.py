"""What a refresh knows of documents, and what it did to a set: `documents.jsonl`, `diff.json`."""

from typing import Annotated, Literal

from ragforge.records.judgments import Judgment
from ragforge.records.model import Field
from ragforge.records.record import NonEmpty, Record

Count = Annotated[int, Field(ge=0)]
DocumentChange = Literal["added", "changed", "removed", "renamed", "unreadable", "cut anew"]
"""What happened to a document. One that cannot be read any more stays as it was; one whose text is
the same and whose chunks are not was cut anew."""
Action = Literal[
    "remapped",
    "reverified",
    "relinked",
    "answer_changed",
    "retired",
    "converted",
    "quarantined",
    "revived",
    "added",
    "out_of_split",
    "back_in_split",
]
"""What became of a query that was not kept as it was.

remapped: its quotes stand where they did, at other offsets or in other chunks; no call.
reverified: a quote stands in changed surroundings or another document, and still proves the answer.
relinked: a quote is gone, and another one proves the same answer.
answer_changed: the documents give another answer now; a new revision.
retired: the documents do not answer it any more. converted: likewise, and it asks for that now.
quarantined: another answer stands beside the old one, or nobody could check it.
revived: what it had lost is back. added: it is new.
out_of_split: its documents connect it with queries of the other split, so that it is in none; that
may come on top of another of these. back_in_split: they do so no longer.
"""


class SourceDocument(Record):
    """A document as it was read; a row of `documents.jsonl`."""

    doc_id: NonEmpty
    sha256: NonEmpty
    """Of its title, format and normalised text."""
    n_chars: Count
    n_chunks: Count
    aliases: tuple[str, ...] = ()
    """Ids it had before it was renamed, oldest first."""
    first_version: Annotated[int, Field(ge=1)] = 1
    """Version of the set in which it came."""
    last_version: Annotated[int, Field(ge=1)] = 1
    """Version of the set in which its text or id last changed."""


class MovedChunk(Record):
    """A chunk whose text is found under other ids; a row of `moved_chunks.jsonl`.

    Earlier rankings and grades name chunks as they were called then. In sets whose labels name
    documents it may be a document that was renamed.
    """

    before: NonEmpty
    """Its id in this version's parent, or in any version before that."""
    now: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """Ids of the chunks of this version that read the same, sorted."""


class DormantGrade(Record):
    """A grade that a person gave to a chunk that is gone; a row of `dormant_grades.jsonl`.

    It is in no measure. Where the chunk's text, or the quote that was graded, comes back, so does
    the grade.
    """

    judgment: Judgment
    """As it was when its chunk was there."""
    doc_id: NonEmpty
    """The document of the chunk, by its id of now."""
    text_sha256: NonEmpty
    """Of the chunk's text with runs of blanks folded; of a document as in `documents.jsonl`."""


class FormerGrade(Record):
    """A person's grade for another wording of a question; a row of `former_grades.jsonl`.

    It is in no measure. Where the question is worded so again, the grade comes back.
    """

    judgment: Judgment
    """As it was in the set."""
    wording_sha256: NonEmpty
    """Of the question that was graded; see `wording_digest`."""
    text_sha256: str = ""
    """Of the chunk's text with runs of blanks folded, as in `labels.jsonl`; "" of a document."""
    dormant: DormantGrade | None = None
    """As what it waited, where its chunk was gone already."""


class Cause(Record):
    """Why something became of a query."""

    kind: Literal[
        "document added",
        "document changed",
        "document removed",
        "document renamed",
        "document cut anew",
        "new chunk",
        "chunk there before",
        "check failed",
        "too few queries",
        "splits connected",
        "splits apart",
        "by hand",
    ]
    doc_id: str = ""
    before: str = ""
    """First 16 hex digits of the document's sha256 before, or its earlier id; "" for none."""
    after: str = ""
    """Likewise now."""
    detail: str = ""
    """What was seen, in a sentence; text of documents and models is data."""
    quote: str = ""
    """Words of a chunk that speak against the query; "" where no chunk does."""

    @property
    def is_conflict(self) -> bool:
        """Whether a chunk speaks against the query."""
        return self.kind in ("new chunk", "chunk there before")


class ItemChange(Record):
    """What became of a query; a row of `events.jsonl`."""

    version: Annotated[int, Field(ge=1)]
    query_id: NonEmpty
    action: Action
    revision: Annotated[int, Field(ge=1)]
    """Of the query after it."""
    causes: Annotated[tuple[Cause, ...], Field(min_length=1)]
    calls: Count = 0
    """Calls that were needed to check it, those answered from the store included."""


class RenamedDocument(Record):
    """A document whose text is found under another id."""

    before: NonEmpty
    after: NonEmpty


class DocumentsDiff(Record):
    """How the documents of two versions differ; ids, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[RenamedDocument, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Known before and not readable now; kept as they were."""
    n_before: Count = 0
    n_now: Count = 0
    chunks_kept: Count = 0
    chunks_added: Count = 0
    chunks_removed: Count = 0
    is_cut_anew: bool = False
    """Whether other settings cut all documents again."""


class JudgmentsDiff(Record):
    """What became of grades.

    Each row of the version's `judgments.jsonl` is of one kind: `kept`, `carried`, `judged`,
    `evidence` and `failed` add up to its number of rows.
    """

    kept: Count = 0
    """Those of people and judges that are equal in the version before, to the byte."""
    carried: Count = 0
    """Those that are not: their chunk has another id now, or is back, or another judge would give
    them today."""
    dropped: Count = 0
    """Those of people and judges in the version before, whose chunk is gone."""
    judged: Count = 0
    """Given by a judge for this version."""
    evidence: Count = 0
    """Those that follow from the quotes of queries, whether they are new or not."""
    failed: Count = 0
    """Pairs that a judge was asked for without success, now or before; they have no grade."""
    dormant: Count = 0
    """Rows of `dormant_grades.jsonl`: given by people to chunks that are gone, now or before."""


class CallCounts(Record):
    """Calls by purpose; those that the store answered included."""

    verify: Count = 0
    """Whether changed or lost quotes still prove the answer."""
    conflicts: Count = 0
    """Whether new relevant chunks give another answer."""
    judge: Count = 0
    generate: Count = 0


class VersionCheck(Record):
    """A check that a version has to pass before it is published."""

    name: NonEmpty
    passed: bool
    found: float | None = None
    limit: float | None = None
    detail: str = ""


class VersionDiff(Record):
    """What a version changed; the contents of `diff.json`."""

    version: Annotated[int, Field(ge=1)]
    parent: Annotated[int, Field(ge=0)]
    documents: DocumentsDiff
    items: dict[str, Count]
    """Action, or `kept`, to the number of queries; accepted ones of the parent, and new ones."""
    changes: tuple[ItemChange, ...]
    """All but what was kept, sorted by query id and action."""
    judgments: JudgmentsDiff
    calls: CallCounts
    bridge: tuple[str, ...]
    """Ids of queries that ask for the same and have the same grades above 0 in both versions,
    sorted."""
    checks: tuple[VersionCheck, ...] = ()
    shortfall: str = ""
    """What could not be added, and why; "" for nothing."""
    answers_left: dict[str, Count] = Field(
        default_factory=dict, exclude_if=lambda counts: not counts
    )
    """System to the number of its answers, which stay in the version before with their grades: they
    were written from its documents."""
    not_accepted: dict[str, Count] = Field(
        default_factory=dict, exclude_if=lambda counts: not counts
    )
    """Status to the number of queries that have it; without those that are accepted."""
    lost_relevant: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """Ids of accepted queries of which no relevant chunk is known any more, sorted."""
