"""Where the fields of a query stand in a row: as somebody says, or as known tools nest them.

LangSmith, promptfoo and MLflow keep questions and answers under `inputs`, `vars`, `outputs` and
`expectations`; tables of theirs call a column `inputs.question`, or hold an object in a cell.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from ragforge.deferred import difflib, pattern
from ragforge.errors import DataError, UsageError
from ragforge.files.field_names import (
    ANSWERABLE,
    ANSWERS,
    CATEGORY,
    CHUNK_OF_ROW,
    DIFFICULTY,
    DOCUMENT_OF_ROW,
    EXPECTED_ANSWER,
    EXPECTED_BEHAVIOUR,
    GRADE,
    GRADES,
    GROUND_TRUTH,
    GROUND_TRUTHS,
    LANGUAGE,
    PERSONA,
    QUERY,
    QUERY_ID,
    QUOTE_OF_ROW,
    REFERENCE_TEXTS,
    RELEVANT,
    SOURCE_CHUNK,
    TEXT,
    TYPE,
    UNANSWERABLE,
    Field,
    goes_by,
    normal_name,
)
from ragforge.files.formats.row_relevance import literal_of
from ragforge.files.row import Row, load_json, make_row
from ragforge.files.text import SHOWN_CHARS, shown, shown_names

Columns: TypeAlias = Mapping[Field, str]
"""Where fields stand: the name of a column or key, with dots between nested keys."""
NO_COLUMNS: Final[Columns] = MappingProxyType({})
_FIELDS: Final = (
    *(QUERY, EXPECTED_ANSWER, QUERY_ID, RELEVANT, GRADES, QUOTE_OF_ROW, DOCUMENT_OF_ROW, GRADE),
    *(DIFFICULTY, TYPE, CATEGORY, PERSONA, LANGUAGE, ANSWERABLE, EXPECTED_BEHAVIOUR),
    *(CHUNK_OF_ROW, UNANSWERABLE),
)
_ALSO_READ: Final = (GROUND_TRUTH, GROUND_TRUTHS, REFERENCE_TEXTS, SOURCE_CHUNK)
"""Under no other names than their own."""
_SURELY_QUESTIONS: Final = Field("query", tuple(x for x in QUERY.accepted if x != "text"))
_OF_QUESTIONS: Final = ("inputs", "vars", "input")
"""Under which objects known tools keep questions, in the normal form of names."""
_OF_TRUTHS: Final = ("referenceoutputs", "reference", "expectations", "expectedoutput")
"""Likewise expected answers; beside one of these, outputs are what a system said."""
_OF_OUTPUTS: Final = ("outputs", "output")
_SOURCE: Final = Field(
    "source",
    (
        *("doc_id", "document_id", "document", "chunk_id", "passage_id", "id", "source"),
        *("url", "uri", "link", "title", "path", "file", "filename", "page", "section"),
    ),
)
"""What names the place that an answer was taken from."""
_ASSERTING: Final = pattern(r"_expected\d{0,3}")
"""Columns of promptfoo, in the normal form of names; each holds an assertion."""
_MISSING: Final = object()
_NEXT_PART: Final = pattern(r",(?=[^,=]+=)")
"""A comma before NAME=; names of columns may hold others."""
_NEAR: Final = 0.8
"""How like names are of which one is a slip of the other: `qoute` and `quote`."""
_SHOWN: Final = 12
_MOST_NAMES: Final = 200
"""Of a row that are looked through for one that was meant."""
_WORDS_OF_A_SENTENCE: Final = 6
"""From which on a name of a column reads like data."""
_DEEPEST: Final = 5
"""Keys in a path that is proposed."""


def parse_columns(given: Iterable[str] | Mapping[str, str]) -> dict[Field, str]:
    """Return where fields stand, of `question=input,answer=outputs.answer` or a mapping.

    Raises:
        UsageError: A part is no NAME=COLUMN, a field is not known, or comes twice.
    """
    columns: dict[Field, str] = {}
    for name, column in _pairs(given):
        field = next((field for field in _FIELDS if goes_by(name, field)), None)
        if field is None:
            raise UsageError(f"--map {name}={column}: {_unknown(name)}")
        if field in columns:
            raise UsageError(f"--map {name}={column}: {columns[field]!r} is {field.name} already")
        other = next((one.name for one, place in columns.items() if place == column), None)
        if other is not None:
            raise UsageError(f"--map {name}={column}: {column!r} is {other} already")
        columns[field] = column
    return columns


def _pairs(given: Iterable[str] | Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        yield from given.items()
        return
    for text in given:
        for part in _NEXT_PART.split(text):
            name, sign, column = (piece.strip() for piece in part.partition("="))
            if not (name and sign and column):
                raise UsageError(
                    f"--map {text}: expected NAME=COLUMN, such as question=input,answer=output"
                )
            yield name, column


def _unknown(name: str) -> str:
    names = {normal_name(one): one for field in _FIELDS for one in field.accepted}
    near = difflib.get_close_matches(normal_name(name), names, n=1)
    hint = f"did you mean {names[near[0]]!r}? " if near else ""
    known = "question, answer, " + ", ".join(field.name for field in _FIELDS[2:])
    return f"no field is called {name!r}; {hint}there are: {known}"


def with_columns(row: Row, columns: Columns = NO_COLUMNS) -> Row:
    """Return a row with its fields under the names that readers know.

    Args:
        row: Of any file.
        columns: Where fields stand; others are looked for by the names that known tools use.

    Raises:
        DataError: A question stands nowhere where `columns` has it, or two columns hold different
            ones and nothing says which counts.
    """
    given = dict(row.given)
    found = {field: _at(row, given, path) for field, path in columns.items()}
    held = {field: of for field, of in _held_by_tools(row).items() if field not in columns}
    row = _with_reference_apart(row)
    if columns and found.get(QUERY) is _MISSING:
        raise DataError(
            f"{row.where}: has no {columns[QUERY]!r}, which --map calls the question; there are: "
            f"{_names(given)}"
        )
    found |= {field: of.value for field, of in held.items()}
    found = {field: value for field, value in found.items() if value is not _MISSING}
    if QUERY not in found:
        _refuse_two_questions(row)
    if not found:
        return _with_listed_answers(row)
    taken = {path for field, path in columns.items() if field in found}
    rest = {
        name: value
        for name, value in row.given.items()
        if name not in taken
        and not any(_is_held(name, value, of) for of in held.values())
        and not any(_stands_for(name, field) for field in found)
    }
    rest |= {_written(field): value for field, value in found.items()}
    return _with_listed_answers(make_row(row.where, rest, is_of_table=row.is_of_table))


def _is_held(name: str, value: object, held: "_Held") -> bool:
    """Whether a column or key is what was read: an object, or the one `NAME.key` of its value."""
    head, dot, _ = name.partition(".")
    is_holder = normal_name(head) == held.holder
    return normal_name(name) == held.holder or bool(is_holder and dot and value == held.value)


def _stands_for(name: str, field: Field) -> bool:
    """Whether a field that is found elsewhere is not to be looked for under a name any more.

    Beside another question, a text is that of a passage.
    """
    return goes_by(name, field) and not (field is QUERY and goes_by(name, TEXT))


def answers_with_places(row: Row) -> list[str] | None:
    """Return the answers of a row of SQuAD as datasets of Hugging Face have it; None of others."""
    answers = row.get(ANSWERS)
    held = literal_of(answers) if isinstance(answers, str) else answers
    texts = held.get("text") if isinstance(held, Mapping) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return [text for text in texts if text.strip()]


def _with_listed_answers(row: Row) -> Row:
    """Return a row with the expected answer that it has in a list, as SQuAD and old ragas do.

    A question without answers in SQuAD is one that its `context` does not answer.
    """
    if row.has(GROUND_TRUTHS) and not row.has(GROUND_TRUTH):
        return _and(row, {GROUND_TRUTH: _truths(row)})
    texts = answers_with_places(row) if row.has(ANSWERS) else None
    if texts is None:
        return row
    if texts:
        return row if row.has(EXPECTED_ANSWER) else _and(row, {EXPECTED_ANSWER: texts[0]})
    given = {name: of for name, of in row.given.items() if not goes_by(name, REFERENCE_TEXTS)}
    without = make_row(row.where, given, is_of_table=row.is_of_table)
    is_said = row.has(ANSWERABLE, UNANSWERABLE)
    return without if is_said else _and(without, {ANSWERABLE: False})


def _and(row: Row, more: Mapping[Field, object]) -> Row:
    given = {**row.given, **{_written(field): value for field, value in more.items()}}
    return make_row(row.where, given, is_of_table=row.is_of_table)


def _truths(row: Row) -> str:
    """Return a list of expected answers as one, a line each, as ragas took it.

    Raises:
        DataError: It holds something else than texts.
    """
    value = row.get(GROUND_TRUTHS)
    if isinstance(value, str):
        held = literal_of(value)
        value = held if isinstance(held, list) else [value]
    if not isinstance(value, list | None) or not all(isinstance(one, str) for one in value or ()):
        raise row.wrong(GROUND_TRUTHS, "a list of texts", value)
    return "\n".join(one for one in value or () if one.strip())


def names_not_read(row: Row) -> list[str]:
    """Return the columns or keys of a row that hold something and are known by no name."""
    names_passages = row.has(CHUNK_OF_ROW, DOCUMENT_OF_ROW, RELEVANT, SOURCE_CHUNK)
    has_question = row.has(_SURELY_QUESTIONS)
    return [
        name
        for name, value in row.given.items()
        if value not in (None, "", [], {})
        and not _holds_assertion(name)
        and not (goes_by(name, ANSWERS) and answers_with_places(row) is not None)
        and not (names_passages if _is_text(name, has_question) else _is_read(name))
    ]


def _is_text(name: str, has_question: bool) -> bool:
    """Whether a column holds the text of a passage: `text` only beside a question."""
    return goes_by(name, TEXT) and (has_question or not goes_by(name, QUERY))


def has_other_assertions(row: Row) -> bool:
    """Whether a row has assertions of promptfoo of which none is an expected answer."""
    asserting = {name: value for name, value in row.given.items() if _holds_assertion(name)}
    return any(asserting.values()) and not _asserted(asserting)


def _holds_assertion(name: str) -> bool:
    return _ASSERTING.fullmatch(normal_name(name)) is not None


def _asserted(given: Mapping[str, object]) -> list[str]:
    """Return the answers that assertions of promptfoo hold."""
    assertions = [
        value
        for name, value in given.items()
        if _holds_assertion(name) or normal_name(name) == "assert"
    ]
    if not assertions:
        return []
    from ragforge.files.formats.promptfoo_assertions import asserted_answers

    return list(asserted_answers(assertions))


@cache
def _is_read(name: str) -> bool:
    return any(goes_by(name, field) for field in (*_FIELDS, *_ALSO_READ))


def refuse_misspelt_quotes(row: Row) -> None:
    """Refuse a row whose document would be labelled whole for a slip in the name of its quote.

    Raises:
        DataError: It has a document, no quote, and a field that is almost called so.
    """
    if row.has(QUOTE_OF_ROW) or not row.has(DOCUMENT_OF_ROW):
        return
    names = {normal_name(name): name for name in QUOTE_OF_ROW.accepted}
    for name, value in row.given.items():
        near = difflib.get_close_matches(normal_name(name), names, n=1, cutoff=_NEAR)
        if near and value not in (None, "", []):
            raise DataError(
                f"{row.where}: {shown(name)}: is no field that is read; did you mean "
                f"{names[near[0]]!r}? Without one the whole document would be labelled"
            )


def lacking_columns(row: Row, columns: Columns) -> Columns:
    """Return those of the columns that a row does not have."""
    given = dict(row.given)
    return {field: path for field, path in columns.items() if _at(row, given, path) is _MISSING}


def no_such_column(row: Row, lacking: Columns) -> str:
    """Return that no row of a file has a column of `--map`, and which there are."""
    field, path = next(iter(lacking.items()))
    names = list(islice(_leaves(row.given), _MOST_NAMES))
    near = difflib.get_close_matches(path, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"{row.where}: no row has {path!r}, which --map calls {field.name}; {hint}there are: "
        f"{_names(row.given)}"
    )


def unknown_columns(row: Row) -> str:
    """Return why no question was found in the first row, and how to say where it stands."""
    example = next(iter(_asking(row.given)), next(_leaves(row.given), "NAME"))
    if row.is_of_table and any(map(_is_sentence, row.given)):
        return (
            f"{row.where}: no column is known to hold questions, and the first line reads like "
            f"data: {_names(row.given)}; put a line of names above it, such as question,answer"
        )
    return (
        f"{row.where}: no column is known to hold questions; there are: {_names(row.given)}; say "
        f"which with --map {shlex.quote(f'question={example[:SHOWN_CHARS]}')}"
    )


def _asking(given: Mapping[str, object]) -> list[str]:
    """Return the columns whose value ends as a question does."""
    return [name for name, value in given.items() if str(value).rstrip().endswith(("?", "\uff1f"))]


def _is_sentence(name: str) -> bool:
    """Return whether what stands for the name of a column is rather a question or an answer."""
    return name.rstrip().endswith("?") or len(name.split()) >= _WORDS_OF_A_SENTENCE


def _written(field: Field) -> str:
    # `query` is what the records say; `doc_id` and the like have one name everywhere.
    return field.accepted[0]


def _has_text(row: Row, field: Field) -> bool:
    value = row.get(field)
    if isinstance(value, str) and row.is_of_table and value.lstrip().startswith("{"):
        return _as_object(value) is None
    return value is not None and not isinstance(value, Mapping)


def _refuse_two_questions(row: Row) -> None:
    """Refuse a row in which two columns may be the question, and differ.

    Raises:
        DataError: It is so.
    """
    valued = {
        name: value
        for name, value in row.given.items()
        if goes_by(name, _SURELY_QUESTIONS) and isinstance(value, str) and value.strip()
    }
    if len(set(valued.values())) > 1:
        first, second = list(valued)[:2]
        raise DataError(
            f"{row.where}: {first!r} and {second!r} may both be the question, and differ; say "
            f"which is with --map question={first} or --map question={second}"
        )


class _Held(NamedTuple):
    value: str
    holder: str
    """The object that has it, in the normal form of names."""


def _held_by_tools(row: Row) -> dict[Field, _Held]:
    """Return the question and the expected answer of a row, as far as objects of tools hold them.

    Outputs are an expected answer where the row has no place for another one: else a system would
    be held against what it said itself.
    """
    found = {}
    if not _has_text(row, QUERY) and (question := _held(row, QUERY, _OF_QUESTIONS)):
        found[QUERY] = question
    if not _has_text(row, GROUND_TRUTH) and (answer := _held_truth(row)):
        found[EXPECTED_ANSWER] = answer
    return found


def _held_truth(row: Row) -> _Held | None:
    is_answered = _has_text(row, EXPECTED_ANSWER)
    truth = _held(row, EXPECTED_ANSWER, _OF_TRUTHS, any_text=not is_answered)
    if truth is not None or _has_text(row, EXPECTED_ANSWER):
        return truth
    if not _has_place_for_truth(row) and (truth := _held(row, EXPECTED_ANSWER, _OF_OUTPUTS)):
        return truth
    asserted = next(iter(_asserted(row.given)), None)
    return None if asserted is None else _Held(asserted, "assert")


def are_outputs_expected(row: Row, columns: Columns) -> bool | None:
    """Return whether the outputs of a row are read as what is expected; None where it has none."""
    if EXPECTED_ANSWER in columns or not _held(row, EXPECTED_ANSWER, _OF_OUTPUTS):
        return None
    truth = None if _has_text(row, GROUND_TRUTH) else _held_truth(row)
    return truth is not None and truth.holder in _OF_OUTPUTS


def _has_place_for_truth(row: Row) -> bool:
    """Whether a row may hold an expected answer elsewhere, be it empty.

    A `reference` of which all fields name a document is none: its text may be an answer.
    """
    heads = {normal_name(name.partition(".")[0]) for name in row.given}
    reference = _object_called(row.given, "reference")
    if reference and all(goes_by(name, _SOURCE) for name in reference):
        heads.discard("reference")
    return any(head in _OF_TRUTHS or goes_by(head, GROUND_TRUTH) for head in heads)


def _with_reference_apart(row: Row) -> Row:
    """Return a row with columns `reference.key` for a `reference` of fields, which is no text.

    What is written as a text may be an expected answer in JSON, but not beside outputs.
    """
    apart = dict[str, object]()
    has_outputs = any(_object_called(row.given, holder) for holder in _OF_OUTPUTS)
    for name, value in row.given.items():
        inner = None
        if normal_name(name) == "reference" and (has_outputs or isinstance(value, Mapping)):
            inner = _as_object(value)
        if inner is not None:
            apart |= {f"{name}.{key}": of for key, of in inner.items()}
        else:
            apart[name] = value
    return row if apart == row.given else make_row(row.where, apart, is_of_table=row.is_of_table)


def _held(row: Row, field: Field, holders: Iterable[str], *, any_text: bool = True) -> _Held | None:
    """Return what one of the objects of a known tool holds as a field; None where none does."""
    for holder in holders:
        inner = _object_called(row.given, holder)
        if not inner:
            continue
        value = make_row(row.where, inner).get(field)
        if isinstance(value, str) and value.strip():
            return _Held(value, holder)
        texts = [one for one in inner.values() if isinstance(one, str) and one.strip()]
        # The one text of a `reference` is mostly the document of it, or its address.
        if any_text and holder != "reference" and len(texts) == 1 == len(inner):
            return _Held(texts[0], holder)
    return None


def _object_called(given: Mapping[str, object], holder: str) -> dict[str, object]:
    """Return the object of a name: nested, in a cell, or in columns `NAME.key`."""
    inner: dict[str, object] = {}
    for name, value in given.items():
        head, dot, rest = name.partition(".")
        if dot and rest and normal_name(head) == holder:
            inner[rest] = value
        elif normal_name(name) == holder:
            inner |= _as_object(value) or {}
    return inner


def _as_object(value: object) -> dict[str, object] | None:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            found = load_json(value)
        except (json.JSONDecodeError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None
    return None


def _at(row: Row, given: Mapping[str, object], path: str) -> object:
    """Return what stands at a path: a column of that name, else nested keys and places in lists."""
    value: object = given
    rest = path
    while rest:
        if isinstance(value, Sequence) and not isinstance(value, str):
            head, _, rest = rest.partition(".")
            if not head.isdecimal() or int(head) >= len(value):
                return _MISSING
            value = value[int(head)]
            continue
        inner = _as_object(value)
        if inner is None:
            return _MISSING
        name = _longest_key(inner, rest)
        if name is None:
            return _MISSING
        value, rest = inner[name], rest[len(name) + 1 :]
    return value


def _longest_key(inner: Mapping[str, object], path: str) -> str | None:
    """Return the key that a path begins with; the longest, as a key may hold dots."""
    begun = (key for key in inner if key and (path == key or path.startswith(f"{key}.")))
    return max(begun, key=len, default=None)


def _leaves(given: Mapping[str, object], before: str = "") -> Iterator[str]:
    """Yield the paths of all values that are no objects and no lists."""
    for name, value in given.items():
        path = f"{before}{name}"
        inner = _as_object(value)
        if isinstance(value, list):
            inner = {str(at): item for at, item in enumerate(value)}
        if inner and path.count(".") < _DEEPEST:
            yield from _leaves(inner, f"{path}.")
        else:
            yield path


def _names(given: Mapping[str, object]) -> str:
    names = list(islice(_leaves(given), _SHOWN + 1))
    return shown_names(names, _SHOWN) or "none"
