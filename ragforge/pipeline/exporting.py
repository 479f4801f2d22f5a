"""Writing a dataset in the forms of other tools, and saying what they cannot hold."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.chunkings import Chunking, chunkings
from ragforge.evaluating.evaluation_data import reading_in_force, settle_judgments, task_of
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import Settled, failed_by_name, grades_in, of_chunks
from ragforge.evaluating.runs import Task
from ragforge.files.atomic import write_whole
from ragforge.files.formats.export_note import (
    CHUNKS,
    NOTE,
    TREC_QRELS,
    TREC_QUERIES,
    Graded,
    LabelsNote,
    RunLabels,
    grouped,
    json_with_note,
    note_of,
)
from ragforge.files.formats.trec import write_trec_qrels, write_trec_run
from ragforge.files.record_files import write_object, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import DocumentLevel, document_level, whole_documents
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.output_paths import check_outputs
from ragforge.records import Chunk, Query, is_text_id

Form = Literal["trec", "beir", "json"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
_Grades = Mapping[str, Mapping[str, int | None]]


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written."""

    files: tuple[Path, ...]
    lost: tuple[str, ...]
    """What the form cannot hold, with counts; in words."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """What of a dataset is exported."""

    dataset: Dataset
    queries: Sequence[Query]
    """The accepted ones, by id; those that no chunk is to answer too."""
    grades: _Grades
    """The grade that counts, by query and chunk; None where the judge failed."""
    task: Task
    """What is relevant."""
    level: DocumentLevel
    """Folds rankings for queries whose labels name documents."""
    n_folded: int
    """Grades of chunks that are written as those of their documents."""
    note: LabelsNote
    """What the labels do not say by themselves."""
    n_listed: int
    """Chunks that people list as relevant without a grade."""
    cut: Mapping[str, Chunking]
    """What runs with texts that are no chunks are measured on, by name."""

    def each_grade(self) -> Iterator[int | None]:
        """Yield the grades of all pairs."""
        return chain.from_iterable(of_query.values() for of_query in self.grades.values())

    def grades_of(self, run: str) -> _Grades:
        """Return the grades that a run with such texts is measured on."""
        return self.task.of_chunking(self.cut[run]).qrels


def export(dataset: Dataset, form: Form, out: Path) -> ExportResult:
    """Write the accepted queries of a dataset with their grades in the form of other tools.

    Args:
        dataset: Has queries.
        form: `trec`: a folder with qrels.trec, queries.tsv and runs/NAME.trec; qrels/NAME.trec has
            what a run with texts that are no chunks is measured on. `beir`: a folder with
            corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv; texts/NAME/ is one of its own for such
            a run, and chunks.jsonl has the chunks of documents that labels name. `json`: a file
            with `{"queries": [{id, query, relevant_doc_ids, graded_relevance, graded_texts, …}]}`.
        out: The folder or file; files of an earlier export are replaced.

    Raises:
        UsageError: The place is within a dataset, or no place for such a form.
        DataError: There are no queries, an id cannot be written in this form, or a file cannot be
            written.
    """
    queries = dataset.require_queries()
    threshold = dataset.rel_threshold("auto")
    judgments = dataset.judgment_table()
    level = document_level(dataset, judgments)
    settled = settle_judgments(dataset, level, judgments)
    task = task_of(queries, settled, rel_threshold=threshold)
    of_set = of_chunks(settled) if task.text_grades else settled
    judged = {query_id: of_set.get(query_id, {}) for query_id in task.qrels}
    # What is listed and has no grade stands in a list, or is relevant with a grade as others are.
    known = {key: grades_in(of) for key, of in judged.items()} if form == "json" else task.qrels
    grades = {query.query_id: dict[str, int | None]() for query in queries} | dict(known)
    folded = sum(
        pair.query_id in level.query_ids
        for pair in judgments.pairs(lambda of: of.level == "chunk" and of.grade is not None)
    )
    n_listed = sum(
        item.relevant is True and chunk_id not in task.qrels[query_id]
        for query_id, of in judged.items()
        for chunk_id, item in of.items()
    )
    counting = {query_id: settled.get(query_id, {}) for query_id in task.qrels}
    by_document = level.query_ids & {query.query_id for query in queries}
    note = _note(dataset, judgments, counting, task).model_copy(
        update={"by_document": tuple(sorted(by_document))}
    )
    cut = chunkings(dataset, level) if task.text_grades else {}
    contents = _Contents(dataset, queries, grades, task, level, folded, note, n_listed, cut)
    write = {"trec": _write_trec, "beir": _write_beir, "json": _write_json}[form]
    _check_place(out, form)
    return ExportResult(tuple(write(contents, out)), tuple(_lost(contents, form)))


def _note(dataset: Dataset, judgments: JudgmentTable, judged: Settled, task: Task) -> LabelsNote:
    graders = {
        (query_id, chunk_id): Graded(item.source, item.provenance)
        for query_id, of_query in judged.items()
        for chunk_id, item in of_query.items()
        if not item.is_failed
    }
    return LabelsNote(
        rel_threshold=task.rel_threshold,
        labels=reading_in_force(dataset, judgments),
        graded_by=grouped(graders),
    )


def _check_place(out: Path, form: Form) -> None:
    if form == "json":
        check_outputs({"--out": out})
    elif out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: is a file; the form {form} needs a folder")
    else:
        check_outputs({"--out": out / "queries.jsonl"})


def _write_trec(contents: _Contents, out: Path) -> Iterator[Path]:
    yield _made(out / TREC_QRELS)
    write_trec_qrels(out / TREC_QRELS, contents.grades)
    # Readers of such files cut at the first tab and know no quotes.
    lines = (f"{query.query_id}\t{' '.join(query.asked.split())}\n" for query in contents.queries)
    write_whole(_made(out / TREC_QUERIES), lines)
    yield out / TREC_QUERIES
    yield _written_note(contents.note.model_copy(update={"of_runs": _of_runs(contents)}), out)
    wanted = {query.query_id for query in contents.queries}
    for name in contents.dataset.run_names():
        rankings = {
            ranking.query_id: {hit.chunk_id: hit.score for hit in ranking.ranking}
            for ranking in contents.level.rankings(contents.dataset.each_ranking(name))
            if ranking.query_id in wanted
        }
        path = _made(out / "runs" / f"{name}.trec")
        write_trec_run(path, rankings, name)
        yield path
    # Pieces of two splitters in one file would be held against each other.
    for name in contents.cut:
        path = _made(out / "qrels" / f"{name}.trec")
        write_trec_qrels(path, contents.grades_of(name))
        yield path


def _write_beir(contents: _Contents, out: Path) -> Iterator[Path]:
    of_split: dict[str, list[Query]] = {}
    for query in contents.queries:
        of_split.setdefault(query.split or "test", []).append(query)
    _drop_earlier_chunks(out)
    yield from _beir_folder(out, of_split, _corpus(contents), contents.grades)
    if contents.note.by_document and _n_chunks(contents.dataset):
        write_records(out / CHUNKS, contents.dataset.chunks(), lambda chunk: chunk.chunk_id)
        yield out / CHUNKS
    note = contents.note.model_copy(update={"splits": tuple(sorted(of_split))})
    for name, chunking in contents.cut.items():
        folder, grades = out / "texts" / name, contents.grades_of(name)
        yield from _beir_folder(folder, of_split, _texts(contents, chunking), grades)
        yield _written_note(note.of_pairs(grades), folder)
    yield _written_note(note.model_copy(update={"of_runs": _of_runs(contents)}), out)


def _of_runs(contents: _Contents) -> dict[str, RunLabels]:
    """Return what runs with texts of their own are measured on, by name."""
    return {
        name: RunLabels(
            alike=chunking.runs,
            has_chunks=chunking.has_chunks,
            unlike=tuple(sorted(chunking.unlike)),
        )
        for name, chunking in contents.cut.items()
    }


def _with_pairs(contents: _Contents, name: str, labels: RunLabels) -> RunLabels:
    """Return the same with the pairs, but for the one that stands where a query has no others."""
    texts = contents.task.text_grades
    pairs = {
        query_id: tuple(
            sorted(
                chunk_id
                for chunk_id, grade in of_query.items()
                if {**contents.task.qrels[query_id], **texts.get(query_id, {})}[chunk_id] == grade
            )
        )
        for query_id, of_query in contents.grades_of(name).items()
    }
    held = {query_id: chunk_ids for query_id, chunk_ids in pairs.items() if chunk_ids}
    return labels.model_copy(update={"pairs": held})


def _drop_earlier_chunks(out: Path) -> None:
    """Delete chunks that an earlier export wrote; beside another corpus they would be read first.

    Raises:
        DataError: The note of the earlier export does not hold to its format.
    """
    before = note_of(out)
    if before is not None and before.by_document:
        (out / CHUNKS).unlink(missing_ok=True)


def _beir_folder(
    out: Path,
    of_split: Mapping[str, Sequence[Query]],
    corpus: Iterable[Mapping[str, object]],
    grades: _Grades,
) -> Iterator[Path]:
    yield _json_lines(out / "corpus.jsonl", corpus)
    queries = sorted(
        (query for queries in of_split.values() for query in queries),
        key=lambda query: query.query_id,
    )
    questions = ({"_id": query.query_id, "text": query.asked} for query in queries)
    yield _json_lines(out / "queries.jsonl", questions)
    for split, of_this in sorted(of_split.items()):
        rows = (
            [query.query_id, chunk_id, str(grade)]
            for query in of_this
            for chunk_id, grade in sorted(grades.get(query.query_id, {}).items())
            if grade is not None
        )
        header = ["query-id", "corpus-id", "score"]
        yield _table(out / "qrels" / f"{split}.tsv", [header, *rows])


def _texts(contents: _Contents, chunking: Chunking) -> Iterator[dict[str, object]]:
    """Yield what runs that are cut alike retrieved, as a corpus."""
    for chunk in (*contents.dataset.chunks(), *contents.dataset.texts_as_chunks()):
        if chunk.chunk_id in chunking:
            yield _document(chunk, "")


def _written_note(note: LabelsNote, out: Path) -> Path:
    write_object(_made(out / NOTE), note)
    return out / NOTE


def _corpus(contents: _Contents) -> Iterator[dict[str, object]]:
    """Yield the corpus to retrieve from: chunks, documents where labels name them, or both."""
    by_document = contents.note.by_document
    if _names_chunks(contents):
        for chunk in contents.dataset.chunks():
            yield _document(chunk, chunk.heading_path[-1] if chunk.heading_path else "")
    if by_document:
        for document in whole_documents(contents.dataset):
            title = document.heading_path[0] if document.heading_path else ""
            yield {
                "_id": document.doc_id,
                "title": title,
                "text": document.text,
                "metadata": {"source": document.doc_id},
            }


def _names_chunks(contents: _Contents) -> bool:
    """Whether some query is measured on chunks."""
    by_document = frozenset(contents.note.by_document)
    return any(query.query_id not in by_document for query in contents.queries if query.answerable)


def _document(chunk: Chunk, title: str) -> dict[str, object]:
    return {
        "_id": chunk.chunk_id,
        "title": title,
        "text": chunk.text,
        "metadata": {"source": chunk.doc_id},
    }


def _write_json(contents: _Contents, out: Path) -> Iterator[Path]:
    queries = [_query_object(query, contents) for query in contents.queries]
    of_runs = {
        name: _with_pairs(contents, name, labels) for name, labels in _of_runs(contents).items()
    }
    noted = contents.note.model_copy(update={"of_runs": of_runs})
    note = None if noted.is_usual else noted
    write_whole(_made(out), json_with_note(note, {"queries": queries}))
    yield out


def _query_object(query: Query, contents: _Contents) -> dict[str, object]:
    grades = {
        chunk_id: grade
        for chunk_id, grade in sorted(contents.grades[query.query_id].items())
        if grade is not None
    }
    texts = {
        chunk_id: grade
        for chunk_id, grade in sorted(contents.task.text_grades.get(query.query_id, {}).items())
        if grade is not None
    }
    about = {
        "expected_answer": query.expected_answer,
        "difficulty": query.difficulty,
        "type": query.type,
        "category": query.category or None,
    }
    return {
        "id": query.query_id,
        "query": query.asked,
        **{name: value for name, value in about.items() if value is not None},
        **({} if query.answerable else {"answerable": False}),
        "relevant_doc_ids": sorted(contents.task.relevant_in(query.query_id)),
        "graded_relevance": grades,
        **({"graded_texts": texts} if texts else {}),
    }


def _lost(contents: _Contents, form: Form) -> Iterator[str]:
    """Yield a sentence, with a count, for each thing that a form cannot hold of this dataset."""
    for loss in _LOSSES:
        if form in loss.forms and (count := loss.found(contents)):
            yield plural(count, loss.one, loss.several)
    if any(True for _ in contents.each_grade()):
        yield "why it was graded so"


def _n_of_no_run(contents: _Contents) -> int:
    """Return the number of grades of texts that are in the qrels of no run."""
    held = {
        (query_id, chunk_id)
        for name in contents.cut
        for query_id, of_query in contents.grades_of(name).items()
        for chunk_id in of_query
        if is_text_id(chunk_id)
    }
    texts = contents.task.text_grades.items()
    return sum((key, name) not in held for key, of in texts for name in of)


def _n_without_part(contents: _Contents) -> int:
    """Return the number of queries whose part, or that they are of none, no name of a file says.

    A lone test.tsv may be of a set without parts, and comes back as that.
    """
    parts = [query.split for query in contents.queries]
    if "dev" not in parts:
        return sum(part is not None for part in parts)
    return sum(part is None for part in parts)


def _n_beside_chunks(contents: _Contents) -> int:
    """Return the number of documents that a corpus holds beside chunks."""
    if not contents.note.by_document or not _names_chunks(contents):
        return 0
    return len({chunk.doc_id for chunk in contents.dataset.chunks()})


def _n_failed_retrievals(contents: _Contents) -> int:
    """Return the number of failures of runs that are written, on queries that are."""
    wanted = {query.query_id for query in contents.queries}
    failed = failed_by_name(contents.dataset.failures(), "retrieve")
    return sum(len(failed.get(name, set()) & wanted) for name in contents.dataset.run_names())


def _n_chunks(dataset: Dataset) -> int:
    entry = dataset.manifest.files.get("chunks.jsonl")
    return entry.records if entry else 0


def _made(path: Path) -> Path:
    """Make the folder of a file.

    Raises:
        DataError: It cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path.parent}: cannot be made: {error.strerror or error}") from error
    return path


def _json_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    write_whole(_made(path), (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    return path


def _table(path: Path, rows: Iterable[Sequence[str]]) -> Path:
    write_whole(_made(path), map(_line, rows))
    return path


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerow(cells)
    return text.getvalue()


class _Loss(NamedTuple):
    """A thing that some forms cannot hold."""

    found: Callable[[_Contents], int]
    one: str
    several: str
    forms: Sequence[Form] = FORMS


_LOSSES: Final = (
    _Loss(
        lambda contents: len(contents.task.relevant),
        "list of relevant ids beside its grades (P, R, RR, AP and Success go by grades then; "
        "--as json keeps it)",
        "lists of relevant ids beside their grades (P, R, RR, AP and Success go by grades; "
        "--as json keeps them)",
        ("trec", "beir"),
    ),
    _Loss(
        lambda contents: contents.n_listed,
        "relevant id without a grade",
        "relevant ids without a grade",
        ("trec", "beir"),
    ),
    _Loss(
        _n_of_no_run,
        "grade of a text that no run holds",
        "grades of texts that no run holds",
        ("trec", "beir"),
    ),
    _Loss(
        lambda contents: sum(1 for _ in contents.dataset.retrieved_texts()),
        "text of runs that is no chunk of the set (its id is kept)",
        "texts of runs that are no chunks of the set (their ids are kept)",
        ("trec", "json"),
    ),
    _Loss(
        lambda contents: sum(grade is None for grade in contents.each_grade()),
        "judgment without a grade",
        "judgments without a grade",
    ),
    _Loss(
        lambda contents: contents.n_folded,
        "grade of a chunk by itself",
        "grades of chunks by themselves",
    ),
    _Loss(
        lambda contents: sum(len(query.evidence) for query in contents.queries),
        "quote of evidence",
        "quotes of evidence",
    ),
    _Loss(
        lambda contents: len(contents.dataset.answer_names()),
        "system's answers",
        "systems' answers",
    ),
    _Loss(
        lambda contents: sum(query.expected_answer is not None for query in contents.queries),
        "expected answer",
        "expected answers",
        ("trec", "beir"),
    ),
    _Loss(
        lambda contents: sum(len(query.facts) for query in contents.queries),
        "fact of an expected answer",
        "facts of expected answers",
    ),
    _Loss(
        lambda contents: sum(bool(query.history) for query in contents.queries),
        "follow-up's conversation (the question is written as it stands on its own)",
        "follow-ups' conversations (the questions are written as they stand on their own)",
    ),
    _Loss(
        lambda contents: sum(query.split is not None for query in contents.queries),
        "query's part, dev or test",
        "queries' parts, dev or test",
        ("trec", "json"),
    ),
    _Loss(
        _n_without_part,
        "query's part (test.tsv has queries of the part test and those of none)",
        "queries' parts (test.tsv has queries of the part test and those of none)",
        ("beir",),
    ),
    _Loss(
        lambda contents: sum(
            query.expected_behaviour not in ("answer", "abstain") for query in contents.queries
        ),
        "expected behaviour other than an answer or none",
        "expected behaviours other than an answer or none",
    ),
    _Loss(
        lambda contents: sum(
            bool(query.persona) or query.language != "en" for query in contents.queries
        ),
        "query's persona or language",
        "queries' personas and languages",
    ),
    _Loss(
        lambda contents: sum(
            query.reviewed is not None or query.pinned is not None for query in contents.queries
        ),
        "query's review by people",
        "queries' reviews by people",
    ),
    _Loss(
        lambda contents: sum(query.drawn is not None for query in contents.queries),
        "query's draw from a log",
        "queries' draws from a log",
    ),
    _Loss(
        lambda contents: sum(not query.answerable for query in contents.queries),
        "unanswerable query's mark",
        "unanswerable queries' marks",
        ("trec", "beir"),
    ),
    _Loss(
        lambda contents: sum(
            bool(query.difficulty or query.type or query.category) for query in contents.queries
        ),
        "query's category, difficulty or the like",
        "queries' categories, difficulties and the like",
        ("trec", "beir"),
    ),
    _Loss(lambda contents: len(contents.dataset.run_names()), "run", "runs", ("beir", "json")),
    _Loss(
        lambda contents: sum(
            contents.dataset.selection_of(f"runs/{name}.jsonl") is not None
            for name in contents.dataset.run_names()
        ),
        "run's note that it is of a part of the queries (the others count 0 elsewhere)",
        "runs' notes that they are of a part of the queries (the others count 0 elsewhere)",
        ("trec",),
    ),
    _Loss(
        _n_failed_retrievals,
        "query of a run on which its retriever failed (it counts 0 elsewhere)",
        "queries of runs on which their retrievers failed (they count 0 elsewhere)",
        ("trec",),
    ),
    _Loss(
        lambda contents: _n_chunks(contents.dataset),
        "chunk's text",
        "chunks' texts",
        ("trec", "json"),
    ),
    _Loss(
        _n_beside_chunks,
        "document apart from the chunks (corpus.jsonl holds both; search in chunks.jsonl)",
        "documents apart from the chunks (corpus.jsonl holds both; search in chunks.jsonl)",
        ("beir",),
    ),
    _Loss(
        lambda contents: len(contents.note.by_document),
        "query's chunks of the documents that its labels name (import it with --chunks FILE)",
        "queries' chunks of the documents that their labels name (import them with --chunks FILE)",
        ("trec", "json"),
    ),
)
