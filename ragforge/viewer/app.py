"""The site: which address shows what."""

import hashlib
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragforge.errors import RagforgeError
from ragforge.records import Evaluation
from ragforge.report.history.trends import trend
from ragforge.viewer.guarding import Door, Guard
from ragforge.viewer.pages import dataset_page, list_page, problem_page
from ragforge.viewer.reports import Render, Reports
from ragforge.viewer.shelf import Shelf, Shown

_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEAD_CHARS: Final = 4000


def view_app(roots: Sequence[Path], door: Door, render: Render) -> ASGIApp:
    """Return the site as an ASGI application.

    Args:
        roots: Datasets, or folders of some.
        door: Who is let in.
        render: Makes the report of a dataset as a whole page with its own policy; is called in
            threads, for different datasets at once.
    """
    shelf, reports = Shelf(roots), Reports(render)
    # What is not async runs in a thread: reading files must not keep other requests waiting.
    routes = [
        Route("/", partial(_list, shelf)),
        Route("/datasets/{name}", partial(_of_dataset, shelf, _page)),
        Route("/datasets/{name}/report", partial(_of_dataset, shelf, partial(_report, reports))),
        Route("/api/datasets", partial(_api_list, shelf)),
        Route("/api/datasets/{name}/history", partial(_of_dataset, shelf, _api_history)),
        Route("/view.css", _style),
        Route("/view.js", _script),
    ]
    handlers = {HTTPException: _http_problem, Exception: _bug}
    site = Starlette(routes=routes, exception_handlers=handlers)
    site.router.redirect_slashes = False
    # Not as a middleware: the reply to a bug does not pass through those.
    return Guard(site, door)


def _list(shelf: Shelf, request: Request) -> Response:
    return _tagged(request, HTMLResponse(list_page(shelf.datasets())))


def _of_dataset(
    shelf: Shelf, answer: Callable[[Request, Shown], Response], request: Request
) -> Response:
    """Answer for the dataset that an address names: names are looked up, never made into paths."""
    shown = shelf.find(request.path_params["name"])
    if shown is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such dataset (any more)")
    return answer(request, shown)


def _page(request: Request, shown: Shown) -> Response:
    return _tagged(request, HTMLResponse(dataset_page(shown)))


def _report(reports: Reports, request: Request, shown: Shown) -> Response:
    try:
        page = reports.html(shown)
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(shown.title, str(error)), HTTPStatus.CONFLICT)
    policy = _POLICY.search(page[:_HEAD_CHARS])
    if policy is None:
        return _tagged(request, HTMLResponse(page))
    # What the page asks for itself, hashes of its style sheet and script in it.
    own = {"Content-Security-Policy": f"{html.unescape(policy[1])}; frame-ancestors 'none'"}
    return _tagged(request, HTMLResponse(page, headers=own))


def _api_list(shelf: Shelf, request: Request) -> Response:
    told = {"datasets": [_dataset_json(shown) for shown in shelf.datasets()]}
    return _tagged(request, JSONResponse(told))


def _api_history(request: Request, shown: Shown) -> Response:
    told = {
        "name": shown.name,
        "problem": shown.problem,
        "evaluations": [item.model_dump(mode="json") for item in shown.history.evaluations],
        "notes": list(shown.history.notes),
    }
    return _tagged(request, JSONResponse(told))


def _dataset_json(shown: Shown) -> dict[str, object]:
    runs = {run: shown.history.of_run(run) for run in shown.history.runs}
    return {
        "name": shown.name,
        "title": shown.title,
        "version": None if shown.manifest is None else shown.manifest.version,
        "problem": shown.problem,
        "n_evaluations": len(shown.history.evaluations),
        "runs": {run: _run_json(of_run) for run, of_run in runs.items()},
    }


def _run_json(of_run: Sequence[Evaluation]) -> dict[str, object]:
    now = of_run[-1]
    return {
        "evaluation_id": now.evaluation_id,
        "at": now.at,
        "n_queries": now.n_queries,
        "n_failed": now.n_failed,
        "measures": {
            name: {**mean.model_dump(mode="json"), "trend": asdict(trend(of_run, name))}
            for name, mean in now.measures.items()
        },
    }


def _style(request: Request) -> Response:
    sheets = (
        ("ragforge.report.page", "page.css"),
        ("ragforge.report.page", "charts.css"),
        ("ragforge.viewer", "view.css"),
    )
    return Response("".join(_text(*sheet) for sheet in sheets), media_type="text/css")


def _script(request: Request) -> Response:
    return Response(_text("ragforge.viewer", "view.js"), media_type="text/javascript")


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _tagged(request: Request, reply: Response) -> Response:
    """Give a reply the tag of what it says, or say that this is known already."""
    tag = f'"{hashlib.sha256(bytes(reply.body)).hexdigest()[:32]}"'
    known = [item.strip() for item in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    reply.headers["ETag"] = tag
    return reply


def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(request, error.status_code, str(error.detail))


def _bug(request: Request, error: Exception) -> Response:
    return _problem(request, HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug of ragforge")


def _problem(request: Request, status: int, said: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": said}, status)
    return HTMLResponse(problem_page(HTTPStatus(status).phrase, said), status)
