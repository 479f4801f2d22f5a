"""The page on which a person labels a dataset of the site, and the address its labels go to."""

from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ragforge.calibration.label_tasks import LabelTask, TakenLabels, labelling_order, open_tasks
from ragforge.errors import RagforgeError
from ragforge.files.formats.label_rows import label_row
from ragforge.files.row import load_json
from ragforge.files.set.calibrations import CalibrationFiles, the_calibration
from ragforge.files.set.opening import open_dataset
from ragforge.pipeline.labelling import (
    Wanted,
    label_page,
    labelling,
    labels_of_rows,
    put_into_judgments,
    put_labels,
    remove_label,
)
from ragforge.viewer.pages import problem_page
from ragforge.viewer.policy import with_own_policy
from ragforge.viewer.served import ServedDataset, ServedDatasets

_MOST_BYTES: Final = 16_384
"""Of a label: ids, a digest, a grade."""


def label_routes(datasets: ServedDatasets, labeller: str) -> list[Route]:
    """Return the addresses on which one person labels the datasets of a site."""
    return [
        Route("/datasets/{name}/label", partial(_page, datasets, labeller)),
        Route("/datasets/{name}/labels", partial(_post, datasets, labeller), methods=["POST"]),
    ]


def _page(datasets: ServedDatasets, labeller: str, request: Request) -> Response:
    served = _found(datasets, request)
    wanted = Wanted(labeller, adjudicate="adjudicate" in request.query_params)
    try:
        dataset, files = open_dataset(served.path), _files(served, request)
        found = labelling(dataset, files, wanted)
        page = label_page(dataset, files, found, post=f"/datasets/{served.name}/labels")
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return with_own_policy(HTMLResponse(page), page)


async def _post(datasets: ServedDatasets, labeller: str, request: Request) -> Response:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected JSON")
    parts: list[bytes] = []
    async for part in request.stream():
        parts.append(part)
        if sum(map(len, parts)) > _MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is no label")
    return await run_in_threadpool(_take, datasets, labeller, request, b"".join(parts))


def _take(datasets: ServedDatasets, labeller: str, request: Request, body: bytes) -> Response:
    """Keep a label, or take one back."""
    served = _found(datasets, request)
    try:
        given = load_json(body)
        if not isinstance(given, dict):
            raise HTTPException(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        undo = given.pop("undo", False) is True
        row = replace(label_row("the page", given), labeller=labeller)
        files = _files(served, request)
        if undo:
            task = LabelTask(row.query_id, row.chunk_id, row.text_sha256, row.look)
            return JSONResponse({"removed": remove_label(files, task, labeller)})
        taken = TakenLabels()
        labels = labels_of_rows([row], files.sample().pairs, labeller, taken)
        if not labels:
            reason = ", ".join(taken.left_out) or "nothing is said"
            raise HTTPException(HTTPStatus.BAD_REQUEST, reason)
        put_labels(files, labels, taken, overrule=True)
        if not open_tasks(labelling_order(files.sample()), files.labels(), labeller):
            put_into_judgments(open_dataset(served.path), files, taken)
    except (ValueError, RecursionError, RagforgeError) as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
    return JSONResponse({"kept": len(labels)})


def _found(datasets: ServedDatasets, request: Request) -> ServedDataset:
    served = datasets.find(request.path_params["name"])
    if served is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such dataset (any more)")
    return served


def _files(served: ServedDataset, request: Request) -> CalibrationFiles:
    """Return the calibration that an address names: names are looked up, never made into paths."""
    return the_calibration(open_dataset(served.path), request.query_params.get("sample"))
