"""The site as an application, and serving it until it is told to end."""

import asyncio
import contextlib
import hashlib
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragforge.config import EvaluateSettings
from ragforge.errors import RagforgeError, UsageError
from ragforge.evaluating.history.trends import trend
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import MANIFEST, home_of
from ragforge.observe.prometheus import exposed
from ragforge.records import Evaluation
from ragforge.viewer.access import READER, Guard, Person, PublicAddress, SiteAccess
from ragforge.viewer.labelling import found_dataset, label_routes, writer_of
from ragforge.viewer.list_page import ListPage
from ragforge.viewer.measured import (
    MEASURED,
    USUAL,
    MeasuredSet,
    ViewRequest,
    measured_set,
    view_of,
)
from ragforge.viewer.nights_page import night_folders, nights_of, nights_page
from ragforge.viewer.pages import dataset_page, problem_page
from ragforge.viewer.policy import with_own_policy
from ragforge.viewer.queries_page import queries_page
from ragforge.viewer.query_page import Place, document_page, query_page
from ragforge.viewer.reviewing import review_routes
from ragforge.viewer.served import KeptOfDatasets, Render, ServedDataset, ServedDatasets, stamp

_REQUEST_S: Final = 10.0
"""From the first byte, or none, to the last of a request. Its maker is a browser nearby."""
_UNREAD_S: Final = 60.0
"""For which a reply that is made may lie there and none of it be taken."""
_MOST_CONNECTIONS: Final = 200
"""A browser opens six; the process may open some thousand files."""
_BACKLOG = 128
_LEAST_PACKED: Final = 50_000
"""Bytes from which on a reply is sent packed, where a browser takes that."""
_STARTED: Final = secrets.token_hex(8)
"""Another program makes other pages of the same files."""
_GRACE_S = 1
"""How long replies that are being made may take when the server ends."""


def view_app(
    roots: Sequence[Path],
    access: SiteAccess,
    render: Render,
    settings: EvaluateSettings = USUAL,
) -> ASGIApp:
    """Return the site as an ASGI application.

    Args:
        roots: Datasets, or folders of some.
        access: Who is let in.
        render: Makes the report of a dataset as a whole page with its own policy; is called in
            threads, for different datasets at once.
        settings: Measures and threshold of the pages of queries.
    """
    datasets, reports = ServedDatasets(roots), KeptOfDatasets(render)
    measured = KeptOfDatasets(partial(measured_set, settings=settings), MEASURED)
    # What is not async runs in a thread: reading files must not keep other requests waiting.
    routes = [
        Route("/", partial(_list, datasets, ListPage())),
        Route("/datasets/{name}", partial(_of_dataset, datasets, _page)),
        Route(
            "/datasets/{name}/report",
            partial(_of_dataset, datasets, partial(_report, reports)),
        ),
        *(
            Route(
                f"/datasets/{{name}}/{name}",
                partial(_of_dataset, datasets, partial(_of_measured, measured, shown)),
            )
            for name, shown in (("queries", _queries), ("query", _query))
        ),
        Route("/datasets/{name}/document", partial(_of_dataset, datasets, _document)),
        Route("/datasets/{name}/nights", partial(_of_dataset, datasets, _nights)),
        Route("/api/datasets", partial(_api_list, datasets)),
        Route("/api/datasets/{name}/history", partial(_of_dataset, datasets, _api_history)),
        Route("/metrics", partial(_metrics, datasets)),
        Route("/view.css", _style),
        Route("/view.js", _script),
    ]
    if access.labeller or access.people:
        routes += label_routes(datasets)
    if access.people:
        names = sorted(person.name for person in access.people)
        routes += review_routes(datasets, names)
    handlers = {HTTPException: _http_problem, Exception: _bug}
    site = Starlette(routes=routes, exception_handlers=handlers)
    site.router.redirect_slashes = False
    # Not as a middleware: the reply to a bug does not pass through those.
    return Guard(GZipMiddleware(site, minimum_size=_LEAST_PACKED, compresslevel=5), access)


def _list(datasets: ServedDatasets, page: ListPage, request: Request) -> Response:
    return _tagged(request, HTMLResponse(page.html(datasets.datasets())))


def _of_dataset(
    datasets: ServedDatasets,
    answer: Callable[[Request, ServedDataset], Response],
    request: Request,
) -> Response:
    """Answer for the dataset that an address names."""
    return answer(request, found_dataset(datasets, request))


def _page(request: Request, served: ServedDataset) -> Response:
    writer = writer_of(request)
    if writer != READER or served.problem:
        return _tagged(request, HTMLResponse(dataset_page(served, writer)))
    tag = _tag(repr((_STARTED, served.name, served.state)).encode())
    if _is_known(request, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    return HTMLResponse(dataset_page(served, writer), headers={"ETag": tag})


def _report(reports: KeptOfDatasets[str], request: Request, served: ServedDataset) -> Response:
    try:
        page = reports.of(served).value
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return _tagged(request, with_own_policy(HTMLResponse(page), page))


def _of_measured(
    kept: KeptOfDatasets[MeasuredSet],
    shown: Callable[[Request, ServedDataset, MeasuredSet], str],
    request: Request,
    served: ServedDataset,
) -> Response:
    """Answer with a page about queries; who knows the one of this state of the files has it."""
    try:
        made = kept.of(served)
        state = (_STARTED, made.stamps, request.url.query, writer_of(request))
        tag = _tag(repr(state).encode())
        if _is_known(request, tag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        page = shown(request, served, made.value)
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return HTMLResponse(page, headers={"ETag": tag})


def _queries(request: Request, served: ServedDataset, measured: MeasuredSet) -> str:
    return queries_page(
        served, measured, view_of(measured, ViewRequest.parse(request.query_params))
    )


def _query(request: Request, served: ServedDataset, measured: MeasuredSet) -> str:
    view = view_of(measured, ViewRequest.parse(request.query_params))
    decides = writer_of(request).decides
    return query_page(Place(served, open_dataset(served.path), measured, view, decides))


def _document(request: Request, served: ServedDataset) -> Response:
    asked = request.query_params
    try:
        dataset = open_dataset(served.path)
        page = document_page(served, dataset, asked.get("doc", ""), asked.get("q", ""))
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return _tagged(request, HTMLResponse(page))


def _nights(request: Request, served: ServedDataset) -> Response:
    home = home_of(served.path)
    try:
        stamps = [(folder, stamp(folder / MANIFEST)) for folder in night_folders(home)]
        tag = _tag(repr((_STARTED, served.title, stamps)).encode())
        if _is_known(request, tag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        page = nights_page(served, nights_of(home))
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return HTMLResponse(page, headers={"ETag": tag})


def _api_list(datasets: ServedDatasets, request: Request) -> Response:
    content = {"datasets": [_dataset_json(served) for served in datasets.datasets()]}
    return _tagged(request, JSONResponse(content))


def _metrics(datasets: ServedDatasets, request: Request) -> Response:
    latest = [
        # By its own name here: two sets may have one name.
        served.recent.of_run(run)[-1].model_copy(update={"dataset": served.name})
        for served in datasets.datasets()
        for run in served.recent.runs
    ]
    return Response("".join(exposed(latest)), media_type="text/plain; version=0.0.4")


def _api_history(request: Request, served: ServedDataset) -> Response:
    history = served.history()
    content = {
        "name": served.name,
        "problem": served.problem,
        "evaluations": [item.model_dump(mode="json") for item in history.evaluations],
        "notes": list(history.notes),
    }
    return _tagged(request, JSONResponse(content))


def _dataset_json(served: ServedDataset) -> dict[str, object]:
    runs = {run: served.recent.of_run(run) for run in served.recent.runs}
    return {
        "name": served.name,
        "title": served.title,
        "version": None if served.manifest is None else served.manifest.version,
        "problem": served.problem,
        "n_evaluations": served.n_evaluations,
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
        ("ragforge.report.page", "queries.css"),
        ("ragforge.report.page", "review.css"),
        ("ragforge.viewer", "view.css"),
    )
    return Response("".join(_text(*sheet) for sheet in sheets), media_type="text/css")


def _script(request: Request) -> Response:
    return Response(_text("ragforge.viewer", "view.js"), media_type="text/javascript")


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _tagged(request: Request, reply: Response) -> Response:
    """Give a reply the tag of what it says, or say that this is known already."""
    tag = _tag(bytes(reply.body))
    if _is_known(request, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    reply.headers["ETag"] = tag
    return reply


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _is_known(request: Request, tag: str) -> bool:
    known = [item.strip() for item in request.headers.get("if-none-match", "").split(",")]
    return tag in known


def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(request, error.status_code, str(error.detail))


def _bug(request: Request, error: Exception) -> Response:
    return _problem(request, HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug of ragforge")


def _problem(request: Request, status: int, problem: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": problem}, status)
    depth = request.url.path.removeprefix("/").count("/")
    return HTMLResponse(problem_page(HTTPStatus(status).phrase, problem, depth=depth), status)


class ImpatientConnection(H11Protocol):
    """A connection that is closed when its request does not become whole, or its reply lies.

    uvicorn itself waits for ever for either. A reply that is being made is waited for: a report of
    a large dataset takes its time.
    """

    request_s = _REQUEST_S
    unread_s = _UNREAD_S
    most = _MOST_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """Take a connection; beyond the most, the one that has waited longest makes room."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._unsent = 0
        self._unsent_since = self.loop.time()
        self._tick: asyncio.TimerHandle | None = None
        self._look_again()
        open_ones = [
            each
            for each in self.connections
            if isinstance(each, ImpatientConnection) and not each.transport.is_closing()
        ]
        waiting = [each for each in open_ones if each is not self and each.waits]
        if len(open_ones) > self.most and waiting:
            min(waiting, key=lambda each: each._waiting_since).transport.abort()

    @property
    def waits(self) -> bool:
        """Whether no whole request is there that is not answered."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete  # type: ignore[redundant-expr]  # None at first

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        super().connection_lost(exc)

    def _look_again(self) -> None:
        if not self.transport.is_closing():
            self._tick = self.loop.call_later(self.request_s / 10, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent or not unsent:
            self._unsent, self._unsent_since = unsent, now
        idle = self.waits and not unsent and now - self._waiting_since >= self.request_s
        if idle or now - self._unsent_since >= self.unread_s:
            self.transport.abort()
            return
        self._look_again()


def serve(
    roots: Sequence[Path],
    access: SiteAccess,
    render: Render,
    announce: Callable[[SiteAccess], None],
    settings: EvaluateSettings = USUAL,
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        roots: Datasets, or folders of some.
        access: Who is let in; port 0 takes a free one.
        render: See `view_app`.
        announce: Told the address as soon as it answers, with the port that was taken.
        settings: See `view_app`.

    Raises:
        UsageError: The address cannot be listened on.
    """
    with _listening(access.host, access.port) as sock:
        taken = replace(access, port=sock.getsockname()[1])
        with contextlib.suppress(KeyboardInterrupt):
            announce(taken)
            _server(roots, taken, render, settings).run(sockets=[sock])


@contextlib.contextmanager
def serving(
    roots: Sequence[Path],
    render: Render,
    token: str = "",
    labeller: str = "",
    public: PublicAddress | None = None,
    people: Sequence[Person] = (),
    settings: EvaluateSettings = USUAL,
) -> Iterator[SiteAccess]:
    """Serve from a thread, on a free port of 127.0.0.1, until the context ends."""
    with _listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        access = SiteAccess("127.0.0.1", port, token, labeller, public, tuple(people))
        server = _server(roots, access, render, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield access
        finally:
            server.should_exit = True
            thread.join()


def _server(
    roots: Sequence[Path],
    access: SiteAccess,
    render: Render,
    settings: EvaluateSettings = USUAL,
) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            view_app(roots, access, render, settings),
            http=ImpatientConnection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # Python says the address again in the error's own text.
        reason = os.strerror(error.errno) if error.errno else error
        raise UsageError(
            f"--host {host} --port {port}: cannot be listened on: {reason}; "
            "--port 0 takes a free port"
        ) from error
    with sock:
        yield sock
