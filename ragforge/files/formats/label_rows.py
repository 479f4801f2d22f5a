"""Pairs with what people say of them, as files that other tools read and write.

JSON Lines and tables hold a row a label, Label Studio and Argilla a task or record a pair with the
labels in it. None tells what the judge said, nor the stratum or the probability of a pair: the
sample has them.
"""

import csv
import io
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final, Literal, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.field_names import CHUNK_ID, GRADE, Field
from ragforge.files.formats.review_sheet import escaped_cell, plain_cell
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.row import Row, make_row, parse_whole, query_of_pair
from ragforge.files.source_files import open_source

LabelForm = Literal["jsonl", "csv", "label-studio", "argilla"]
LABEL_FORMS: Final[tuple[LabelForm, ...]] = get_args(LabelForm)
SHAPES: Final = (
    "what the label page saved",
    "JSON Lines, CSV or TSV with query_id, chunk_id and grade (and labeller, skipped, seconds)",
    "JSON of Label Studio (JSON or JSON-MIN), with query_id and chunk_id in the data of each task",
    "JSON of Argilla (records.to_json), with query_id and chunk_id in the metadata of each record",
)
LABEL_STUDIO_CONFIG: Final = """<View>
  <Text name="before" value="$before"/>
  <Header value="$query"/>
  <Text name="passage" value="$passage"/>
  <Choices name="grade" toName="passage" choice="single" required="true">
    <Choice value="0" hint="about something else" hotkey="0"/>
    <Choice value="1" hint="on the topic, no part of the answer" hotkey="1"/>
    <Choice value="2" hint="a part of the answer" hotkey="2"/>
    <Choice value="3" hint="answers it on its own" hotkey="3"/>
  </Choices>
</View>
"""
"""What a project of Label Studio needs to show the tasks."""
_BOM = "\ufeff"
_QUESTION: Final = "grade"
_GRADE: Final = GRADE._replace(accepted=(*GRADE.accepted, "relevant"))
_LABELLER: Final = Field("labeller", ("labeller", "labeler", "annotator", "assessor", "by"))
_LOOK: Final = Field("look", ("look",))
_SKIPPED: Final = Field("skipped", ("skipped", "was_cancelled"))
_SECONDS: Final = Field("seconds", ("seconds", "lead_time"))
_AT: Final = Field("at", ("at", "updated_at", "created_at"))
_DECIDES: Final = Field("decides", ("decides",))
_DIGEST: Final = Field("text_sha256", ("text_sha256",))
_WORDING: Final = Field("wording_sha256", ("wording_sha256",))
_QUERY: Final = Field("query", ("query",))
_PASSAGE: Final = Field("passage", ("passage",))
_YES: Final = frozenset({"true", "yes", "1", "x"})


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A look of one person at one pair, given or still to come."""

    query_id: str
    chunk_id: str
    grade: object = None
    """What stands where the grade should be; None where there is nothing."""
    labeller: str = ""
    """"" where it is not said, or nobody looked yet."""
    is_account: bool = False
    """Whether the labeller is told by a number or address of a tool, rather than by name."""
    look: int = 1
    skipped: bool = False
    seconds: float | None = None
    at: str = ""
    decides: bool = False
    text_sha256: str = ""
    wording_sha256: str = ""
    """Of the question, see `wording_digest`."""
    query: str = ""
    """The question as it is shown."""
    before: str = ""
    """Written for who labels, and not read."""
    passage: str = ""
    where: str = ""
    """Where it stood, in messages."""
    is_exported: bool = field(default=False, compare=False)
    """Whether it has the digests that are written here, if only as empty cells: its question and
    passage are then what a labeller was shown."""

    @property
    def is_open(self) -> bool:
        """Whether nothing is said yet."""
        return not self.skipped and self.grade in (None, "")


@dataclass(frozen=True, slots=True)
class WrittenLabels:
    """What a file of labels holds, and what its form cannot."""

    n_labels: int
    n_open: int
    lost: tuple[str, ...]
    """In words, with counts."""


def write_label_rows(path: Path, form: LabelForm, rows: Sequence[LabelRow]) -> WrittenLabels:
    """Write pairs with their labels.

    Args:
        path: The file; replaced where it is there.
        form: Of which tool.
        rows: In the order in which they are to be shown.

    Raises:
        DataError: It cannot be written.
    """
    writers: dict[LabelForm, Callable[[Sequence[LabelRow]], Iterable[str]]] = {
        "jsonl": _json_lines,
        "csv": _table,
        "label-studio": _label_studio,
        "argilla": _argilla,
    }
    write_whole(path, writers[form](rows))
    n_open = sum(row.is_open for row in rows)
    return WrittenLabels(len(rows) - n_open, n_open, tuple(_lost(form, rows)))


def read_label_rows(path: Path) -> list[LabelRow]:
    """Return what a file says, in its order; rows on which nobody said anything, too.

    Raises:
        DataError: The file cannot be read, has none of `SHAPES`, or a row lacks an id.
    """
    rows = [
        found for row in read_rows_of(open_source(path, "labels"), SHAPES) for found in _read(row)
    ]
    if not rows:
        raise none_found(path, "label")
    return rows


def _lost(form: LabelForm, rows: Sequence[LabelRow]) -> Iterator[str]:
    if form in ("jsonl", "csv"):
        return
    counts = {"skips": sum(row.skipped for row in rows)}
    if form == "argilla":
        graded = [row for row in rows if not row.is_open and not row.skipped]
        counts["times spent"] = sum(row.seconds is not None for row in graded)
        counts["dates"] = sum(bool(row.at) for row in graded)
    for what, count in counts.items():
        if count:
            yield f"{count:,} {what}"


def _fields(row: LabelRow) -> dict[str, object]:
    return {
        "query_id": row.query_id,
        "chunk_id": row.chunk_id,
        "look": row.look,
        "labeller": row.labeller,
        "grade": row.grade,
        "skipped": row.skipped,
        "seconds": row.seconds,
        "at": row.at,
        "decides": row.decides,
        "text_sha256": row.text_sha256,
        "wording_sha256": row.wording_sha256,
        "before": row.before,
        "query": row.query,
        "passage": row.passage,
    }


def _json_lines(rows: Sequence[LabelRow]) -> Iterator[str]:
    for row in rows:
        yield f"{json.dumps(_fields(row), ensure_ascii=False)}\n"


def _table(rows: Sequence[LabelRow]) -> Iterator[str]:
    """Yield a table that spreadsheets open as it is: UTF-8 with a mark, all cells quoted."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(_fields(LabelRow("", "")))
    yield f"{_BOM}{buffer.getvalue()}"
    for row in rows:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(escaped_cell(_cell(value)) for value in _fields(row).values())
        yield buffer.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else str(value)


def _by_look(rows: Sequence[LabelRow]) -> Iterator[list[LabelRow]]:
    """Yield the rows of each pair and look together, in the order of the first."""
    gathered: dict[tuple[str, str, int], list[LabelRow]] = {}
    for row in rows:
        gathered.setdefault((row.query_id, row.chunk_id, row.look), []).append(row)
    yield from gathered.values()


def _label_studio(rows: Sequence[LabelRow]) -> Iterator[str]:
    tasks = [
        {"data": _data(looks[0]), "annotations": [_annotation(row) for row in _graded(looks)]}
        for looks in _by_look(rows)
    ]
    yield f"{json.dumps(tasks, ensure_ascii=False, indent=1)}\n"


def _data(row: LabelRow) -> dict[str, object]:
    return {
        "query_id": row.query_id,
        "chunk_id": row.chunk_id,
        "look": row.look,
        "text_sha256": row.text_sha256,
        "wording_sha256": row.wording_sha256,
        "before": row.before,
        "query": row.query,
        "passage": row.passage,
    }


def _annotation(row: LabelRow) -> dict[str, object]:
    """Return a label as Label Studio has it; who gave it stands in `meta`.

    `completed_by` would have to be a user of the server that takes the file in.
    """
    made = {"created_at": row.at} if row.at else {}
    return {
        **made,
        "was_cancelled": False,
        "ground_truth": row.decides,
        "lead_time": row.seconds,
        "result": [
            {
                "from_name": _QUESTION,
                "to_name": "passage",
                "type": "choices",
                "value": {"choices": [str(row.grade)]},
                "meta": {"labeller": row.labeller},
            }
        ],
    }


def _graded(rows: Iterable[LabelRow]) -> Iterator[LabelRow]:
    return (row for row in rows if not row.is_open and not row.skipped)


def _argilla(rows: Sequence[LabelRow]) -> Iterator[str]:
    records = [_argilla_record(looks) for looks in _by_look(rows)]
    yield f"{json.dumps(records, ensure_ascii=False, indent=1)}\n"


def _argilla_record(looks: Sequence[LabelRow]) -> dict[str, object]:
    first = looks[0]
    graded = list(_graded(looks))
    names = {str(_user_id(row.labeller)): row.labeller for row in graded}
    responses = [
        {"value": str(row.grade), "user_id": str(_user_id(row.labeller))} for row in graded
    ]
    texts = {"before": first.before, "query": first.query, "passage": first.passage}
    metadata = {name: value for name, value in _data(first).items() if name not in texts}
    if names:
        metadata["labellers"] = json.dumps(names, ensure_ascii=False, sort_keys=True)
    return {
        "id": json.dumps([first.query_id, first.chunk_id, first.look], ensure_ascii=False),
        "fields": texts,
        "metadata": metadata,
        "suggestions": {},
        "responses": {_QUESTION: responses} if responses else {},
        "vectors": {},
        "status": "completed" if responses else "pending",
        "_server_id": None,
    }


def _user_id(labeller: str) -> uuid.UUID:
    """Return an id for a name: Argilla's users have no others."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"ragforge:labeller:{labeller}")


def label_row(where: str, given: Mapping[str, object]) -> LabelRow:
    """Return what an object says, as a page sends it.

    Raises:
        DataError: It lacks an id, or a field is of another type.
    """
    return _of_row(make_row(where, given))


def _read(row: Row) -> Iterator[LabelRow]:
    """Yield the labels in a row; one that is open where it has none."""
    given = row.given
    if isinstance(given.get("data"), Mapping) and (
        "annotations" in given or "completions" in given
    ):
        yield from _of_task(row.where, given)
    elif isinstance(given.get("fields"), Mapping) and isinstance(given.get("responses"), Mapping):
        yield from _of_record(row.where, given)
    else:
        yield _of_row(row)


def _of_row(row: Row) -> LabelRow:
    if not row.has(CHUNK_ID):
        raise unknown_shape(row.where, SHAPES)
    row.require(_GRADE)
    plain = plain_cell if row.is_of_table else str
    seconds = row.get(_SECONDS)
    look = row.get(_LOOK)
    labeller = row.get(_LABELLER)
    return LabelRow(
        query_id=plain(query_of_pair(row)),
        chunk_id=plain(row.identifier(CHUNK_ID)),
        grade=row.get(_GRADE),
        labeller="" if labeller in (None, "") else plain(row.as_id(labeller, _LABELLER)).strip(),
        look=1 if look in (None, "") else row.as_whole(look, _LOOK),
        skipped=_is_yes(row.get(_SKIPPED)),
        seconds=None if seconds in (None, "") else row.as_number(seconds, _SECONDS),
        at=plain(row.optional_text(_AT) or ""),
        decides=_is_yes(row.get(_DECIDES)),
        text_sha256=plain(row.optional_text(_DIGEST) or ""),
        wording_sha256=plain(row.optional_text(_WORDING) or ""),
        query=plain(query) if isinstance(query := row.get(_QUERY), str) else "",
        passage=plain(passage) if isinstance(passage := row.get(_PASSAGE), str) else "",
        where=row.where,
        is_exported=row.has(_DIGEST, _WORDING),
    )


def _is_yes(value: object) -> bool:
    return value is True or str(value).strip().lower() in _YES


def _of_task(where: str, task: Mapping[str, object]) -> Iterator[LabelRow]:
    """Yield the labels of a task of Label Studio."""
    data = task["data"]
    assert isinstance(data, Mapping)
    open_row = _of_row(make_row(where, {**data, _QUESTION: None}))
    annotations = task.get("annotations") or task.get("completions") or []
    if not isinstance(annotations, list):
        raise DataError(f"{where}: annotations: expected a list")
    for annotation in annotations:
        if not isinstance(annotation, Mapping):
            raise DataError(f"{where}: annotations: expected objects")
        yield _of_annotation(open_row, annotation)
    if not annotations:
        yield open_row


def _of_annotation(task: LabelRow, annotation: Mapping[str, object]) -> LabelRow:
    result = annotation.get("result")
    items = (
        [item for item in result if isinstance(item, Mapping)] if isinstance(result, list) else []
    )
    named = [item for item in items if item.get("from_name") == _QUESTION] or items
    meta = named[0].get("meta") if named else None
    told = meta.get("labeller") if isinstance(meta, Mapping) else None
    seconds = annotation.get("lead_time")
    at = annotation.get("updated_at") or annotation.get("created_at") or ""
    return replace(
        task,
        grade=_chosen(named[0].get("value")) if named else None,
        labeller=str(told) if told else _studio_user(annotation.get("completed_by")),
        is_account=not told,
        skipped=bool(annotation.get("was_cancelled")),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        at=str(at),
        decides=bool(annotation.get("ground_truth")),
    )


def _chosen(value: object) -> object:
    """Return what a choice, a rating or a number of Label Studio says."""
    if not isinstance(value, Mapping):
        return None
    choices = value.get("choices")
    if isinstance(choices, list):
        return choices[0] if len(choices) == 1 else None
    return value.get("rating", value.get("number"))


def _studio_user(user: object) -> str:
    if isinstance(user, Mapping):
        user = user.get("email") or user.get("id")
    return "" if user is None else str(user)


def _of_record(where: str, record: Mapping[str, object]) -> Iterator[LabelRow]:
    """Yield the labels of a record of Argilla."""
    fields, metadata, responses = (
        record.get(name) or {} for name in ("fields", "metadata", "responses")
    )
    if not (isinstance(fields, Mapping) and isinstance(metadata, Mapping)):
        raise DataError(f"{where}: fields, metadata: expected objects")
    assert isinstance(responses, Mapping)
    given = {**{key: value for key, value in fields.items() if value is not None}, **metadata}
    given.pop(_QUESTION, None)
    open_row = _of_row(make_row(where, {**given, _QUESTION: None}))
    names = _names(metadata.get("labellers"))
    values: object = responses.get(_QUESTION) or next(iter(responses.values()), [])
    if not isinstance(values, list) or not all(isinstance(one, Mapping) for one in values):
        raise DataError(f"{where}: responses: expected lists of objects")
    for one in values:
        user = str(one.get("user_id") or "")
        yield replace(
            open_row,
            grade=one.get("value"),
            labeller=names.get(user, user),
            is_account=user not in names,
        )
    if not values:
        yield open_row


def _names(given: object) -> dict[str, str]:
    """Return the names of the users of a record by their ids."""
    if not isinstance(given, str):
        return {}
    try:
        found = json.loads(given)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in found.items()}


def grade_of_row(row: LabelRow, n_grades: int) -> int | None:
    """Return the grade that a row says; None where it is none of the scale."""
    grade = parse_whole(row.grade)
    return grade if grade is not None and 0 <= grade < n_grades else None
