"""The pages on which people label a dataset of the site, and where their labels go."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final, get_args
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ragforge.calibration.label_tasks import (
    LabelOrder,
    LabelTask,
    TakenLabels,
    labelling_order,
    open_tasks,
)
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.errors import RagforgeError, UsageError
from ragforge.files.field_names import QUERY_ID
from ragforge.files.formats.label_rows import label_row
from ragforge.files.row import load_json, make_row
from ragforge.files.set.answer_labels import answer_sample, the_answer_calibration
from ragforge.files.set.calibrations import CalibrationFiles, the_calibration
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import open_dataset
from ragforge.pipeline.answer_labelling import (
    SYSTEM,
    answer_label_page,
    answer_labelling,
    labels_of_answers,
    put_answer_labels,
    remove_answer_label,
)
from ragforge.pipeline.labelled_grades import are_in_judgments, put_into_judgments
from ragforge.pipeline.labelling import (
    LabelSelection,
    label_page,
    labelling,
    labels_of_rows,
    put_labels,
    remove_label,
)
from ragforge.viewer.access import READER, WRITER, Writer
from ragforge.viewer.pages import problem_page
from ragforge.viewer.policy import with_own_policy
from ragforge.viewer.served import ServedDataset, ServedDatasets

_MOST_BYTES: Final = 16_384
"""Of a label: ids, a digest, a grade or the facts of an answer."""
_PAGE: Final = "the page"


@dataclass(frozen=True, slots=True)
class _Place:
    """A dataset and a calibration of it that somebody labels."""

    dataset: Dataset
    files: CalibrationFiles
    labeller: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is labelled: pairs, or answers.

    Args:
        post: Last part of the address that takes labels.
        files: Returns the calibration of a name, or the only one.
        page: Returns the page, given the address of its labels.
        keep: Keeps a label, and returns how many it kept and why not.
        take_back: Takes a label back, and returns whether there was one.
    """

    post: str
    files: Callable[[Dataset, str | None], CalibrationFiles]
    page: Callable[[_Place, Request, str], str]
    keep: Callable[[_Place, dict[str, object], TakenLabels], int]
    take_back: Callable[[_Place, dict[str, object]], bool]


def label_routes(datasets: ServedDatasets) -> list[Route]:
    """Return the addresses on which people label the datasets of a site."""
    found = []
    for name, kind in (("label", _PAIRS), ("label-answers", _ANSWERS)):
        page = partial(_page, kind, datasets)
        take = partial(_post, kind, datasets)
        found.append(Route(f"/datasets/{{name}}/{name}", page))
        found.append(Route(f"/datasets/{{name}}/{kind.post}", take, methods=["POST"]))
    return found


def _page(kind: _Kind, datasets: ServedDatasets, request: Request) -> Response:
    served, labeller = found_dataset(datasets, request), require_writer(request)
    sample = request.query_params.get("sample")
    named = f"?sample={quote(sample, safe='')}" if sample else ""
    try:
        place = _place(kind, served, labeller, request)
        page = kind.page(place, request, f"{kind.post}{named}")
    except (RagforgeError, OSError) as error:
        return HTMLResponse(problem_page(served.title, str(error)), HTTPStatus.CONFLICT)
    return with_own_policy(HTMLResponse(page), page)


async def _post(kind: _Kind, datasets: ServedDatasets, request: Request) -> Response:
    body = await sent_json(request, _MOST_BYTES, "label")
    return await run_in_threadpool(_take, kind, datasets, request, body)


async def sent_json(request: Request, most: int, noun: str) -> bytes:
    """Return the body of a request that sends JSON.

    Args:
        request: From a page.
        most: Bytes that are read.
        noun: What is sent.

    Raises:
        HTTPException: It says that it is something else, or is larger.
    """
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected JSON")
    parts: list[bytes] = []
    async for part in request.stream():
        parts.append(part)
        if sum(map(len, parts)) > most:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"that is no {noun}")
    return b"".join(parts)


def _take(kind: _Kind, datasets: ServedDatasets, request: Request, body: bytes) -> Response:
    """Keep a label, or take one back."""
    served, labeller = found_dataset(datasets, request), require_writer(request)
    try:
        given = load_json(body)
        if not isinstance(given, dict):
            raise HTTPException(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        undo = given.pop("undo", False) is True
        place = _place(kind, served, labeller, request)
        if undo:
            return JSONResponse({"removed": kind.take_back(place, given)})
        taken = TakenLabels()
        n_kept = kind.keep(place, given, taken)
    except (ValueError, RecursionError, RagforgeError) as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
    if not n_kept:
        reason = ", ".join(taken.left_out) or "nothing is said"
        raise HTTPException(HTTPStatus.BAD_REQUEST, reason)
    return JSONResponse({"kept": n_kept})


def writer_of(request: Request) -> Writer:
    """Return what whoever asks may do beside reading."""
    found = request.scope.get(WRITER)
    return found if isinstance(found, Writer) else READER


def require_writer(request: Request) -> str:
    """Return the name of who asks.

    Raises:
        HTTPException: It is somebody who only reads.
    """
    name = writer_of(request).name
    if not name:
        raise HTTPException(HTTPStatus.FORBIDDEN, "this token is for reading")
    return name


def found_dataset(datasets: ServedDatasets, request: Request) -> ServedDataset:
    """Return the dataset that an address names: names are looked up, never made into paths.

    Raises:
        HTTPException: There is none.
    """
    served = datasets.find(request.path_params["name"])
    if served is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such dataset (any more)")
    return served


def _place(kind: _Kind, served: ServedDataset, labeller: str, request: Request) -> _Place:
    """Return the calibration that an address names: names are looked up, never made into paths."""
    dataset = open_dataset(served.path)
    return _Place(dataset, kind.files(dataset, request.query_params.get("sample")), labeller)


def _pair_page(place: _Place, request: Request, post: str) -> str:
    order = request.query_params.get("order") or "random"
    if order not in get_args(LabelOrder):
        raise UsageError(f"order: expected one of {', '.join(get_args(LabelOrder))}, got {order!r}")
    wanted = LabelSelection(
        place.labeller,
        adjudicate="adjudicate" in request.query_params,
        order=order,  # type: ignore[arg-type]  # one of LabelOrder
    )
    found = labelling(place.dataset, place.files, wanted)
    name = request.path_params["name"]
    return label_page(place.dataset, place.files, found, post=post, name=name)


def _keep_pair(place: _Place, given: dict[str, object], taken: TakenLabels) -> int:
    row = replace(label_row(_PAGE, given), labeller=place.labeller)
    files = place.files
    pairs = files.sample().pairs
    labels = labels_of_rows(place.dataset, [row], pairs, place.labeller, taken)
    put_labels(files, labels, taken, overrule=True)
    counting = worded_labels(place.dataset, files).now
    if labels and not open_tasks(labelling_order(files.sample()), counting, place.labeller):
        put_into_judgments(place.dataset, files, taken)
    return len(labels)


def _take_pair_back(place: _Place, given: dict[str, object]) -> bool:
    row = label_row(_PAGE, given)
    task = LabelTask(
        row.query_id,
        row.chunk_id,
        row.text_sha256,
        row.look,
        wording_sha256=row.wording_sha256,
    )
    was_there = remove_label(place.files, task, place.labeller)
    if was_there and are_in_judgments(place.dataset, place.files):
        put_into_judgments(place.dataset, place.files, TakenLabels())
    return was_there


def _answer_page(place: _Place, request: Request, post: str) -> str:
    found = answer_labelling(place.dataset, place.files, place.labeller)
    return answer_label_page(place.dataset, place.files, found, post=post)


def _keep_answer(place: _Place, given: dict[str, object], taken: TakenLabels) -> int:
    rows, sample = [make_row(_PAGE, given)], answer_sample(place.files)
    labels = labels_of_answers(rows, place.dataset, sample, place.labeller, taken)
    put_answer_labels(place.files, labels, taken, overrule=True)
    return len(labels)


def _take_answer_back(place: _Place, given: dict[str, object]) -> bool:
    row = make_row(_PAGE, given)
    query_id, system = row.identifier(QUERY_ID), row.identifier(SYSTEM)
    return remove_answer_label(place.files, query_id, system, place.labeller)


_PAIRS: Final = _Kind("labels", the_calibration, _pair_page, _keep_pair, _take_pair_back)
_ANSWERS: Final = _Kind(
    "answer-labels", the_answer_calibration, _answer_page, _keep_answer, _take_answer_back
)
