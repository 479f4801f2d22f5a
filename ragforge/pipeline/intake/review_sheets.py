"""What people are to look at: queries on which the checks disagree, and some drawn at random."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import write_whole
from ragforge.files.formats.review_sheet import RANDOM, SheetRow, write_sheet
from ragforge.files.set.dataset import Dataset
from ragforge.records import Query
from ragforge.report.page.review import render_review

LEAST_DRAWN: Final = 10
SHARE_DRAWN: Final = 0.05
_JUST_DRAWN: Final = 9


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason to look at a query; the lowest weight comes first."""

    weight: int
    text: str


def sheet_rows(
    dataset: Dataset, *, sample: int | None = None, reviewer: str = ""
) -> list[SheetRow]:
    """Return what a reviewer is to decide about: doubtful queries first, then the merely drawn.

    Queries that a person decided about are left out, except that of those drawn at random only
    now, which come with their decision filled in so that they are counted.

    Args:
        dataset: Has queries.
        sample: How many are drawn at random; 5 % of the queries, and at least 10, where None.
        reviewer: For whom the sheet is; "" for anybody.

    Raises:
        DataError: There are no queries, or there is nothing to decide about.
    """
    everything = dataset.all_queries() or dataset.require_queries()
    queries = [query for query in everything if _is_reviewable(query)]
    drawn = drawn_at_random(queries, sample)
    rows: list[tuple[tuple[int, int, str], Query, list[Flag]]] = []
    for query in queries:
        query_flags = flags(query) if query.reviewed is None and query.pinned is None else []
        counts_anew = query.query_id in drawn and not (query.reviewed and query.reviewed.random)
        if query_flags or counts_anew:
            weight = min((flag.weight for flag in query_flags), default=_JUST_DRAWN)
            rows.append(((weight, -len(query_flags), _place(query.query_id)), query, query_flags))
    if not rows:
        raise DataError(
            f"{dataset.path}: nothing to review: no check disagrees, and all that was drawn is "
            "decided; draw more with --sample"
        )
    rows.sort(key=lambda entry: entry[0])
    places = _places(dataset, [query for _, query, _ in rows])
    return [
        _row(query, query_flags, places, drawn=query.query_id in drawn, reviewer=reviewer)
        for _, query, query_flags in rows
    ]


def flags(query: Query) -> list[Flag]:
    """Return why a person should look at a query, the weightiest first; [] if no check asks."""
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
        raised.append(Flag(1, "quarantined"))
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


_AGREES: Final = {True: "agrees in part", False: "differs"}


def _is_reviewable(query: Query) -> bool:
    """Whether there is something to decide: a bare question of a log has no answer."""
    bare = query.origin == "log" and query.expected_answer is None and not query.evidence
    return not bare and (query.status != "retired" or query.reviewed is not None)


def _place(query_id: str) -> str:
    return hashlib.sha256(f"review\n{query_id}".encode()).hexdigest()


def _places(dataset: Dataset, queries: Iterable[Query]) -> Mapping[str, str]:
    """Return where the chunks with evidence stand, by chunk id."""
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
        reasons.append(f"decided by {query.reviewed.by}, drawn at random since")
    return SheetRow(
        query_id=query.query_id,
        revision=str(query.revision),
        reviewer=reviewer,
        query=query.query,
        history="\n".join(f"{turn.role}: {turn.text}" for turn in query.history),
        standalone=query.standalone,
        expected_answer=query.expected_answer or "",
        evidence="\n\n".join(item.quote for item in query.evidence),
        difficulty=query.difficulty or "",
        type=query.type or "",
        place="\n".join(dict.fromkeys(at)),
        flags="; ".join(reasons),
        random=RANDOM if drawn else "",
        decision=query.reviewed.decision if query.reviewed is not None else "",
    )


def export_sheet(
    dataset: Dataset, out: Path, sample: int | None = None, reviewer: str = ""
) -> list[SheetRow]:
    """Write a sheet and return its rows; see `sheet_rows`.

    Args:
        dataset: Has queries.
        out: A new file; .csv for a table, .html for a page.
        sample: How many are drawn at random.
        reviewer: For whom it is.

    Raises:
        UsageError: The file exists, for decisions may be in it; or it is neither kind.
        DataError: There is nothing to decide about, or the file cannot be written.
    """
    kind = out.suffix.lower()
    if kind not in (".csv", ".html"):
        raise UsageError(f"--out {out}: expected a name that ends in .csv or .html")
    if out.exists():
        raise UsageError(
            f"--out {out}: is there already, maybe with decisions in it; name another file"
        )
    rows = sheet_rows(dataset, sample=sample, reviewer=reviewer)
    if kind == ".csv":
        write_sheet(out, rows)
    else:
        write_whole(out, [render_review(dataset.manifest.name, rows)])
    return rows
