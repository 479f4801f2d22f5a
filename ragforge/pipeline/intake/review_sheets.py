"""Sheets of what people should look at: queries on which checks disagree, and some drawn."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.atomic import write_whole
from ragforge.files.formats.review_sheet import RANDOM, SheetRow, write_sheet
from ragforge.files.set.dataset import Dataset
from ragforge.files.text import shown
from ragforge.pipeline.intake.review_states import QUARANTINED, evidence_text, shown_state
from ragforge.records import Query

Order = Literal["doubt", "document", "random"]
LEAST_DRAWN: Final = 10
SHARE_DRAWN: Final = 0.05
_JUST_DRAWN: Final = 9
_AGREES: Final = {True: "agrees in part", False: "differs"}


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason to look at a query; the lowest weight comes first."""

    weight: int
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Which of the queries to decide about come onto a sheet, and in which order."""

    order: Order = "doubt"
    """The most doubtful first, or by document, so that each is read once, or at random."""
    most: int | None = None
    """So many from the front; all where None."""
    part: int = 1
    """Which of `parts`, from 1: parts share no query, whoever exports them when."""
    parts: int = 1

    def taken(self, entries: Sequence["_Entry"]) -> list["_Entry"]:
        """Return the entries of this batch in its order.

        Raises:
            UsageError: A number is out of its range.
        """
        if self.most is not None and self.most < 1:
            raise UsageError(f"--most: expected at least 1, got {self.most}")
        if not 1 <= self.part <= self.parts:
            raise UsageError(
                f"--part: expected K/N with K from 1 to N, got {self.part}/{self.parts}"
            )
        mine = [item for item in entries if _part(item.query.query_id, self.parts) == self.part]
        return sorted(mine, key=_ORDERS[self.order])[: self.most]


ALL: Final = Batch()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A query to decide about."""

    query: Query
    flags: list[Flag]

    @property
    def doubt(self) -> tuple[int, int, str]:
        """What it is sorted by, the most doubtful first."""
        weight = min((flag.weight for flag in self.flags), default=_JUST_DRAWN)
        return weight, -len(self.flags), _place(self.query.query_id)

    @property
    def document(self) -> tuple[bool, str, str, str]:
        """What it is sorted by, those of a document together, those without one last."""
        first = next(iter(self.query.evidence), None)
        if first is None:
            return True, "", "", self.query.query_id
        return False, first.doc_id, first.chunk_id, self.query.query_id


_ORDERS: Final[Mapping[Order, Callable[[_Entry], tuple[object, ...]]]] = {
    "doubt": lambda entry: entry.doubt,
    "document": lambda entry: entry.document,
    "random": lambda entry: (_place(entry.query.query_id),),
}


def sheet_rows(
    dataset: Dataset, *, sample: int | None = None, reviewer: str = "", batch: Batch = ALL
) -> list[SheetRow]:
    """Return the rows of a review sheet: doubtful queries first, then the merely drawn.

    Queries that a person decided about are left out, except that of those drawn at random only
    now, which come with their decision filled in so that they are counted.

    Args:
        dataset: Has queries.
        sample: How many are drawn at random; 5 % of the queries, and at least 10, where None.
        reviewer: For whom the sheet is; "" for anybody.
        batch: Which part of it, in which order.

    Raises:
        DataError: There are no queries, or there is nothing to decide about.
        UsageError: A number is out of its range.
    """
    everything = dataset.all_queries() or dataset.require_queries()
    queries = [query for query in everything if _is_reviewable(query)]
    drawn = drawn_at_random(queries, sample)
    entries: list[_Entry] = []
    for query in queries:
        query_flags = flags(query) if query.reviewed is None and query.pinned is None else []
        counts_anew = query.query_id in drawn and not (query.reviewed and query.reviewed.random)
        if query_flags or counts_anew:
            entries.append(_Entry(query, query_flags))
    taken = batch.taken(entries)
    if entries and not taken:
        raise DataError(
            f"{dataset.path}: part {batch.part} of {batch.parts} has none of the "
            f"{plural(len(entries), 'query', 'queries')} to decide about"
        )
    if not taken:
        raise DataError(
            f"{dataset.path}: nothing to review: no check disagrees, and all that was drawn is "
            "decided; `ragforge review export --sample` draws more"
        )
    return _rows(dataset, taken, drawn, reviewer)


def rows_of(dataset: Dataset, query_ids: Collection[str], reviewer: str) -> list[SheetRow]:
    """Return the rows of named queries, whatever was decided about them.

    Raises:
        DataError: One of them is not in the dataset, or there is nothing to decide about it.
    """
    everything = dataset.all_queries()
    queries = [query for query in everything if query.query_id in query_ids]
    if missing := set(query_ids) - {query.query_id for query in queries if _is_reviewable(query)}:
        raise DataError(f"{shown(min(missing))}: is no query that can be decided about")
    drawn = drawn_at_random([query for query in everything if _is_reviewable(query)], None)
    return _rows(dataset, [_Entry(query, flags(query)) for query in queries], drawn, reviewer)


def _rows(
    dataset: Dataset, entries: Sequence[_Entry], drawn: Collection[str], reviewer: str
) -> list[SheetRow]:
    places = _places(dataset, [entry.query for entry in entries])
    return [
        _row(
            entry.query,
            entry.flags,
            places,
            drawn=entry.query.query_id in drawn,
            reviewer=reviewer,
        )
        for entry in entries
    ]


def flags(query: Query) -> list[Flag]:
    """Return the reasons to look at a query, the weightiest first; [] if no check asks."""
    raised = []
    for gate in query.gates:
        if gate.verdict != "pass":
            because = f" ({gate.reason})" if gate.reason else ""
            name = gate.gate.replace("_", " ")
            raised.append(Flag(int(gate.verdict == "unknown"), f"{name}: {gate.verdict}{because}"))
    measured = query.measured
    if measured is not None and measured.agreement in ("differs", "in part"):
        in_part = measured.agreement == "in part"
        raised.append(Flag(int(in_part), f"an independent answer {_AGREES[in_part]}"))
    if query.status == "quarantined":
        raised.append(Flag(1, QUARANTINED))
    if measured is not None and measured.closed_book == "solved":
        raised.append(Flag(2, "answered without the text"))
    if not query.answerable:
        raised.append(Flag(3, "said to be unanswerable"))
    return sorted(raised, key=lambda flag: flag.weight)


def drawn_at_random(queries: Sequence[Query], sample: int | None) -> set[str]:
    """Return the ids of those drawn: the first in an order by digest, so that more include fewer.

    Drawn from are the accepted queries and those that a person decided about, whatever became of
    them: else a second draw would be from what is left after the first.

    Raises:
        UsageError: The number asked for is below 1.
    """
    if sample is not None and sample < 1:
        raise UsageError(f"--sample: expected at least 1, got {sample}")
    among = [q.query_id for q in queries if q.status == "accepted" or q.reviewed is not None]
    wanted = max(LEAST_DRAWN, ceil(len(among) * SHARE_DRAWN)) if sample is None else sample
    return set(sorted(among, key=_place)[:wanted])


def _is_reviewable(query: Query) -> bool:
    """Whether there is something to decide: a bare question of a log has no answer."""
    bare = query.origin == "log" and query.expected_answer is None and not query.evidence
    return not bare and (query.status != "retired" or query.reviewed is not None)


def _place(query_id: str) -> str:
    return hashlib.sha256(f"review\n{query_id}".encode()).hexdigest()


def _part(query_id: str, parts: int) -> int:
    digest = hashlib.sha256(f"review part\n{query_id}".encode()).digest()
    return int.from_bytes(digest[:8]) % parts + 1


def _places(dataset: Dataset, queries: Iterable[Query]) -> Mapping[str, str]:
    """Return the places of the chunks with evidence, by chunk id."""
    wanted = {item.chunk_id for query in queries for item in query.evidence}
    if not wanted:
        return {}
    return {
        chunk.chunk_id: " > ".join((chunk.doc_id, *chunk.heading_path))
        for chunk in dataset.chunks()
        if chunk.chunk_id in wanted
    }


def _row(
    query: Query, found: Sequence[Flag], places: Mapping[str, str], *, drawn: bool, reviewer: str
) -> SheetRow:
    at = (places.get(item.chunk_id, item.doc_id) for item in query.evidence)
    reasons = [flag.text for flag in found]
    if query.reviewed is not None:
        since = ", drawn at random since" if drawn and not query.reviewed.random else ""
        from ragforge.pipeline.intake.reviewing import decided

        reasons.append(f"{decided(query)}{since}")
    return SheetRow(
        query_id=query.query_id,
        revision=str(query.revision),
        reviewer=reviewer,
        query=query.query,
        history="\n".join(f"{turn.role}: {turn.text}" for turn in query.history),
        standalone=query.standalone,
        expected_answer=query.expected_answer or "",
        evidence=evidence_text(query),
        difficulty=query.difficulty or "",
        type=query.type or "",
        place="\n".join(dict.fromkeys(at)),
        flags="; ".join(reasons),
        random=RANDOM if drawn else "",
        state=shown_state(query),
        decision=query.reviewed.decision if query.reviewed is not None else "",
    )


def export_sheet(
    dataset: Dataset,
    out: Path,
    sample: int | None = None,
    reviewer: str = "",
    batch: Batch = ALL,
) -> list[SheetRow]:
    """Write a sheet and return its rows; see `sheet_rows`.

    Args:
        dataset: Has queries.
        out: A new file; .csv for a table, .html for a page.
        sample: How many are drawn at random.
        reviewer: For whom it is.
        batch: Which part of it, in which order.

    Raises:
        UsageError: The file exists, for decisions may be in it; or it is neither kind; or a number
            is out of its range.
        DataError: There is nothing to decide about, or the file cannot be written.
    """
    from ragforge.pipeline.intake.review_passages import passages
    from ragforge.report.page.review import render_review

    kind = out.suffix.lower()
    if kind not in (".csv", ".html"):
        raise UsageError(f"--out {out}: expected a name that ends in .csv or .html")
    if out.exists():
        raise UsageError(
            f"--out {out}: is there already, maybe with decisions in it; name another file"
        )
    rows = sheet_rows(dataset, sample=sample, reviewer=reviewer, batch=batch)
    if kind == ".csv":
        write_sheet(out, rows)
    else:
        shown_ids = {row.query_id for row in rows}
        queries = [query for query in dataset.all_queries() if query.query_id in shown_ids]
        shown_of = passages(dataset, queries)
        write_whole(out, [render_review(dataset.manifest.name, rows, shown_of)])
    return rows
