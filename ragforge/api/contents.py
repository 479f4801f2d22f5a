"""What is in a set: reading it record by record, adding to it, and taking out of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, Unpack

from ragforge.api.call import CHUNK, Handle, begin, dataset_of, part_of, whole_of
from ragforge.api.imported import Taken, logs_taken_in, queries_taken_in
from ragforge.api.keywords import ChunkKeywords, Common
from ragforge.api.outcomes import Counted, Exported, Rederived, Reviewed, Validated
from ragforge.api.sources import (
    Documents,
    Records,
    as_documents,
    as_file,
    as_optional_file,
    is_path,
)
from ragforge.errors import UsageError
from ragforge.files.formats.row_columns import parse_columns
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import roll_back as roll_back_to
from ragforge.pipeline.exporting import FORMS, Form
from ragforge.pipeline.exporting import export as export_of
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.intake.graded_before import OtherJudges
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.intake.log_samples import LogSample
from ragforge.pipeline.intake.logs import Clicks, import_logs
from ragforge.pipeline.intake.review_sheets import Batch, Order, export_sheet
from ragforge.pipeline.intake.reviewing import review_dataset
from ragforge.pipeline.intake.runs_and_qrels import import_qrels, import_run
from ragforge.pipeline.rederiving import rederive_dataset
from ragforge.pipeline.run_list import ListedRun, remove_runs
from ragforge.pipeline.run_list import list_runs as list_runs_of
from ragforge.pipeline.validating import accept
from ragforge.pipeline.validating import validate as validate_set
from ragforge.records import Answer, AnswerGrade, Chunk, Failure, Judgment, Query, Ranking

Reading = Literal["complete", "pooled", "partial"]
"""What a chunk without a label is: not relevant, not looked at, or not known."""


def queries(handle: Handle, *, every: bool = False) -> Iterator[Query]:
    """Yield the accepted queries, sorted by id.

    Args:
        handle: The set.
        every: Those too that are quarantined or retired.
    """
    dataset = part_of(handle)
    yield from dataset.all_queries() if every else dataset.queries()


def judgments(handle: Handle) -> Iterator[Judgment]:
    """Yield the judgments, sorted by query and chunk, one line of the file at a time."""
    yield from _of_part(handle, lambda dataset: dataset.each_judgment())


def chunks(handle: Handle) -> Iterator[Chunk]:
    """Yield the chunks of the corpus, sorted by id."""
    yield from dataset_of(handle).chunks()


def failures(handle: Handle) -> Iterator[Failure]:
    """Yield what failed and has no value."""
    yield from whole_of(handle, "failures").failures()


def rankings(handle: Handle, run: str) -> Iterator[Ranking]:
    """Yield what a run retrieved, query by query.

    Raises:
        DataError: There is no such run.
    """
    yield from _of_part(handle, lambda dataset: dataset.each_ranking(run))


def answers(handle: Handle, system: str) -> Iterator[Answer]:
    """Yield what a system answered.

    Raises:
        DataError: There is no such system.
    """
    yield from _of_part(handle, lambda dataset: dataset.answers(system))


def answer_grades(handle: Handle, system: str) -> Iterator[AnswerGrade]:
    """Yield the grades of a system's answers.

    Raises:
        DataError: There is no such system.
    """
    yield from _of_part(handle, lambda dataset: dataset.answer_grades(system))


def list_runs(handle: Handle) -> tuple[ListedRun, ...]:
    """Return the runs with what is in them, what made them, and whether they are stale.

    Raises:
        DataError: The set cannot be read.
    """
    return tuple(list_runs_of(dataset_of(handle)))


def remove_run(handle: Handle, *runs: str) -> None:
    """Remove runs with their failures; none where one of them is not there.

    Raises:
        DataError: One is not there, or cannot be removed.
    """
    remove_runs(dataset_of(handle), runs)


def rename_run(handle: Handle, run: str, to: str) -> None:
    """Give a run another name.

    Raises:
        DataError: It is not there, or another one has the name.
    """
    dataset_of(handle).rename_run(run, to)


def add_queries(
    handle: Handle,
    queries: Records,
    *,
    labels: Reading | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    map: Mapping[str, str] | None = None,
    others: OtherJudges = "refuse",
    **settings: Unpack[Common],
) -> Counted:
    """Add hand-made queries with their relevant passages, or what they say of those there.

    What they do not say stays as it is, and so do grades that people gave in other ways, and what
    people settled in review. A question without an id is the one of the set that has its words.

    Args:
        handle: The set.
        queries: A path, records or a data frame, in any shape that `ragforge import` takes.
        labels: What a chunk without a label is; as it was where None.
        made_by: Who graded, for the records: people, or `model:NAME`.
        allow_missing: Keep relevant ids that the corpus does not have.
        map: Where fields stand that are called otherwise: `{"question": "inputs.prompt"}`.
        others: What becomes of grades that another model gave to the same pairs: they are replaced
            ("replace"), or stand ("mix"). "replace" is for other questions under the same ids, too.
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: Another model graded some of the pairs, and `others` is "refuse"; or an id is of
            another question, and it is not "replace".
        DataError: They do not hold to the format, or relevant passages are missing.
    """
    with begin(CHUNK, settings, handle.keywords) as call, as_file(queries, with_nulls=True) as path:
        dataset = dataset_of(handle)
        result = import_queries(
            path,
            dataset,
            call.observer,
            made_by=made_by,
            allow_missing=allow_missing,
            columns=parse_columns(map or {}),
            others=others,
            is_named=is_path(queries),
        )
        _keep_labels(dataset, labels)
        return queries_taken_in(result, tuple(call.notes))


def add_qrels(
    handle: Handle,
    qrels: Records,
    *,
    made_by: str = "",
    allow_missing: bool = False,
    grades: Mapping[int, int] | None = None,
    others: OtherJudges = "refuse",
    **settings: Unpack[Common],
) -> Counted:
    """Add the grades of qrels to the queries of the set; grades that people gave before stand.

    Args:
        handle: The set.
        qrels: A path, records or a data frame, in any shape that `rf.evaluate_files` takes.
        made_by: Who graded, for the records: people, or `model:NAME`.
        allow_missing: Keep ids that the corpus does not have.
        grades: What grades of the qrels are on the set's scale from 0 to 3, such as
            `{2: 1, 3: 2, 4: 3}`; others stay as they are. With `{1: 1}` qrels of 0 and 1 are on
            that scale, with `{1: 2}` 1 is relevant.
        others: As for `add_queries`.
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: Another model graded some of the pairs, and `others` is "refuse".
        DataError: They do not hold to the format, are of other queries or on another scale than
            the set, or relevant chunks are missing.
    """
    with (
        begin(CHUNK, settings, handle.keywords) as call,
        as_file(qrels, "qrels", with_nulls=True) as path,
    ):
        taken = import_qrels(
            path,
            dataset_of(handle),
            call.observer,
            made_by=made_by,
            allow_missing=allow_missing,
            grades=grades or {},
            others=others,
        )
        found = Taken()
        found.add_qrels(path, taken)
        return replace(found.counted(), notes=tuple(call.notes))


def add_run(
    handle: Handle,
    run: Records,
    *,
    name: str = "",
    allow_missing: bool = False,
    **settings: Unpack[Common],
) -> Counted:
    """Add a run that something else made; ids that the set does not know are counted.

    Args:
        handle: The set.
        run: A path, records or a data frame, in any shape that `rf.evaluate_files` takes.
        name: Of the run; that of the file where "".
        allow_missing: Take it though the set lacks more than a tenth of what it retrieved.
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        DataError: It does not hold to the format, or is of other queries or chunks.
        UsageError: A retriever made the run of that name.
    """
    with begin(CHUNK, settings, handle.keywords) as call, as_file(run, name or "run") as path:
        found = Taken()
        dataset = dataset_of(handle)
        taken = import_run(path, dataset, call.observer, name, allow_missing=allow_missing)
        found.add_run(taken)
        return replace(found.counted(), notes=tuple(call.notes))


def add_logs(
    handle: Handle,
    logs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    labels: str | PathLike[str] | None = None,
    clicks: Clicks = "ignore",
    as_queries: bool = False,
    sample: int | None = None,
    draw: Literal["frequency", "rarity", "even"] = "frequency",
    seed: int = 0,
    batch: str = "",
    **settings: Unpack[Common],
) -> Counted:
    """Add what users asked: questions with labels become queries, the others tell what is asked.

    Args:
        handle: The set.
        logs: Files.
        labels: A file with what people said of the logged questions, by their id.
        clicks: Whether what was clicked counts as labelled relevant.
        as_queries: Questions without labels become queries too.
        sample: Make so many of them queries, drawn at random.
        draw: Which are preferred.
        seed: Equal seeds draw alike.
        batch: What the drawn queries are called together; the name of the log where "".
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: as_queries and sample are both given, or a number is out of range.
        DataError: A log cannot be read.
    """
    if sample is not None and (as_queries or sample < 1 or seed < 0):
        raise UsageError("sample: expected at least 1, a seed from 0, and no as_queries beside it")
    drawn = None if sample is None else LogSample(n=sample, draw=draw, seed=seed, batch=batch)
    with begin(CHUNK, settings, handle.keywords) as call:
        result = import_logs(
            [Path(logs)] if isinstance(logs, str | PathLike) else [Path(path) for path in logs],
            dataset_of(handle),
            call.observer,
            labels=None if labels is None else Path(labels),
            clicks=clicks,
            unlabelled=drawn or ("add" if as_queries else "keep"),
        )
        return logs_taken_in(result, as_queries=as_queries, notes=tuple(call.notes))


def rederive(
    handle: Handle,
    documents: Documents | None = None,
    *,
    chunks: Records | None = None,
    **settings: Unpack[ChunkKeywords],
) -> Rederived:
    """Put other chunks of the same documents under the set; evidence and grades follow the quotes.

    A query that lost a quote is quarantined, but for one that a person pinned.

    Args:
        handle: The set.
        documents: Files, folders and origins to cut anew, or texts by name.
        chunks: Ready-made chunks instead: a file, records or a data frame.
        settings: max_chars, chunker and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: There is no corpus, or two; or none of the quotes stands in it.
        DataError: The corpus cannot be read, or has no text.
    """
    if (documents is None) == (chunks is None):
        raise UsageError("name the corpus: either documents or chunks")
    dataset = whole_of(handle, "rederive")
    with (
        begin(replace(CHUNK, name="rederive"), settings, handle.keywords) as call,
        as_documents(documents) as named,
        as_optional_file(chunks) as chunk_file,
        ChunkSource(named, chunk_file, call.settings.chunk, call.observer).prepared(
            dataset.store_path.parent
        ) as prepared,
    ):
        found = rederive_dataset(dataset, prepared)
        return Rederived(found, tuple(call.notes))


def export(handle: Handle, form: Form, out: str | PathLike[str]) -> Exported:
    """Write the set in the form of other tools.

    Args:
        handle: The set.
        form: trec or beir (a folder), or json (a file).
        out: The folder, or the file.

    Raises:
        UsageError: There is no such form, or something else is in the place.
        DataError: A file cannot be written.
    """
    if form not in FORMS:
        raise UsageError(f"form {form!r}: there are: {', '.join(FORMS)}")
    found = export_of(whole_of(handle, "export"), form, Path(out))
    return Exported(form, found.files, found.lost)


def validate(handle: Handle) -> Validated:
    """Check a set: formats, ids, digests.

    Raises:
        DataError: There is no set.
    """
    found = validate_set(dataset_of(handle))
    return Validated(tuple(found.problems), tuple(found.notes))


def accept_edits(handle: Handle) -> Validated:
    """Take files that were changed by hand for the set's own, and check what came of it.

    Raises:
        DataError: There is no set.
    """
    found = accept(dataset_of(handle))
    return Validated(tuple(found.problems), tuple(found.notes))


def export_review(
    handle: Handle,
    out: str | PathLike[str],
    *,
    sample: int | None = None,
    reviewer: str = "",
    order: Order = "doubt",
    most: int | None = None,
    part: tuple[int, int] = (1, 1),
) -> Counted:
    """Write a sheet on which people decide about queries: .csv, or one offline page .html.

    Args:
        handle: The set.
        out: A new file.
        sample: Queries drawn at random; 5 % and at least 10 where None.
        reviewer: For whom it is.
        order: The most doubtful first, by document, or at random.
        most: So many from the front of that order.
        part: The k-th of n parts that share no query, for several reviewers at once.

    Raises:
        UsageError: The file exists, or has another ending, or a number is out of its range.
        DataError: There is nothing to decide about.
    """
    rows = export_sheet(
        whole_of(handle, "export_review"),
        Path(out),
        sample,
        " ".join(reviewer.split()),
        Batch(order, most, *part),
    )
    drawn = sum(bool(row.random) for row in rows)
    counts: dict[str, Any] = {"file": str(out), "queries": len(rows), "random": drawn}
    return Counted("to decide about", counts)


def import_review(
    handle: Handle,
    sheet: str | PathLike[str],
    *,
    reviewer: str = "",
    overrule: bool = False,
    dry_run: bool = False,
) -> Reviewed:
    """Take in what people decided; all of it, or nothing.

    Args:
        handle: The set.
        sheet: The filled-in table, or what the page saved.
        reviewer: Who decided; may be "" where the sheet says it.
        overrule: Decide otherwise than another reviewer did.
        dry_run: Check the file, and write nothing.

    Raises:
        UsageError: Nobody says who decided.
        DataError: The sheet cannot be read, or a row cannot be taken.
    """
    dataset = dataset_of(handle)
    result = review_dataset(dataset, Path(sheet), reviewer, overrule=overrule, dry_run=dry_run)
    return Reviewed(result, dry_run)


def roll_back(handle: Handle, version: int) -> int:
    """Publish an earlier version again, and return its number; later ones are kept.

    Raises:
        DataError: There is no such version.
    """
    return int(roll_back_to(handle.path, version).manifest.version)


class _OfQuery(Protocol):
    @property
    def query_id(self) -> str: ...


_Of = TypeVar("_Of", bound=_OfQuery)


def _of_part(handle: Handle, read: Callable[[Dataset], Iterable[_Of]]) -> Iterator[_Of]:
    """Yield those records that are of the part of the queries that is worked with."""
    dataset = part_of(handle)
    chosen = dataset.chosen
    for record in read(dataset):
        if chosen is None or record.query_id in chosen.query_ids:
            yield record


def _keep_labels(dataset: Dataset, labels: Reading | None) -> None:
    if labels is not None:
        dataset.write_manifest(dataset.manifest.model_copy(update={"labels": labels}))
