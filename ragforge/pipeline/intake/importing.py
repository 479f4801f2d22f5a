"""Taking a hand-made set of queries into a dataset: its quotes become judgments of chunks.

What people settled about a query that is there already stays with it.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from ragforge.deferred import dataclass, shutil
from ragforge.errors import DataError, RagforgeError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import LABELS_IN_WORDS
from ragforge.files.formats.export_note import Graded
from ragforge.files.formats.queries import ImportedQueries, read_queries
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.formats.row_columns import NO_COLUMNS, Columns
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset, open_dataset, refuse_other_files
from ragforge.files.set.paths import published
from ragforge.files.text import shown
from ragforge.observe import Event, Observer
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.generation.source import ChunkSource, take_corpus
from ragforge.pipeline.intake.graded_before import GradedBefore, OtherJudges, graded_before
from ragforge.pipeline.intake.imported_truth import ImportedTruth, file_mark
from ragforge.pipeline.intake.query_names import QueryNames
from ragforge.pipeline.intake.reimporting import (
    LabelsBefore,
    Reimported,
    refuse_other_questions,
    reimported,
    replaced_notes,
)
from ragforge.pipeline.intake.reviewing import review_audit
from ragforge.records import Judgment, Query
from ragforge.stages.answer.refusals import abstains

USUAL_THRESHOLD: Final = 2
_BLANK_ANSWERS: Final = frozenset({"n/a", "#n/a", "na", "nan", "null", "-", "--", "tbd", "todo"})
_SCALES_DIFFER: Final = (
    "of its labels and those of the set some tell relevant from not and no more, which is kept as "
    "grade 2, and others are on a scale to 3; are they parts of one file, import it whole"
)


class _Label(NamedTuple):
    """What a person says of a pair."""

    grade: int | None
    relevant: bool | None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What was taken in."""

    dataset: Dataset
    n_queries: int
    """Queries of the file that are new or were replaced."""
    n_judgments: int
    n_lost: int
    """Relevant passages that tell no chunk."""
    n_held: int = 0
    """Queries that people approved, edited or pinned: they stay as they are."""
    n_retired: int = 0
    """Queries that people rejected, or that were taken out: they stay out."""
    n_disagreeing: int = 0
    """Grades that differ from those that people gave before, which stand."""
    n_missing: int = 0
    """Relevant ids that the corpus does not have; they are among the judgments."""
    n_documents: int = 0
    """Judgments of whole documents."""
    n_unknown: int = 0
    """Grades of 0 of chunks that the set does not have; they are left out."""
    n_repeated: int = 0
    """Grades of chunks that another id of the file names too; the highest counts."""
    n_there: int = 0
    """Grades of pairs that people graded before; theirs stand."""
    met: GradedBefore = field(default_factory=GradedBefore)
    """What became of grades of judges."""
    n_reworded: int = 0
    """Queries that the file puts in other words than before."""
    n_others: int = 0
    """Queries whose place other questions of the file took."""
    n_regraded: int = 0
    """People's grades of before that are others in the file."""
    n_dropped: int = 0
    """Labels that the file gave before, and does not give any more."""
    n_standing: int = 0
    """People's grades of the file's queries that the file does not name."""


def import_queries(
    path: Path,
    dataset: Dataset,
    observer: Observer,
    *,
    made_by: str = "",
    allow_missing: bool = False,
    columns: Columns = NO_COLUMNS,
    others: OtherJudges = "refuse",
    is_named: bool = True,
) -> ImportResult:
    """Add the queries of a file to a dataset, with the grades of their relevant passages.

    Of a query that is there already the file replaces what it says: fields, and the grades that it
    gave before or gives now; what it does not say stays, and so do grades that people gave in other
    ways. What a person approved, edited, pinned or rejected in review stays as it is, with its
    grades. A query of another dataset keeps its lineage, its evidence is looked up anew, and grades
    that people gave it here stay. Where the file tells only relevant from not, relevant is grade 2:
    on a scale to 3, grade 1 would say that no part of the answer is there. An id may be that of a
    document, or the end of its path: see `LabelNames`.

    Args:
        path: Queries in any of the shapes that `read_queries` takes.
        dataset: Has chunks.
        observer: Told of passages that are in no chunk, and of what stays.
        made_by: Who graded, for provenance.
        allow_missing: Keep relevant ids and quotes that the corpus does not have: no run can find
            them, and all are measured by them.
        columns: Where fields stand in a file that calls them otherwise.
        others: What becomes of grades that another model gave to the same pairs, and with `replace`
            of other questions under the same ids.
        is_named: Whether labels go that a file of that name gave before and does not give any more;
            records have no name that tells them from others.

    Raises:
        UsageError: There are such, and nobody said what becomes of them, or an id is of another
            question; nothing is written then.
        DataError: The file does not hold to its format, none of its relevant passages is in any
            chunk, or relevant ids are missing and not allowed; nothing is written then.
    """
    before = {old.query_id: old for old in dataset.all_queries()}
    read = _read(path, before, columns)
    imported = read.queries
    threshold = _threshold(read, dataset, str(path))
    truth = ImportedTruth(
        dataset,
        made_by,
        binary=_is_binary(read),
        allow_missing=allow_missing,
        graders=read.note.graders() if read.note else {},
        by_document=read.note.by_document if read.note else (),
        mark=file_mark(path),
        is_named=is_named,
    )
    truth.take_all(imported, str(path), observer)
    labelled = _labelled(dataset)
    unsaid = {item.query.query_id: item.unsaid for item in imported}
    taken = reimported(truth.queries, before, unsaid)
    if others != "replace":
        refuse_other_questions(taken, str(path), dataset.path)
    met = _met(dataset, truth, taken, others, str(path))
    for message in _kept_by_people(taken, dataset.judgments(), truth.judgments):
        observer(Event("note", message=message))
    result = _write(dataset, before, taken, truth, met, observer)
    _keep_reading(read, threshold, dataset, observer)
    unnamed = labelled - {item.query.query_id for item in read.queries}
    unnamed |= _labelled_otherwise(dataset, truth.mark)
    is_graded = any(any(item.grades.values()) for item in read.queries)
    if unnamed and is_graded and _is_binary(read) != dataset.manifest.is_binary:
        observer(Event("note", message=f"{path}: {_SCALES_DIFFER}"))
    _keep_scale(read, unnamed, dataset)
    answers = (*_blank_answers(imported), *_refusals(imported))
    notes = (*read.left_out, *_unread_names(read, truth, path), *answers)
    for message in (*_keep_labels(read, dataset), *notes):
        observer(Event("note", message=message))
    return result


def _unread_names(read: ImportedQueries, truth: ImportedTruth, path: Path) -> Iterator[str]:
    """Yield a note on columns that are not read, and that name documents or chunks of the set.

    None where the file names these under known names: what a system returned may stand beside.
    """
    if any(map(_names_passages, read.queries)):
        return
    has_quotes = any(item.graded_quotes for item in read.queries)
    for name, values in read.not_read.items():
        if level := truth.level_of(values):
            field_name = "doc_id" if has_quotes and level == "document" else "relevant"
            flag = shlex.join(["--map", f"{field_name}={name}"])
            yield f"{path}: {shown(name)} names {level}s; where these hold the answer: {flag}"


def _names_passages(item: ImportedQuery) -> bool:
    """Whether a file says by ids what is relevant to a query, or where its quotes stand."""
    return bool(item.grades or any(one.doc_id or one.chunk_id for one in item.graded_quotes))


def _blank_answers(imported: Sequence[ImportedQuery]) -> Iterator[str]:
    """Yield a note on answers that a spreadsheet has where there is none."""
    found = [
        item.query
        for item in imported
        if (item.query.expected_answer or "").strip().casefold() in _BLANK_ANSWERS
    ]
    if found:
        first = found[0]
        yield (
            f"{plural(len(found), 'expected answer reads', 'expected answers read')} like an empty "
            f"cell, such as {first.expected_answer!r} of query {first.query_id!r}, and answers are "
            "held against it: leave the cell empty, or say that the query is not answerable"
        )


def _refusals(imported: Sequence[ImportedQuery]) -> Iterator[str]:
    """Yield a note on expected answers that only say that there is none."""
    found = [
        item.query
        for item in imported
        if item.query.answerable
        and "answerable" in item.unsaid
        and item.query.expected_answer
        and abstains(item.query.expected_answer, item.query.asked)
    ]
    if found:
        first = found[0]
        yield (
            f"{plural(len(found), 'expected answer says', 'expected answers say')} that there is "
            f"none, such as {shown(first.expected_answer)} of query {first.query_id!r}: where the "
            "documents have no answer, and one should be refused, say so in a column answerable"
        )


def _read(path: Path, there: Mapping[str, Query], columns: Columns) -> ImportedQueries:
    """Return the queries of a file, those without ids under the ids of queries that ask the same.

    Args:
        path: The file.
        there: The queries of the set, by id.
        columns: As for `import_queries`.

    Raises:
        DataError: The file cannot be read, or a question is that of several queries.
    """
    names = QueryNames(there.values())
    read = read_queries(path, make_id=names.id_of, columns=columns)
    names.refuse_several(str(path))
    items = [replace(item, query=names.as_there(item.query)) for item in read.queries]
    return replace(read, queries=items)


def _keep_labels(read: ImportedQueries, dataset: Dataset) -> Iterator[str]:
    """Keep what qrels or an export say of their labels, and yield what deserves a line."""
    manifest, note = dataset.manifest, read.note
    if read.is_pooled and manifest.labels is None:
        dataset.write_manifest(manifest.model_copy(update={"labels": "pooled"}))
        yield LABELS_IN_WORDS["pooled"]
    if note is None:
        return
    if note.labels != "complete" and manifest.labels in (None, "complete"):
        dataset.write_manifest(manifest.model_copy(update={"labels": note.labels}))
        yield LABELS_IN_WORDS[note.labels]
    counts = Counter[str]()
    for of in note.graded_by:
        by = of.provenance
        is_quote_of_people = of.source == "evidence" and by is not None and by.kind == "human"
        if of.source != "human" and not is_quote_of_people:
            who = " ".join(filter(None, (by.kind, by.model))) if by else "who is not named"
            counts[who] += sum(map(len, of.pairs.values()))
    if counts:
        who = ", ".join(f"{name} {n:,}" for name, n in counts.most_common())
        yield f"not graded by people: {who}; they stay the grades of those"


def _labelled(dataset: Dataset) -> set[str]:
    """Return the queries of a set to which something is relevant in any degree."""
    return {old.query_id for old in dataset.each_judgment() if old.grade or old.relevant}


def _labelled_otherwise(dataset: Dataset, mark: str) -> set[str]:
    """Return the queries with labels of people that a file did not give."""
    return {
        label.query_id
        for label in dataset.each_judgment()
        if label.source == "human"
        and (label.provenance is None or label.provenance.protocol != mark)
    }


def _keep_scale(found: ImportedQueries, others: Collection[str], dataset: Dataset) -> None:
    """Keep whether labels tell relevant from not and no more; so they may have been before.

    Args:
        found: What is taken in.
        others: Queries with labels of which it says nothing.
        dataset: Keeps it.
    """
    manifest = dataset.manifest
    is_labelled = any(any(item.grades.values()) for item in found.queries)
    is_binary = _is_binary(found) and (manifest.is_binary or (is_labelled and not others))
    if is_binary != manifest.is_binary:
        dataset.write_manifest(manifest.model_copy(update={"is_binary": is_binary}))


def _keep_reading(
    imported: ImportedQueries, threshold: int | None, dataset: Dataset, observer: Observer
) -> None:
    """Keep the threshold that lists of relevant ids say, and tell how they are read."""
    if imported.note is not None and threshold == USUAL_THRESHOLD:
        return
    if threshold is not None:
        dataset.write_manifest(dataset.manifest.model_copy(update={"rel_threshold": threshold}))
    if threshold is not None or any(item.marks for item in imported.queries):
        observer(Event("note", message=imported.reading))


def _threshold(imported: ImportedQueries, dataset: Dataset, where: str) -> int | None:
    """Return the threshold that the lists of a file say, where it says more than relevant or not.

    Raises:
        DataError: The set has another one.
    """
    if imported.rel_threshold is None or _is_binary(imported):
        return None
    brought = {item.query.query_id for item in imported.queries}
    has_others = any(query.query_id not in brought for query in dataset.all_queries())
    there = dataset.manifest.rel_threshold or USUAL_THRESHOLD
    if has_others and there != imported.rel_threshold:
        raise DataError(
            f"{where}: its lists call grades from {imported.rel_threshold} on relevant, and "
            f"{dataset.path} counts those from {there} on; import it into a set of its own"
        )
    return imported.rel_threshold


def add_logged(
    imported: ImportedQueries,
    dataset: Dataset,
    observer: Observer,
    *,
    made_by: str,
    where: str,
    allow_missing: bool = False,
    graders: Mapping[tuple[str, str], Graded] = MappingProxyType({}),
    by_document: Collection[str] = (),
    others: OtherJudges = "refuse",
) -> ImportResult:
    """Add queries to a dataset beside those that are there, which get grades and nothing else.

    A grade that a person gave before stands.

    Args:
        imported: Queries with what is relevant to them, and how that is to be read.
        dataset: Has chunks.
        observer: Told of passages that are in no chunk, and of grades that differ.
        made_by: Who graded.
        where: Which file they are of, for messages.
        allow_missing: As for `import_queries`.
        graders: Who graded, by query and id of the file, where the file says so; else people did.
        by_document: Queries whose labels name documents, where the file says so.
        others: As for `import_queries`.

    Raises:
        UsageError: As for `import_queries`.
        DataError: None of the relevant passages is in any chunk, or relevant ids are missing and
            not allowed; nothing is written then.
    """
    threshold = _threshold(imported, dataset, where)
    before = {old.query_id: old for old in dataset.all_queries()}
    truth = ImportedTruth(
        dataset,
        made_by,
        binary=_is_binary(imported),
        there=before,
        allow_missing=allow_missing,
        graders=graders,
        by_document=by_document,
    )
    truth.take_all(imported.queries, where, observer)
    differing = n_there = 0
    labelled = _labelled(dataset)
    found = reimported(truth.queries, before)
    met = _met(dataset, truth, found, others, where)
    for old in dataset.judgments():
        pair = (old.query_id, old.chunk_id)
        if old.source == "human" and pair in truth.judgments:
            n_there += 1
            differing += _label_of(truth.judgments.pop(pair)) != _label_of(old)
    if differing:
        n = plural(differing, "grade differs", "grades differ")
        told = f"{n} from those that people gave before, which stand"
        observer(Event("note", message=told))
    _keep_reading(imported, threshold, dataset, observer)
    if not graders or any(of.source == "human" for of in graders.values()):
        _keep_scale(imported, labelled, dataset)
    result = _write(dataset, before, found, truth, met, observer)
    return replace(result, n_disagreeing=differing, n_there=n_there)


def _met(
    dataset: Dataset, truth: ImportedTruth, imported: Reimported, others: OtherJudges, where: str
) -> GradedBefore:
    """Return what becomes of grades of judges, before anything is written.

    Raises:
        UsageError: Another model graded pairs of the file, and nobody said whose grades count.
    """
    labels = LabelsBefore(imported, truth.graded, truth.judgments, truth.mark_before)

    def is_passed_over(old: Judgment) -> bool:
        is_held = old.source != "human" and old.query_id in imported.fixed
        return is_held or labels.fate(old) != "stays"

    return graded_before(dataset, truth.judgments, others, where, is_passed_over)


def _write(
    dataset: Dataset,
    before: Mapping[str, Query],
    imported: Reimported,
    truth: ImportedTruth,
    met: GradedBefore,
    observer: Observer,
) -> ImportResult:
    fresh = {query.query_id for query in imported.queries}
    kept_queries = [old for name, old in before.items() if name not in fresh]
    before_now = LabelsBefore(imported, truth.graded, truth.judgments, truth.mark_before)
    labels = before_now.sorted_out(dataset.judgments())
    human = {(old.query_id, old.chunk_id) for old in labels.kept if old.source == "human"}
    new = {
        pair: judgment
        for pair, judgment in truth.judgments.items()
        if pair not in human and pair[0] not in imported.fixed
    }
    queries = [*kept_queries, *_keeping_facts(imported.queries, before)]
    dataset.write_queries(queries)
    met.write_checks(dataset)
    if labels.returning or imported.replaced:
        checks = labels.return_to_judges(dataset.label_checks())
        dataset.write_label_checks(one for one in checks if one.query_id not in imported.replaced)
    others = [old for old in labels.kept if (old.query_id, old.chunk_id) not in new]
    judgments = [*others, *new.values()]
    dataset.write_judgments(judgments)
    for message in (*replaced_notes(imported, labels), *met.notes()):
        observer(Event("note", message=message))
    _note_level(dataset, judgments)
    audit = review_audit(queries)
    if audit != dataset.manifest.audit:
        dataset.write_manifest(dataset.manifest.model_copy(update={"audit": audit}))
    renew_card(dataset)
    counts = (
        len(imported.queries),
        len(new),
        len(truth.lost),
        len(imported.held),
        len(imported.retired),
    )
    return ImportResult(
        dataset,
        *counts,
        n_missing=len(truth.missing),
        n_documents=sum(item.level == "document" for item in new.values()),
        n_unknown=truth.n_unknown,
        n_repeated=truth.n_repeated,
        met=met,
        n_reworded=len(imported.reworded - imported.replaced),
        n_others=len(imported.replaced),
        n_regraded=labels.n_replaced,
        n_dropped=labels.n_dropped,
        n_standing=labels.n_standing,
    )


def _keeping_facts(queries: Sequence[Query], before: Mapping[str, Query]) -> Sequence[Query]:
    if not before:
        return queries
    from ragforge.stages.answer.facts import keeping_facts

    return keeping_facts(queries, before.values())


def _note_level(dataset: Dataset, judgments: Iterable[Judgment]) -> None:
    """Keep in the manifest whether labels name documents."""
    levels = {item.level for item in judgments if item.source == "human"}
    level = ("both" if "chunk" in levels else "document") if "document" in levels else None
    if level != dataset.manifest.level:
        dataset.write_manifest(dataset.manifest.model_copy(update={"level": level}))


def _kept_by_people(
    imported: Reimported, before: Iterable[Judgment], new: Mapping[tuple[str, str], Judgment]
) -> Iterator[str]:
    """Yield a sentence for each kind of query that the file would change and people settled."""
    graded: dict[str, dict[str, _Label]] = {}
    for old in before:
        if old.source == "human":
            graded.setdefault(old.query_id, {})[old.chunk_id] = _label_of(old)
    others: dict[str, dict[str, _Label]] = {}
    for judgment in new.values():
        if judgment.source == "human":
            others.setdefault(judgment.query_id, {})[judgment.chunk_id] = _label_of(judgment)
    regraded = {name for name in imported.held & others.keys() if others[name] != graded.get(name)}
    differing = imported.differing | regraded
    if differing:
        yield (
            f"{len(differing)} queries that people approved, edited or pinned in review stay as "
            f"they are, with their grades: {_some(differing)}"
        )
    if imported.retired:
        retired = imported.retired
        yield f"{len(retired)} rejected or retired queries stay out: {_some(retired)}"


def _label_of(judgment: Judgment) -> _Label:
    return _Label(judgment.grade, judgment.relevant)


def _some(query_ids: Iterable[str]) -> str:
    return ", ".join(sorted(query_ids)[:3])


@contextmanager
def undone_if_failed(out: Path | None) -> Iterator[None]:
    """Leave nothing behind in a new directory where an import fails; one with files stays."""
    existed = out is not None and out.exists()
    is_new = out is not None and not out.is_symlink() and not (existed and any(out.iterdir()))
    try:
        yield
    except RagforgeError:
        if out is not None and is_new:
            shutil.rmtree(out, ignore_errors=True)
            if existed:
                out.mkdir(exist_ok=True)
        raise


def dataset_for(out: Path, source: ChunkSource) -> Dataset:
    """Return the dataset in a directory, made with these chunks where there is none.

    Raises:
        UsageError: The directory holds a dataset of other chunks, or other files.
        DataError: The chunks cannot be read or written.
    """
    refuse_other_files(out)
    with source.prepared(out / ".ragforge") as chunks:
        dataset = create_dataset(out, {"chunks": chunks.digest})
        take_corpus(dataset, chunks)
    return dataset


def dataset_without_chunks(out: Path) -> Dataset:
    """Return the dataset in a directory, made without chunks where there is none.

    Its runs hold texts, which are judged as they are, or ids that only qrels know.

    Raises:
        UsageError: The directory holds a dataset of chunks, or other files.
        DataError: It cannot be made or read.
    """
    is_there = (out / "manifest.json").exists() or published(out) is not None
    if is_there and open_dataset(out).manifest.made_from.get("chunks"):
        raise UsageError(
            f"{out}: is a set with chunks already; add to it with --dataset {out}, or name another"
        )
    dataset = create_dataset(out, {"chunks": ""})
    if not dataset.chunks_path.exists():
        dataset.write_chunks(())
    return dataset


def _is_binary(imported: ImportedQueries) -> bool:
    """Whether a file tells relevant from not, and no more."""
    graded_by = imported.note.graded_by if imported.note else ()
    is_by_people = all(of.source == "human" for of in graded_by)
    return (
        not imported.is_graded
        and is_by_people
        and all(
            not item.marks
            and all(of.grade in (0, 1) for of in item.graded_quotes)
            and all(grade in (None, 0, 1) for grade in item.grades.values())
            for item in imported.queries
        )
    )
