"""The pages on which people decide about queries of the site, and where their decisions go."""

from collections.abc import Iterable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, get_args

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ragforge.errors import (
    ChangedMeanwhileError,
    ContradictedError,
    DataError,
    RagforgeError,
    UsageError,
)
from ragforge.files.formats.review_sheet import decision_of
from ragforge.files.row import load_json, make_row
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import home_of
from ragforge.pipeline.intake.review_passages import passages
from ragforge.pipeline.intake.review_sheets import Batch, Order, rows_of, sheet_rows
from ragforge.pipeline.intake.review_states import state_of
from ragforge.pipeline.intake.reviewing import decide, decided
from ragforge.records import Query
from ragforge.report.page.review import ServedReview, render_review
from ragforge.viewer.labelling import found_dataset, require_writer, sent_json, writer_of
from ragforge.viewer.pages import problem_page
from ragforge.viewer.policy import with_own_policy
from ragforge.viewer.served import ServedDatasets

BATCH: Final = 50
"""Queries on a page; the next ones come when these are decided."""
_MOST_BYTES: Final = 131_072
"""Of a decision: ids, a question, an answer and a note; and the ids of the queries still open."""
_PAGE: Final = "the page"


def review_routes(datasets: ServedDatasets, names: Sequence[str]) -> list[Route]:
    """Return the addresses on which people decide about the queries of a site.

    Args:
        datasets: Those served.
        names: Of all who may decide, sorted.
    """
    page, take = partial(_page, datasets, names), partial(_post, datasets)
    return [
        Route("/datasets/{name}/review", page),
        Route("/datasets/{name}/decisions", take, methods=["POST"]),
    ]


def _page(datasets: ServedDatasets, names: Sequence[str], request: Request) -> Response:
    served, reviewer = found_dataset(datasets, request), require_writer(request)
    if not writer_of(request).decides:
        raise HTTPException(HTTPStatus.FORBIDDEN, "this token is for reading and labelling")
    try:
        dataset = open_dataset(served.path)
        if home_of(served.path) != served.path:
            raise DataError(f"{served.name} is a version, which stays as it is")
        asked = request.query_params
        if "q" in asked:
            rows = rows_of(dataset, asked.getlist("q"), reviewer)
        else:
            rows = sheet_rows(dataset, reviewer=reviewer, batch=_batch(request))
        wanted = {row.query_id for row in rows}
        queries = [query for query in dataset.all_queries() if query.query_id in wanted]
        site = ServedReview(
            post="decisions",
            states={query.query_id: state_of(query) for query in queries},
            dataset=served.name,
            is_batch="q" not in asked,
            order=asked.get("order", ""),
            parts=len(names),
            part=names.index(reviewer) + 1,
        )
        page = render_review(dataset.manifest.name, rows, passages(dataset, queries), site)
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return with_own_policy(HTMLResponse(page), page)


def _batch(request: Request) -> Batch:
    """Return which queries an address asks for.

    Raises:
        UsageError: It asks for something else.
    """
    asked = request.query_params
    order = asked.get("order") or "doubt"
    if order not in get_args(Order):
        raise UsageError(f"order: expected one of {', '.join(get_args(Order))}, got {order!r}")
    part, _, parts = (asked.get("part") or "1/1").partition("/")
    numbers = (part, parts)
    if not all(text.isascii() and text.isdigit() and len(text) < 5 for text in numbers):
        raise UsageError("part: expected K/N such as 1/2")
    return Batch(order, BATCH, int(part), int(parts))  # type: ignore[arg-type]  # one of Order


async def _post(datasets: ServedDatasets, request: Request) -> Response:
    body = await sent_json(request, _MOST_BYTES, "decision")
    return await run_in_threadpool(_take, datasets, request, body)


def _take(datasets: ServedDatasets, request: Request, body: bytes) -> Response:
    """Take a decision in; tell what others decided of the queries that are still open here."""
    served, reviewer = found_dataset(datasets, request), require_writer(request)
    try:
        given = load_json(body)
        if not isinstance(given, dict):
            raise DataError("expected a JSON object")
        still_open = given.pop("open", [])
        state, overrule = given.pop("state", ""), given.pop("overrule", False) is True
        row = decision_of(make_row(_PAGE, given))
        found = decide(served.path, row, reviewer, str(state), overrule=overrule)
    except ChangedMeanwhileError as error:
        return JSONResponse({"error": str(error), "changed": True}, HTTPStatus.CONFLICT)
    except ContradictedError as error:
        return JSONResponse({"error": str(error), "contradicted": True}, HTTPStatus.CONFLICT)
    except (ValueError, RecursionError, RagforgeError) as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
    query = found.query
    return JSONResponse({
        "state": state_of(query),
        "revision": query.revision,
        "query": query.query,
        "standalone": query.standalone,
        "answer": query.expected_answer or "",
        "former_grades": found.former_grades,
        "others": _decided_by_others(found.queries, still_open, reviewer),
    })  # fmt: skip


def _decided_by_others(
    queries: Iterable[Query], still_open: object, reviewer: str
) -> dict[str, str]:
    """Return what others decided of queries that are open on a page, in words, by query."""
    listed = still_open if isinstance(still_open, list) else []
    wanted = {item for item in listed if isinstance(item, str)}
    return {
        query.query_id: decided(query)
        for query in queries
        if query.query_id in wanted
        and any(past and past.by != reviewer for past in (query.reviewed, query.pinned))
    }
