"""The worst queries as text for a terminal, and as JSON."""

from collections.abc import Iterator, Mapping
from typing import Final

from ragforge.evaluating.causes.bad_queries import BadQueriesOfRun, BadQuery, WorstReport
from ragforge.evaluating.causes.catalogue import CAUSES, CauseGroup
from ragforge.evaluating.formatting import number, one_line, plural, render_table, share
from ragforge.evaluating.graded_by import graded_json, graded_line
from ragforge.evaluating.query_details import NO_GRADE_SIGNS, ChunkDetail, ChunkStart
from ragforge.report.document import Notice
from ragforge.report.text import REPORT_LAYOUT

_TOP: Final = 5
"""Ranks shown of a query on a terminal."""
_TEXT_CHARS: Final = 200
_CHUNK_CHARS: Final = 70
_TELL_RANK: Final = frozenset({"beyond_cutoff", "ranked_low"})
_HEADERS: Final = ("likely cause", "queries", "share", "mean", "code")


def render_worst(report: WorstReport) -> str:
    """Return the text, without a line feed at its end; no character of data steers a terminal."""
    blocks = (block for run in report.runs for block in _run(run, report))
    return "\n\n".join([REPORT_LAYOUT.paragraph(graded_line(report.graded_by)), *blocks])


def _run(run: BadQueriesOfRun, report: WorstReport) -> Iterator[str]:
    title = f"{one_line(run.name)}: {report.measure} {number(run.mean)}"
    if not run.groups:
        yield f"{title}\nNo query is below the best that its judgments allow; {report.reading}"
        return
    bad = f"{run.n_bad:,} of {plural(run.n_queries, 'query', 'queries')}"
    note = f"{bad} below the best that their judgments allow; {report.reading}"
    rows = [(*cause_cells(group), group.code) for group in run.groups]
    yield "\n".join([title, render_table(_HEADERS, rows), note])
    causes = (CAUSES[group.code] for group in run.groups)
    remedies = [Notice(cause.title, f"{cause.meaning} {cause.remedy}") for cause in causes]
    yield "\n".join(map(REPORT_LAYOUT.notice, remedies))
    for place, item in enumerate(run.worst, 1):
        yield "\n".join(_query(place, item, report.starts))
    if not run.worst:
        yield "No query to list: see the codes above for --cause."


def cause_cells(group: CauseGroup) -> tuple[str, ...]:
    """Return a cause with how many queries it spoiled, their share and their mean."""
    count = f"{len(group.query_ids):,}"
    return CAUSES[group.code].title, count, share(group.share), number(group.mean)


def _query(place: int, item: BadQuery, starts: Mapping[str, ChunkStart]) -> Iterator[str]:
    causes = item.causes
    head = f"{place}. {number(causes.value)}  {one_line(item.detail.text.text, _TEXT_CHARS)}"
    yield REPORT_LAYOUT.paragraph(head, "   ")
    cause = CAUSES[causes.code].title + (f" ({causes.detail})" if causes.detail else "")
    facts = [one_line(causes.query_id), cause]
    if item.first_relevant is not None and causes.code not in _TELL_RANK:
        facts.append(f"first relevant at rank {item.first_relevant}")
    yield f"   {' · '.join(facts)}"
    if len(causes.codes) > 1:
        yield f"   also: {', '.join(CAUSES[code].title for code in causes.codes[1:])}"
    for place_of, chunk in enumerate(item.top[:_TOP], 1):
        yield _chunk(f"{place_of:>4}", chunk, starts)
    for chunk in item.missed:
        rank = item.run.ranks.get(chunk.chunk_id)
        yield _chunk(f"{rank:>4}" if rank else "none", chunk, starts)
    if item.run.n_missed > len(item.missed):
        yield f"   and {item.run.n_missed - len(item.missed)} more relevant ones"


def _chunk(rank: str, chunk: ChunkDetail, starts: Mapping[str, ChunkStart]) -> str:
    sign = NO_GRADE_SIGNS[chunk.state] if chunk.grade is None else str(chunk.grade)
    start = starts.get(chunk.chunk_id)
    text = "(not in the dataset)" if start is None else one_line(start.text.text, _CHUNK_CHARS)
    return f"   {rank}  [{sign}] {one_line(chunk.chunk_id, 24)}  {text}"


def worst_json(report: WorstReport) -> dict[str, object]:
    """Return what `--json` prints."""
    return {
        "dataset": report.dataset,
        "measure": report.measure,
        "rel_threshold": report.rel_threshold,
        "reading": report.reading,
        "cause": report.cause,
        "graded_by": graded_json(report.graded_by),
        "runs": {run.name: _run_json(run, report.starts) for run in report.runs},
        "warnings": list(report.warnings),
    }


def _run_json(run: BadQueriesOfRun, starts: Mapping[str, ChunkStart]) -> dict[str, object]:
    return {
        "mean": run.mean,
        "n_queries": run.n_queries,
        "n_bad": run.n_bad,
        "causes": [
            {
                "code": group.code,
                "title": CAUSES[group.code].title,
                "count": len(group.query_ids),
                "share": group.share,
                "mean": group.mean,
                "meaning": CAUSES[group.code].meaning,
                "remedy": CAUSES[group.code].remedy,
                "query_ids": list(group.query_ids),
            }
            for group in run.groups
        ],
        "worst": [_query_json(item, starts) for item in run.worst],
    }


def _query_json(item: BadQuery, starts: Mapping[str, ChunkStart]) -> dict[str, object]:
    causes, ranks = item.causes, item.run.ranks
    top = [_chunk_json(chunk, rank, starts) for rank, chunk in enumerate(item.top, 1)]
    return {
        "query_id": causes.query_id,
        "query": item.detail.text.text,
        "value": causes.value,
        "best_possible": causes.best,
        "cause": causes.code,
        "causes": list(causes.codes),
        "detail": causes.detail,
        "first_relevant_rank": item.first_relevant,
        "n_retrieved": item.run.n_retrieved,
        "retrieved": top,
        "missed": [_chunk_json(c, ranks.get(c.chunk_id), starts) for c in item.missed],
        "n_missed": item.run.n_missed,
    }


def _chunk_json(
    chunk: ChunkDetail, rank: int | None, starts: Mapping[str, ChunkStart]
) -> dict[str, object]:
    start = starts.get(chunk.chunk_id)
    return {
        "chunk_id": chunk.chunk_id,
        "rank": rank,
        "grade": chunk.grade,
        "state": chunk.state,
        "text": None if start is None else start.text.text,
    }
