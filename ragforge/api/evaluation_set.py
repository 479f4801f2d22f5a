"""A set to work with: making one, opening one, and what the commands do with it, as methods.

Each call opens the files anew, so that a set may be worked on by several programs. What a call
takes and returns is told where it is defined: in `jobs`, `measuring` and `contents`.
"""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, TypeAlias, Unpack

from ragforge.api import (
    calibrated,
    contents,
    jobs,
    labelled,
    measuring,
    needed_gate,
    planned,
    plotting,
    prompts,
    schedules,
    sweeping,
)
from ragforge.api.arguments import checked
from ragforge.api.cache import Cache
from ragforge.api.call import CHUNK, GENERATE, Call, Handle, begin, check, dataset_of, every_keyword
from ragforge.api.keywords import ChunkKeywords, EveryKeyword, GenerateKeywords
from ragforge.api.results import Estimate, shown_html
from ragforge.api.running import awaited, each_awaited, plainly
from ragforge.api.sources import Documents, Records, as_documents, as_file, as_optional_file
from ragforge.deferred import dataclass
from ragforge.errors import ShortfallError, UsageError
from ragforge.files.formats.export_note import brings_chunks
from ragforge.files.formats.row_columns import parse_columns
from ragforge.files.manifest import Manifest
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.query_selection import RequestedQueries
from ragforge.pipeline.demo import run_demo
from ragforge.pipeline.generation.generating import GenerationResult, generate_dataset
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.intake.importing import (
    dataset_for,
    dataset_without_chunks,
    import_queries,
    undone_if_failed,
)
from ragforge.pipeline.job import Mode
from ragforge.report.generation import shortfall

Place: TypeAlias = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class AsyncEvaluationSet(Handle):
    """The calls of an `EvaluationSet` to be awaited; iterators are async ones."""

    retrieve = jobs.retrieve
    retrieve_several = jobs.retrieve_several
    judge = jobs.judge
    judge_labels = jobs.judge_labels
    audit_judge = jobs.audit_judge
    judge_canary = jobs.judge_canary
    complete = jobs.complete
    answer = jobs.answer
    grade_answers = jobs.grade_answers
    ground = jobs.ground
    refresh = jobs.refresh
    sweep = sweeping.sweep
    plan = planned.plan
    gate_as_needed = needed_gate.gate_as_needed
    render_prompt = prompts.render_prompt_in

    evaluate = awaited(measuring.evaluate)
    compare = awaited(measuring.compare)
    plan_gate = awaited(planned.plan_gate)
    compare_answers = awaited(measuring.compare_answers)
    gate = awaited(measuring.gate)
    report = awaited(measuring.report)
    plot = awaited(plotting.plot)
    worst = awaited(measuring.worst)
    history = awaited(measuring.history)
    history_by_batch = awaited(measuring.history_by_batch)
    diff = awaited(measuring.diff)
    plan_labels = awaited(calibrated.plan_labels)
    draw_labels = awaited(calibrated.draw_labels)
    write_labelling_page = awaited(labelled.write_labelling_page)
    add_labels = awaited(labelled.add_labels)
    export_labels = awaited(labelled.export_labels)
    labels = awaited(labelled.labels)
    draw_answers = awaited(labelled.draw_answers)
    write_answer_labelling_page = awaited(labelled.write_answer_labelling_page)
    add_answer_labels = awaited(labelled.add_answer_labels)
    calibrate = awaited(calibrated.calibrate)

    queries = each_awaited(contents.queries)
    judgments = each_awaited(contents.judgments)
    chunks = each_awaited(contents.chunks)
    failures = each_awaited(contents.failures)
    rankings = each_awaited(contents.rankings)
    answers = each_awaited(contents.answers)
    answer_grades = each_awaited(contents.answer_grades)
    list_runs = awaited(contents.list_runs)
    remove_run = awaited(contents.remove_run)
    rename_run = awaited(contents.rename_run)
    add_queries = awaited(contents.add_queries)
    add_qrels = awaited(contents.add_qrels)
    add_run = awaited(contents.add_run)
    add_logs = awaited(contents.add_logs)
    rederive = awaited(contents.rederive)
    export = awaited(contents.export)
    validate = awaited(contents.validate)
    accept_edits = awaited(contents.accept_edits)
    export_review = awaited(contents.export_review)
    import_review = awaited(contents.import_review)
    roll_back = awaited(contents.roll_back)
    schedule = awaited(schedules.schedule_of)


@dataclass(frozen=True, slots=True)
class EvaluationSet(Handle):
    """A set of queries with ground truth: a directory, and all that can be done with it.

    Make one with `rf.generate`, `rf.open`, `rf.from_queries`, `rf.from_csv` or `rf.from_beir`.
    """

    retrieve = plainly(jobs.retrieve)
    retrieve_several = plainly(jobs.retrieve_several)
    judge = plainly(jobs.judge)
    judge_labels = plainly(jobs.judge_labels)
    audit_judge = plainly(jobs.audit_judge)
    judge_canary = plainly(jobs.judge_canary)
    complete = plainly(jobs.complete)
    answer = plainly(jobs.answer)
    grade_answers = plainly(jobs.grade_answers)
    ground = plainly(jobs.ground)
    refresh = plainly(jobs.refresh)
    sweep = plainly(sweeping.sweep)
    plan = plainly(planned.plan)
    gate_as_needed = plainly(needed_gate.gate_as_needed)
    render_prompt = plainly(prompts.render_prompt_in)

    evaluate = measuring.evaluate
    compare = measuring.compare
    plan_gate = checked(planned.plan_gate)
    compare_answers = measuring.compare_answers
    gate = measuring.gate
    report = measuring.report
    plot = plotting.plot
    worst = measuring.worst
    history = measuring.history
    history_by_batch = measuring.history_by_batch
    diff = measuring.diff
    plan_labels = checked(calibrated.plan_labels)
    draw_labels = checked(calibrated.draw_labels)
    write_labelling_page = checked(labelled.write_labelling_page)
    add_labels = checked(labelled.add_labels)
    export_labels = checked(labelled.export_labels)
    labels = checked(labelled.labels)
    draw_answers = checked(labelled.draw_answers)
    write_answer_labelling_page = checked(labelled.write_answer_labelling_page)
    add_answer_labels = checked(labelled.add_answer_labels)
    calibrate = checked(calibrated.calibrate)

    queries = checked(contents.queries)
    judgments = checked(contents.judgments)
    chunks = checked(contents.chunks)
    failures = checked(contents.failures)
    rankings = checked(contents.rankings)
    answers = checked(contents.answers)
    answer_grades = checked(contents.answer_grades)
    list_runs = checked(contents.list_runs)
    remove_run = checked(contents.remove_run)
    rename_run = checked(contents.rename_run)
    add_queries = checked(contents.add_queries)
    add_qrels = checked(contents.add_qrels)
    add_run = checked(contents.add_run)
    add_logs = checked(contents.add_logs)
    rederive = checked(contents.rederive)
    export = checked(contents.export)
    validate = checked(contents.validate)
    accept_edits = checked(contents.accept_edits)
    export_review = checked(contents.export_review)
    import_review = checked(contents.import_review)
    roll_back = checked(contents.roll_back)
    schedule = schedules.schedule_of

    @property
    def aio(self) -> AsyncEvaluationSet:
        """The same calls to be awaited."""
        return AsyncEvaluationSet(self.path, self.keywords, self.wanted)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(dataset_of(self).run_names())

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems that have answers."""
        return tuple(dataset_of(self).answer_names())

    @property
    def manifest(self) -> Manifest:
        """What it was made from, digests, models, prompts, and what was spent."""
        return dataset_of(self).manifest

    @property
    def cache(self) -> Cache:
        """The store of its replies."""
        return Cache(dataset_of(self).store_path)

    def with_settings(self, **settings: Unpack[EveryKeyword]) -> "EvaluationSet":
        """Return the set with keywords that hold for all calls that take them.

        Raises:
            TypeError: No call takes such a keyword.
        """
        check("with_settings", settings, every_keyword())
        given: Mapping[str, Any] = settings
        return replace(self, keywords={**self.keywords, **given})

    @checked
    def part(
        self,
        sample: int | None = None,
        *,
        by: str = "",
        split: Literal["dev", "test"] | None = None,
        seed: int = 0,
    ) -> "EvaluationSet":
        """Return the set with a part of its queries to be retrieved, judged, answered and measured.

        What is made for a part carries that. Means of a sample are those of the whole set. Calls
        that are about the whole set, such as `report` and `history`, refuse a part.

        Args:
            sample: So many, drawn from each stratum in proportion; all where None.
            by: What strata are made by, such as difficulty; the category, else the difficulty, as
                far as queries have it, where "".
            split: Only those of this split.
            seed: Equal seeds draw alike.

        Raises:
            UsageError: A value cannot be taken.
        """
        if sample is not None and sample < 1:
            raise UsageError(f"part: sample: expected a whole number from 1, got {sample}")
        if seed < 0:
            raise UsageError(f"part: seed: expected a whole number from 0, got {seed}")
        if by and sample is None:
            raise UsageError(f"part: by {by!r}: goes with a sample, whose strata it makes")
        return replace(self, wanted=RequestedQueries(split, sample, seed, by))

    def _repr_html_(self) -> str:
        return shown_html(head=[f"evaluation set {self.path}", _counts(self)])


def _counts(found: EvaluationSet) -> str:
    """Return what is in a set, in words."""
    manifest = found.manifest
    records = {
        name.removesuffix(".jsonl"): entry.records
        for name, entry in manifest.files.items()
        if name in ("queries.jsonl", "judgments.jsonl", "chunks.jsonl")
    }
    counts = ", ".join(f"{count} {name}" for name, count in records.items())
    runs = ", ".join(found.runs) or "none"
    return f"version {manifest.version}: {counts}; runs: {runs}"


async def generate(
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    allow_shortfall: bool = False,
    **settings: Unpack[GenerateKeywords],
) -> EvaluationSet:
    """Make queries with answers and evidence from documents or chunks, into a set.

    The same call goes on where an earlier one stopped; a larger n adds to the set.

    Args:
        documents: Files, folders and origins such as s3://…, or texts by name.
        out: The directory of the set.
        chunks: Ready-made chunks instead: a file, records or a data frame.
        allow_shortfall: Return the set also where fewer queries than wanted could be made.
        settings: n, model, types, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The directory holds something else, or there is no corpus, or two.
        DataError: The corpus cannot be read, or has no text.
        EndpointError, BudgetError: It was stopped; what was accepted is written.
        ShortfallError: Fewer queries than wanted were made; those are written.
    """
    _check_corpus(documents, chunks)
    with begin(GENERATE, settings, {}) as call:
        result = await _generated(documents, chunks, Path(out), call)
        assert result.report is not None
        short = shortfall(result.report, result.generated.gave_up)
        if short and not allow_shortfall:
            raise ShortfallError(f"{out}: {short}; the set is there: ragforge.open({str(out)!r})")
    return EvaluationSet(Path(out))


async def estimate_generation(
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    **settings: Unpack[GenerateKeywords],
) -> Estimate:
    """Count the calls, tokens and money that `generate` would take, and ask nothing.

    Arguments and errors are those of `generate`.
    """
    _check_corpus(documents, chunks)
    was_there = Path(out).exists()
    try:
        with begin(GENERATE, settings, {}, mode=Mode(dry_run=True)) as call:
            result = await _generated(documents, chunks, Path(out), call)
            return Estimate(result.estimate or {}, tuple(call.notes))
    finally:
        if not was_there and not Path(out, "manifest.json").exists():
            rmtree(out, ignore_errors=True)


async def demo(out: Place = "ragforge-demo", **settings: Unpack[GenerateKeywords]) -> EvaluationSet:
    """Run the whole pipeline on the shipped sample, and return the set: no key, no network.

    The set has generated and hand-made queries, two runs (three where minilm is installed),
    judgments, the graded answers of two systems, and a page report.html.

    Args:
        out: The directory of the set.
        settings: n, types and others; see `ragforge.api.keywords`. No language model is asked.

    Raises:
        UsageError: The directory holds something else.
    """
    with begin(replace(GENERATE, name="demo"), settings, {}) as call:
        await run_demo(Path(out), call.settings, call.observer)
    return EvaluationSet(Path(out))


def open_set(path: Place) -> EvaluationSet:
    """Open a set that is there.

    Args:
        path: Its directory.

    Raises:
        DataError: The directory is missing or holds no set.
    """
    open_dataset(Path(path))
    return EvaluationSet(Path(path))


@checked
def from_queries(
    queries: Records,
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    map: Mapping[str, str] | None = None,
    **settings: Unpack[ChunkKeywords],
) -> EvaluationSet:
    """Make a set of hand-made queries with their relevant passages, if they name some.

    Without documents and chunks, runs of the set hold the texts that a retriever returns; a BEIR
    folder brings its corpus, and an export whose labels name whole documents their chunks.

    Args:
        queries: A path, records or a data frame, in any shape that `ragforge import` takes, such as
            {query_id, query, relevant: [{doc_id, quote, grade}]} or
            {id, query, relevant_doc_ids}.
        documents: What the passages are looked up in: paths, origins, or texts by name.
        out: The directory of the new set.
        chunks: Ready-made chunks instead: a file, records or a data frame.
        made_by: Who graded, for the records: people, or `model:NAME`.
        allow_missing: Keep relevant ids that the corpus does not have, as chunks that no run finds.
        map: Where fields stand that the file calls otherwise: `{"question": "inputs.prompt"}`.
        settings: max_chars, chunker and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The directory holds something else, or there are two corpora.
        DataError: The queries or the corpus do not hold to the format, or passages are missing.
    """
    has_corpus = documents is not None or chunks is not None
    if has_corpus:
        _check_corpus(documents, chunks)
    with (
        undone_if_failed(Path(out)),
        begin(CHUNK, settings, {}) as call,
        as_file(queries, with_nulls=True) as path,
        as_documents(documents) as named,
        as_optional_file(chunks) as chunk_file,
    ):
        brought = path if not has_corpus and brings_chunks(path) else None
        source = ChunkSource(named, chunk_file or brought, call.settings.chunk, call.observer)
        place = Path(out)
        dataset = (
            dataset_for(place, source) if has_corpus or brought else dataset_without_chunks(place)
        )
        import_queries(
            path,
            dataset,
            call.observer,
            made_by=made_by,
            allow_missing=allow_missing,
            columns=parse_columns(map or {}),
        )
    return EvaluationSet(Path(out))


@checked
def from_csv(
    queries: Place,
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    map: Mapping[str, str] | None = None,
    **settings: Unpack[ChunkKeywords],
) -> EvaluationSet:
    """Make a set of a table of queries, such as question,answer,doc_id,quote; see `from_queries`.

    Args:
        queries: A table with a header, .csv or .tsv, also packed, or .xlsx.
        documents: As for `from_queries`, like the rest.
        out: The directory of the new set.
        chunks: Ready-made chunks instead.
        made_by: Who graded: people, or `model:NAME`.
        allow_missing: Keep relevant ids that the corpus does not have.
        map: Where fields stand that the table calls otherwise.
        settings: As for `from_queries`.

    Raises:
        UsageError: The file is no table; or as `from_queries`.
        DataError: As `from_queries`.
    """
    name = Path(queries).name.lower()
    if not any(ending in name for ending in (".csv", ".tsv", ".xlsx")):
        raise UsageError(
            f"from_csv {queries}: expected a .csv, .tsv or .xlsx; from_queries takes others"
        )
    return from_queries(
        queries,
        documents,
        out=out,
        chunks=chunks,
        made_by=made_by,
        allow_missing=allow_missing,
        map=map,
        **settings,
    )


@checked
def from_beir(
    folder: Place,
    *,
    out: Place,
    made_by: str = "",
    allow_missing: bool = False,
    **settings: Unpack[ChunkKeywords],
) -> EvaluationSet:
    """Make a set of a BEIR folder: corpus.jsonl, queries.jsonl and qrels.

    Args:
        folder: The folder.
        out: The directory of the new set.
        made_by: Who graded, for the records: people, or `model:NAME`.
        allow_missing: Keep relevant ids that the corpus does not have.
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The directory holds something else.
        DataError: The folder does not hold to the format.
    """
    _refuse_cutting(settings)
    return from_queries(
        folder,
        out=out,
        chunks=folder,
        made_by=made_by,
        allow_missing=allow_missing,
        **settings,
    )


def _refuse_cutting(settings: ChunkKeywords) -> None:
    """Refuse keywords of cutting documents where chunks are ready-made.

    Raises:
        UsageError: One is given.
    """
    for name in ("max_chars", "chunker", "include", "exclude", "follow_links", "source_code"):
        if settings.get(name) is not None:
            raise UsageError(f"{name}: goes with documents; chunks are taken as they are")


def _check_corpus(documents: object, chunks: object) -> None:
    if (documents is None) == (chunks is None):
        raise UsageError("name the corpus: either documents or chunks")


async def _generated(
    documents: Documents | None, chunks: Records | None, out: Path, call: Call
) -> GenerationResult:
    with as_documents(documents) as named, as_optional_file(chunks) as chunk_file:
        source = ChunkSource(named, chunk_file, call.settings.chunk, call.observer)
        return await generate_dataset(out, source, call.job)
