"""Hand-made query sets of many shapes: queries with what is relevant to them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.formats.export_note import TREC_QRELS, TREC_QUERIES, LabelsNote, note_of
from ragforge.files.formats.query_rows import ImportedQuery, QueryRow, read_query_rows
from ragforge.files.formats.query_words import SAYABLE
from ragforge.files.formats.row_columns import (
    NO_COLUMNS,
    Columns,
)
from ragforge.files.formats.row_relevance import (
    SettledRelevance,
    settle_relevance,
)
from ragforge.files.record_files import explain
from ragforge.files.source_files import has_header, open_source
from ragforge.files.text import read_text, shown, shown_names
from ragforge.records import Query
from ragforge.records.model import pydantic

_SHOWN: Final = 5
_NAMED: Final = 12
"""Columns that a note names."""


@dataclass(frozen=True, slots=True)
class ImportedQueries:
    """The queries of a file, and what counts as relevant in it."""

    queries: list[ImportedQuery]
    """In the order of the file."""
    rel_threshold: int | None = None
    """Lowest grade that is relevant, where lists of relevant ids beside grades say so."""
    reading: str = ""
    """How lists and grades are read together, in a sentence; "" where there are not both."""
    note: LabelsNote | None = None
    """What an export says of its labels; None of files that others made."""
    left_out: tuple[str, ...] = ()
    """What of a folder is not taken, in words."""
    is_graded: bool = False
    """Whether grades are on the scale to 3 although none here is above 1."""
    is_pooled: bool = False
    """Whether qrels say what is not relevant, so that what has no grade was not looked at."""
    not_read: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """First values of columns that are known by no name."""


def read_queries(
    path: Path, make_id: Callable[[str], str], columns: Columns = NO_COLUMNS
) -> ImportedQueries:
    """Return the queries of a file or folder, in its order.

    Rows of a dataset's own `queries.jsonl` (which has `origin` in each) are taken as they are;
    all others become queries of human origin. Fields that are not known are passed over. Ids
    listed as relevant without grade get the lowest grade that counts as relevant in the file, see
    `settle_relevance`. A category is kept as it is; one that is the name of a query type is the
    type, too. Rows that are equal but for their passages are one query. Of a BEIR folder, the
    queries that are judged are taken.

    Args:
        path: A file of one of `query_rows.SHAPES`, a BEIR folder, or another folder with
            queries.jsonl.
        make_id: Makes the id of a query without one from its text. It should fold case and blanks
            and hash the rest, so that the same question gets the same id in every file.
        columns: Where fields stand in rows that call them otherwise; see `parse_columns`.

    Raises:
        DataError: The file cannot be read, has none of the shapes, a row lacks its text or holds
            a value of a wrong type, or an id comes twice with something else.
    """
    note = note_of(path)
    # An export as TREC files has qrels/NAME.trec, too, of runs with texts of their own.
    if (path / TREC_QRELS).is_file():
        return _trec(path, note)
    if (path / "qrels").is_dir():
        return _beir(path, make_id, note)
    if path.is_dir():
        path = path / "queries.jsonl"
    if texts := _numbered_questions(path, columns):
        return ImportedQueries(texts)
    query_rows, repeated, not_read, is_table, as_read = read_query_rows(path, make_id, columns)
    settled = settle_relevance(
        {query_row.imported.query.query_id: query_row.relevance for query_row in query_rows}
    )
    queries = [_settled(row, settled) for row in query_rows]
    threshold, reading = settled.rel_threshold, settled.reading
    if note is not None and not settled.relevant:
        threshold, reading = note.rel_threshold, _as_exported(note)
    unread = _unmapped(not_read, columns)
    labels = _may_be_labels(query_rows, columns)
    notes = (
        *_unread_notes(path, labels),
        *_passed_over_notes(path, query_rows),
        *_repeated_notes(path, repeated),
        *_column_notes(path, [name for name in unread if name not in labels], is_table=is_table),
        *as_read,
    )
    not_taken = {name: not_read[name] for name in unread}
    return ImportedQueries(queries, threshold, reading, note, notes, not_read=not_taken)


def _numbered_questions(path: Path, columns: Columns) -> list[ImportedQuery]:
    """Return the queries of a file of ids and questions with a tab between them and no header.

    Raises:
        DataError: Ids have blanks in them: questions and answers under a header, most likely.
    """
    if columns or not path.is_file() or path.suffix.lower() not in (".tsv", ".txt", ".trec"):
        return []
    source = open_source(path)
    if source.kind != "columns" or source.first.count("\t") != 1 or has_header(source):
        return []
    questions = dict(_trec_lines(path))
    for query_id in questions:
        if " " in query_id:
            name = source.first.partition("\t")[0]
            raise DataError(
                f"{path}: the first line names no column that is known, so each line should be "
                f"an id, a tab and a question; {shown(query_id)} is no id. Where the first line "
                f"is a header, say what it names: --map question={name}"
            )
    return [
        ImportedQuery(_human_query(path, *question), unsaid=SAYABLE)
        for question in questions.items()
    ]


def _column_notes(path: Path, not_read: list[str], *, is_table: bool) -> tuple[str, ...]:
    """Return a note on columns of a table, or keys of objects, that are not read."""
    if not not_read:
        return ()
    what = "columns" if is_table else "fields"
    return (
        f"{path}: {what} that are not read: {shown_names(not_read, _NAMED)}; --map says what one "
        "of them is",
    )


def _unmapped(names: Iterable[str], columns: Columns) -> list[str]:
    """Return the names that `--map` leaves: of others it may name a part."""
    places = columns.values()
    return [
        name for name in names if not any(f"{place}.".startswith(f"{name}.") for place in places)
    ]


def _repeated_notes(path: Path, repeated: list[str]) -> tuple[str, ...]:
    """Return a note on rows that say again what one before them says."""
    if not repeated:
        return ()
    some = ", ".join(where.rpartition(":")[2].strip() for where in repeated[:_SHOWN])
    more = ", …" if len(repeated) > _SHOWN else ""
    n = "1 row repeats a question" if len(repeated) == 1 else f"{len(repeated):,} rows repeat one"
    return (f"{path}: {n} word for word and is taken once: line {some}{more}",)


def _passed_over_notes(path: Path, query_rows: list[QueryRow]) -> tuple[str, ...]:
    """Return a note for each reason for which values of rows are not read."""
    counts = Counter(chain.from_iterable(query_row.passed_over for query_row in query_rows))
    return tuple(
        f"{path}: not read in {n:,} {'query' if n == 1 else 'queries'}: {why}"
        for why, n in counts.items()
    )


def _may_be_labels(query_rows: list[QueryRow], columns: Columns) -> list[str]:
    """Return fields that may hold the labels of a file in which none is known."""
    if not all(query_row.relevance.is_empty for query_row in query_rows):
        return []
    named = chain.from_iterable(query_row.not_read for query_row in query_rows)
    return _unmapped(dict.fromkeys(named), columns)


def _unread_notes(path: Path, names: list[str]) -> tuple[str, ...]:
    """Return a note on fields that may hold labels."""
    if not names:
        return ()
    some = ", ".join(map(shown, names[:_SHOWN]))
    return (
        f"{path}: no row says what is relevant; not read: {some}. Expected a list "
        "relevant_doc_ids, or grades by id as graded_relevance",
    )


def _settled(query_row: QueryRow, settled: SettledRelevance) -> ImportedQuery:
    query_id = query_row.imported.query.query_id
    # Where lists decide, ids without a grade get none.
    grades = query_row.relevance.grades if settled.relevant else settled.grades[query_id]
    texts = query_row.relevance.texts
    return replace(query_row.imported, grades=grades, marks=settled.marks(query_id), texts=texts)


def _beir(folder: Path, make_id: Callable[[str], str], note: LabelsNote | None) -> ImportedQueries:
    from ragforge.files.formats.qrels import beir_files, read_qrels

    splits = beir_files(folder)
    of_split = {split.stem: read_qrels(split) for split in splits}
    qrels = {query_id: of for judged in of_split.values() for query_id, of in judged.items()}
    n_below = sum((grade or 0) < 0 for of in qrels.values() for grade in of.values())
    rows = read_query_rows(folder / "queries.jsonl", make_id).query_rows
    queries = {row.imported.query.query_id: row for row in rows}
    for split in splits:
        for query_id in of_split[split.stem]:
            if query_id not in queries:
                raise DataError(
                    f"{split}: query {shown(query_id)}: expected an id of "
                    f"{folder / 'queries.jsonl'}"
                )
    names = {query_id: name for name, judged in of_split.items() for query_id in judged}
    taken = [
        replace(
            row.imported,
            grades=_judged(qrels.get(query_id, {})),
            unsaid=row.imported.unsaid - {"evidence"},
        )
        for query_id, row in queries.items()
        if query_id in qrels or note is not None
    ]
    if len(splits) > 1 or (note is not None and "dev" in of_split):
        taken = [_in_split(item, names.get(item.query.query_id)) for item in taken]
    left_out = _left_out(folder, splits, len(queries) - len(taken))
    if n_below:
        pairs = (
            "pair left out: its grade is" if n_below == 1 else "pairs left out: their grades are"
        )
        left_out += (f"{n_below:,} {pairs} below 0, which is not judged",)
    if note is None:
        was_pooled = any(has_zeros(of.values()) for of in qrels.values())
        return ImportedQueries(taken, left_out=left_out, is_pooled=was_pooled)
    return ImportedQueries(taken, note.rel_threshold, _as_exported(note), note, left_out)


def has_zeros(grades: Iterable[int | None]) -> bool:
    """Whether grades say of anything that it is not relevant."""
    return any(grade is not None and grade <= 0 for grade in grades)


def _judged(grades: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return grades without those below 0, which say that a pair is not judged."""
    return {name: grade for name, grade in grades.items() if grade is None or grade >= 0}


def _in_split(item: ImportedQuery, split: str | None) -> ImportedQuery:
    known = split if split in ("dev", "test") else None
    return replace(item, query=item.query.model_copy(update={"split": known}))


def _left_out(folder: Path, splits: list[Path], n_unjudged: int) -> tuple[str, ...]:
    """Return notes on what of a BEIR folder is not taken."""
    from ragforge.files.formats.qrels import beir_splits

    others = [path.name for path in beir_splits(folder) if path not in splits]
    gaps = []
    if others:
        names = ", ".join(f"qrels/{name}" for name in others)
        gaps.append(f"{names} left out: only {', '.join(path.name for path in splits)} is taken")
    if n_unjudged:
        of = " and ".join(path.name for path in splits)
        gaps.append(f"{n_unjudged:,} queries of queries.jsonl left out: {of} has no labels of them")
    return tuple(gaps)


def _trec(folder: Path, note: LabelsNote | None) -> ImportedQueries:
    """Return the queries of an export as TREC files, without their labels, and grades."""
    from ragforge.files.formats.qrels import read_qrels

    place = folder / TREC_QUERIES
    qrels = read_qrels(folder / TREC_QRELS)
    texts = dict(_trec_lines(place))
    for query_id in qrels:
        if query_id not in texts:
            raise DataError(
                f"{folder / TREC_QRELS}: query {shown(query_id)}: expected an id of {place}"
            )
    queries = [
        ImportedQuery(
            _human_query(place, query_id, text),
            dict(qrels.get(query_id, {})),
            unsaid=SAYABLE - {"evidence"},
        )
        for query_id, text in texts.items()
    ]
    if note is None:
        return ImportedQueries(queries)
    return ImportedQueries(queries, note.rel_threshold, _as_exported(note), note)


def _trec_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield query id and text of a file of queries: a tab between them, and no quotes.

    Raises:
        DataError: The file cannot be read, or a line has no tab or an id that came before.
    """
    seen = set[str]()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        query_id, tab, text = line.partition("\t")
        if not (query_id and tab and text.strip()) or query_id in seen:
            raise DataError(
                f"{path}:{number}: expected a new query id, a tab and the question, got "
                f"{shown(line)}"
            )
        seen.add(query_id)
        yield query_id, text


def _human_query(path: Path, query_id: str, text: str) -> Query:
    try:
        return Query(query_id=query_id, query=text, origin="human")
    except pydantic.ValidationError as error:
        raise DataError(f"{path}: {explain(error)}") from error


def _as_exported(note: LabelsNote) -> str:
    return f"relevant: grade >= {note.rel_threshold}, as the exported set has it"
