"""A dataset is a directory; this is its only door, which `opening` leads to.

Every file is written whole and sorted, and its digest goes into the manifest. Failures of a stage
are replaced by what the stage's next run leaves.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace
from pathlib import Path
from typing import Final, Literal, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import alone_in
from ragforge.files.manifest import (
    FileEntry,
    Manifest,
    RunOrigin,
    Spent,
    digest_file,
)
from ragforge.files.record_files import read_records
from ragforge.files.set.judgment_table import JudgmentTable, read_judgment_table
from ragforge.files.set.paths import home_of, is_published
from ragforge.files.set.query_selection import ChosenQueries, combined, recall
from ragforge.files.set.set_files import SetFiles, VersionRecords
from ragforge.files.set.sorted_records import (
    ChunkTexts,
    each_document,
    each_judgment,
    each_line,
    key_of,
    merged,
    pair_and_judge,
    query_and_chunk,
    slot_and_place,
)
from ragforge.files.text import checked_name
from ragforge.records import (
    Answer,
    AnswerGrade,
    Chunk,
    Failure,
    GenerationReport,
    JudgeAudit,
    Judgment,
    PoolEntry,
    Query,
    Ranking,
    RealQuery,
    Rejected,
    RetrievedText,
    Slot,
    SourceDocument,
    Stage,
    distinct_places,
)
from ragforge.records.model import Model
from ragforge.records.queries import Selection

_TEXTS: Final = "retrieved.jsonl"
_NOWHERE: Final = "(no document of the set)"
"""What stands for the document of a text that is in none."""
_TEXT_ID: Final = re.compile(rb'"(t_[a-z2-7]{16}(?:_[a-z2-7]{8})?)"')

R = TypeVar("R", bound=Model)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset directory.

    Args:
        path: The directory, or one of its versions; made on the first write.
        store_of: Directory whose call store is used; its own where None.
        chosen: The part of its queries that is asked and measured; all where None.

    Raises:
        DataError: A file of the set leads out of its directory: see `require_inside`.
    """

    path: Path
    store_of: Path | None = None
    chosen: ChosenQueries | None = None
    _set: SetFiles = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_set", SetFiles(self.path))

    @property
    def files(self) -> Path:
        """The folder with the files of the version that was published when this was opened.

        Whoever reads through one `Dataset` never sees two versions, not even where its directory
        gets its first ones meanwhile.
        """
        return self._set.folder

    @property
    def home(self) -> Path:
        """The directory with what all versions share: the call store and the history."""
        return self.store_of or home_of(self.path)

    @property
    def is_published(self) -> bool:
        """Whether it is what its directory is read as, and no earlier or rejected version."""
        return is_published(self.path, self.files)

    @property
    def own_place(self) -> Path:
        """The folder of what is never published: replies of models, and what can be made again."""
        return self.home / ".ragforge"

    @property
    def store_path(self) -> Path:
        """Where the replies of models are kept."""
        return self.own_place / "calls.sqlite"

    @property
    def chunks_path(self) -> Path:
        """The file of the chunks."""
        return self.files / "chunks.jsonl"

    @property
    def past(self) -> VersionRecords:
        """What the version tells of those before it."""
        return VersionRecords(self._set)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands on disk."""
        return self._set.manifest

    def alone(self) -> AbstractContextManager[None]:
        """Wait for other commands that change the set's files, and keep them out until the end.

        Whoever writes what depends on what is there reads and writes within this.
        """
        return alone_in(self.files)

    def rel_threshold(self, asked: int | Literal["auto"]) -> int | Literal["auto"]:
        """Return which grades are relevant: as asked for, else as the set's author has it."""
        return (self.manifest.rel_threshold or "auto") if asked == "auto" else asked

    def authors_threshold(self, asked: int | Literal["auto"]) -> int | None:
        """Return the lowest grade that the set's author calls relevant.

        None where the author's lists do not say it, or somebody asks for another threshold.
        """
        return self.manifest.rel_threshold if asked == "auto" else None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, sorted by id."""
        return self._set.each(
            lambda files: read_records(
                files / "chunks.jsonl", Chunk, key=lambda chunk: chunk.chunk_id
            )
        )

    def documents(self) -> Iterator[SourceDocument]:
        """Yield the documents that the chunks were cut from, sorted by id; none if not recorded."""
        path = self.files / "documents.jsonl"
        if path.exists():
            yield from (document for _, document in each_document(path))

    def take_documents(self, path: Path, entry: FileEntry) -> None:
        """Make a file of documents the set's own, as `take_chunks` does."""
        self._set.take("documents.jsonl", path, entry)

    def drop_documents(self) -> None:
        """Forget which documents the chunks were cut from: they were not."""
        old = self.manifest
        (self.files / "documents.jsonl").unlink(missing_ok=True)
        files = {name: entry for name, entry in old.files.items() if name != "documents.jsonl"}
        if old.cutting or files != old.files:
            self.write_manifest(old.model_copy(update={"files": files, "cutting": ""}))

    def queries(self) -> list[Query]:
        """Return the accepted queries, sorted by id; [] where there are none.

        Of a set of which a part was chosen, they are those of that part.
        """
        return self._part(self.accepted_queries())

    def _part(self, queries: list[Query]) -> list[Query]:
        """Return those of some queries that are of the part that was chosen."""
        if self.chosen is None:
            return queries
        return [query for query in queries if query.query_id in self.chosen.query_ids]

    def accepted_queries(self) -> list[Query]:
        """Return the accepted queries, whatever part was chosen, sorted by id."""
        return [query for query in self.all_queries() if query.status == "accepted"]

    def choosing(self, chosen: ChosenQueries | None) -> "Dataset":
        """Return the same set with a part of its queries to be asked and measured."""
        return replace(self, chosen=chosen)

    def chosen_of_run(self, name: str) -> ChosenQueries | None:
        """Return the queries to measure a run on: those chosen, of those it was made for.

        Raises:
            DataError: It was not made for those chosen.
        """
        return combined(self.chosen, self.made_for(_run_file(name)), f"run {name}")

    def chosen_of_answers(self, name: str) -> ChosenQueries | None:
        """Return the queries to measure the answers of a system on; as `chosen_of_run`."""
        return combined(self.chosen, self.made_for(_answers_file(name)), f"answers of {name}")

    def selection_of(self, file: str) -> Selection | None:
        """Return the part of the queries that a file of a run or of answers was made for."""
        path, manifest = self.files / file, self.manifest
        if not any(entry.selection for entry in manifest.files.values()) or not path.is_file():
            return None
        return manifest.selection_of(digest_file(path))

    def made_for(self, file: str) -> ChosenQueries | None:
        """Return the queries that a file of a run or of answers was made for; None for all."""
        selection = self.selection_of(file)
        return recall(self.accepted_queries(), selection) if selection else None

    def require_queries(self) -> list[Query]:
        """Return the accepted queries, sorted by id.

        Raises:
            DataError: There are none.
        """
        return self._part(self.require_accepted_queries())

    def require_accepted_queries(self) -> list[Query]:
        """Return the accepted queries, whatever part was chosen, sorted by id.

        Raises:
            DataError: There are none.
        """
        queries = self.accepted_queries()
        if not queries:
            raise DataError(
                f"{self.path}: has no queries; make some with `ragforge generate`, or bring a "
                "hand-made set in with `ragforge import`"
            )
        return queries

    def all_queries(self) -> list[Query]:
        """Return the queries of any status, sorted by id; [] where there are none yet."""
        return self._set.records("queries.jsonl", Query, lambda query: query.query_id)

    def judgments(self) -> list[Judgment]:
        """Return the judgments, sorted by query and chunk; [] where there are none yet."""
        return self._set.records("judgments.jsonl", Judgment, key_of)

    def each_judgment(self) -> Iterator[Judgment]:
        """Yield the judgments, sorted by query and chunk, one at a time."""
        return self._set.each(lambda files: each_judgment(files / "judgments.jsonl"))

    def judgment_table(self) -> JudgmentTable:
        """Return the judgments in columns, for what needs no words of them."""
        return self._set.steady(lambda files: read_judgment_table(files / "judgments.jsonl"))

    def has_text_grades(self) -> bool:
        """Whether texts are graded that are no chunks of the set; no judgment is parsed."""
        path = self.files / "judgments.jsonl"
        return path.exists() and any(_TEXT_ID.search(line) for _, _, line in each_line(path))

    def label_checks(self) -> list[Judgment]:
        """Return judgments by judges of pairs that people graded, sorted by pair and judge."""
        return self._set.records("label_checks.jsonl", Judgment, pair_and_judge)

    def audit(self) -> JudgeAudit | None:
        """Return the audit of a judge; None where none was made."""
        return self._set.object("judge_audit.json", JudgeAudit)

    def failures(self) -> list[Failure]:
        """Return the failures; [] where nothing failed."""
        return self._set.records("failures.jsonl", Failure, None)

    def run_names(self) -> list[str]:
        """Return the names of the runs, sorted."""
        return self._set.names("runs")

    def run(self, name: str) -> list[Ranking]:
        """Return the rankings of a run, one a query.

        Raises:
            DataError: There is no such run, or its file does not hold to the format.
        """
        return _of_queries(self._set.named("runs", name), Ranking)

    def each_ranking(self, name: str) -> Iterator[Ranking]:
        """Yield the rankings of a run, one at a time.

        Raises:
            DataError: As for `run`.
        """
        return read_records(self._set.named("runs", name), Ranking, key=lambda item: item.query_id)

    def answer_names(self) -> list[str]:
        """Return the names of the systems whose answers are here, sorted."""
        return self._set.names("answers")

    def answers(self, name: str) -> list[Answer]:
        """Return the answers of a system."""
        return _of_queries(self._set.named("answers", name), Answer)

    def answer_grade_names(self) -> list[str]:
        """Return the names of the systems whose answers are graded, sorted."""
        return self._set.names("answer_grades")

    def answer_grades(self, name: str) -> list[AnswerGrade]:
        """Return the grades of a system's answers."""
        return _of_queries(self._set.named("answer_grades", name), AnswerGrade)

    def plan(self) -> list[Slot]:
        """Return the plan of generation, sorted by slot; [] where there is none."""
        return self._set.records("plan.jsonl", Slot, lambda slot: slot.slot_id)

    def rejected(self) -> list[Rejected]:
        """Return the candidates that gates stopped, sorted by slot and place."""
        return self._set.records("rejected.jsonl", Rejected, slot_and_place)

    def pool(self) -> list[PoolEntry]:
        """Return the pools, sorted by query and chunk; [] where none were made."""
        return self._set.records("pool.jsonl", PoolEntry, query_and_chunk)

    def chunk_texts(self, wanted: Collection[str]) -> ChunkTexts:
        """Return where the texts of chunks stand, and of what runs retrieved that is none.

        Raises:
            DataError: A file cannot be read.
        """
        retrieved = self.files / _TEXTS
        beside = [retrieved] if retrieved.exists() else []
        return ChunkTexts([self.chunks_path, *beside], wanted)

    def each_pool_entry(self) -> Iterator[PoolEntry]:
        """Yield what the probes found, in the order of its file."""
        path = self.files / "pool.jsonl"
        if path.exists():
            yield from read_records(path, PoolEntry)

    def generation(self) -> GenerationReport | None:
        """Return the report on generating the set; None where it was not generated."""
        return self._set.object("generation.json", GenerationReport)

    def write_generation(self, report: GenerationReport) -> None:
        """Write what generating the set came to."""
        self._set.write_object("generation.json", report)

    def write_card(self, text: str) -> None:
        """Write the card of the set, its README.md."""
        self._set.write_text("README.md", text)

    def real_queries(self) -> list[RealQuery]:
        """Return users' questions from logs, sorted by text; [] where no log was brought in."""
        return self._set.records("real_queries.jsonl", RealQuery, lambda real: real.query)

    def write_real_queries(self, real: Iterable[RealQuery]) -> None:
        """Write what users asked."""
        self._set.write("real_queries.jsonl", real, lambda one: one.query)

    def retrieved_texts(self) -> Iterator[RetrievedText]:
        """Yield the texts of runs that are no chunks of the set, sorted by id; none usually."""
        return self._set.each(lambda files: _each_text(files / _TEXTS))

    def texts_as_chunks(self) -> Iterator[Chunk]:
        """Yield the texts of runs as chunks at their first place, to be shown as chunks are."""
        return map(text_as_chunk, self.retrieved_texts())

    def write_retrieved_texts(self, texts: Iterable[RetrievedText]) -> None:
        """Write the texts of runs that are no chunks of the set."""
        self._set.write(_TEXTS, texts, lambda text: text.chunk_id)

    def add_retrieved_texts(self, texts: Iterable[RetrievedText], run: str) -> None:
        """Write the texts of a run, which is written next, beside those that are there.

        A text that another run or a context has as well stands where either found it. The caller is
        `alone` until the run is written, too: until then, the texts are those of no run.
        """
        new = {text.chunk_id: text for text in texts}
        if not new:
            return
        with self.alone():
            runs = (self.run_path(name) for name in self.run_names() if name != run)
            others = self._cited_texts((*runs, *self._answer_paths()))
            there = {text.chunk_id: text for text in self.retrieved_texts()}
            joined = {
                chunk_id: _joined(there[chunk_id], text)
                for chunk_id, text in new.items()
                if chunk_id in there and chunk_id in others
            }
            self.write_retrieved_texts((there | new | joined).values())

    def drop_uncited_texts(self) -> None:
        """Forget the texts that neither a run nor the context of an answer has any more."""
        with self.alone():
            if not (self.files / _TEXTS).exists():
                return
            runs = (self.run_path(name) for name in self.run_names())
            cited = self._cited_texts((*runs, *self._answer_paths()))
            texts = list(self.retrieved_texts())
            kept = [text for text in texts if text.chunk_id in cited]
            if not kept:
                self._set.drop(_TEXTS)
            elif len(kept) < len(texts):
                self.write_retrieved_texts(kept)

    def _answer_paths(self) -> Iterator[Path]:
        return (self._set.named("answers", name) for name in self.answer_names())

    def _cited_texts(self, paths: Iterable[Path]) -> set[str]:
        """Return what may be ids of texts in some files; no record is parsed."""
        return {
            chunk_id.decode()
            for path in paths
            for _, _, line in each_line(path)
            for chunk_id in _TEXT_ID.findall(line)
        }

    def write_plan(self, slots: Iterable[Slot]) -> None:
        """Write the plan of generation."""
        self._set.write("plan.jsonl", slots, lambda slot: slot.slot_id)

    def write_rejected(self, rejected: Iterable[Rejected]) -> None:
        """Write the candidates that gates stopped."""
        self._set.write("rejected.jsonl", rejected, slot_and_place)

    def write_pool(self, entries: Iterable[PoolEntry]) -> None:
        """Write what the probes found."""
        self._set.write("pool.jsonl", entries, query_and_chunk)

    def write_chunks(self, chunks: Iterable[Chunk]) -> None:
        """Write the chunks."""
        self._set.write("chunks.jsonl", chunks, lambda chunk: chunk.chunk_id)

    def take_chunks(self, path: Path, entry: FileEntry) -> None:
        """Make a file of chunks, sorted by id, the set's own; it is moved."""
        self._set.take("chunks.jsonl", path, entry)

    def write_queries(self, queries: Iterable[Query]) -> None:
        """Write all queries."""
        self._set.write("queries.jsonl", queries, lambda query: query.query_id)

    def write_judgments(self, judgments: Iterable[Judgment]) -> None:
        """Write all judgments."""
        self._set.write("judgments.jsonl", judgments, key_of)

    def add_judgments(self, new: Iterator[Judgment]) -> None:
        """Write judgments, sorted by query and chunk, beside those that are there; see `merged`."""
        with self.alone():
            self._set.write_sorted("judgments.jsonl", merged(self.each_judgment(), new))

    def put_judgments(self, judgments: Iterable[Judgment]) -> None:
        """Write all judgments, one at a time; sorted by query and chunk."""
        self._set.write_sorted("judgments.jsonl", judgments)

    def put_pool(self, entries: Iterable[PoolEntry]) -> None:
        """Write what the probes found, one at a time; sorted by query and chunk."""
        self._set.write_sorted("pool.jsonl", entries)

    def write_label_checks(self, checks: Iterable[Judgment]) -> None:
        """Write all label checks; in no measure, and beside the grades of people."""
        self._set.write("label_checks.jsonl", checks, pair_and_judge)

    def write_audit(self, audit: JudgeAudit) -> None:
        """Write the audit of a judge; an older one is replaced."""
        self._set.write_object("judge_audit.json", audit)

    def write_run(
        self, name: str, rankings: Iterable[Ranking], origin: RunOrigin | None = None
    ) -> None:
        """Write a run, with what it was made on; an older one of that name is replaced.

        Where a part of the queries is chosen, it was made for that part.
        """
        file = _run_file(checked_name(name))
        self._set.write(file, rankings, lambda item: item.query_id, origin, self._selection)

    def run_path(self, name: str) -> Path:
        """Return the file of a run.

        Raises:
            DataError: There is none.
        """
        return self._set.named("runs", name)

    def remove_run(self, name: str) -> None:
        """Remove a run with its failures; its evaluations stay in the history.

        The failures go last: without them, a query that failed would count as one that found
        nothing.

        Raises:
            DataError: There is neither a file nor a failure of that name.
            UsageError: It is no name of a run.
        """
        with self.alone():
            if name not in self.run_names() and not self._has_failures(checked_name(name)):
                self._set.named("runs", name)
            self._set.drop(_run_file(name))
            self.replace_failures("retrieve", (), lambda key: key.startswith(f"{name}/"))
            self.drop_uncited_texts()

    def rename_run(self, name: str, to: str) -> None:
        """Give a run another name, and its failures with it; its evaluations keep the old one.

        A kill on the way leaves both, whole.

        Raises:
            DataError: There is no such run, or one of the new name.
            UsageError: The new name is not fit for a file.
        """
        with self.alone():
            self._set.named("runs", name)
            if checked_name(to) in self.run_names() or self._has_failures(to):
                raise DataError(
                    f"{self.path}: has a run {to!r}; remove it first with "
                    f"`ragforge runs rm --dataset {self.path} {to}`"
                )
            of_run = f"{name}/"
            renamed = [
                failure.model_copy(update={"key": f"{to}/{failure.key.removeprefix(of_run)}"})
                for failure in self.failures()
                if failure.what == "retrieve" and failure.key.startswith(of_run)
            ]
            self.replace_failures("retrieve", renamed, lambda key: key.startswith(f"{to}/"))
            self._set.copy(_run_file(name), _run_file(to))
            self.remove_run(name)

    def _has_failures(self, name: str) -> bool:
        """Whether a retriever of that name failed on a query."""
        of_run = f"{name}/"
        return any(
            failure.what == "retrieve" and failure.key.startswith(of_run)
            for failure in self.failures()
        )

    def write_answers(self, name: str, answers: Iterable[Answer]) -> None:
        """Write the answers of a system; older ones of that name are replaced."""
        file = _answers_file(checked_name(name))
        self._set.write(file, answers, lambda item: item.query_id, selection=self._selection)

    def write_answer_grades(self, name: str, grades: Iterable[AnswerGrade]) -> None:
        """Write the grades of a system's answers; older ones of that name are replaced."""
        self._set.write(
            f"answer_grades/{checked_name(name)}.jsonl", grades, lambda item: item.query_id
        )

    def replace_failures(
        self, what: Stage, failures: Iterable[Failure], tried: Callable[[str], bool]
    ) -> None:
        """Put the failures of a stage's run in the place of the older ones of the units it tried.

        Args:
            what: The stage.
            failures: What failed now.
            tried: Whether a key was tried by this run; other failures stay.
        """
        with self.alone():
            kept = [old for old in self.failures() if not (old.what == what and tried(old.key))]
            latest = {(item.what, item.key): item for item in (*kept, *failures)}
            everything = latest.values()
            if everything or (self.files / "failures.jsonl").exists():
                self._set.write("failures.jsonl", everything, lambda item: (item.what, item.key))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest as given."""
        self._set.write_manifest(manifest)

    def note(
        self,
        *,
        models: Collection[str] = (),
        prompts: Mapping[str, str] | None = None,
        spent: Spent | None = None,
    ) -> None:
        """Add models and prompts to the manifest, and set what was spent in all."""
        with self.alone():
            self.write_manifest(self.manifest.noting(models, prompts or {}, spent))

    @property
    def _selection(self) -> Selection | None:
        return self.chosen.selection if self.chosen else None

    def changed_by_hand(self, name: str) -> bool:
        """Whether a file differs from what ragforge last wrote."""
        return self._set.changed_by_hand(name)


def text_as_chunk(text: RetrievedText) -> Chunk:
    """Return a text as a chunk at its first place, to be shown and judged as chunks are."""
    place = text.places[0] if text.places else None
    doc_id = place.doc_id if place else next(iter(text.doc_ids), _NOWHERE)
    start, end = (place.start, place.end) if place else (0, 0)
    return Chunk(chunk_id=text.chunk_id, doc_id=doc_id, text=text.text, start=start, end=end)


def _run_file(name: str) -> str:
    return f"runs/{name}.jsonl"


def _joined(old: RetrievedText, new: RetrievedText) -> RetrievedText:
    """Return a text with the places of both."""
    places = distinct_places((*old.places, *new.places))
    doc_ids = () if places else tuple(sorted({*old.doc_ids, *new.doc_ids}))
    return new.model_copy(
        update={
            "text": min(old.text, new.text),
            "places": places,
            "likeness": new.likeness if new.places else old.likeness,
            "doc_ids": doc_ids,
        }
    )


def _each_text(path: Path) -> Iterator[RetrievedText]:
    if path.exists():
        for text in read_records(path, RetrievedText, key=lambda text: text.chunk_id):
            # Older versions wrote one for each way in which runs gave a place.
            places = distinct_places(text.places)
            is_same = len(places) == len(text.places)
            yield text if is_same else text.model_copy(update={"places": places})


def _answers_file(name: str) -> str:
    return f"answers/{name}.jsonl"


def _of_queries(path: Path, record: type[R]) -> list[R]:
    return list(read_records(path, record, key=lambda item: str(getattr(item, "query_id", None))))
