"""Making a set to work with, or opening one: each can be awaited."""

from os import PathLike
from pathlib import Path
from typing import TypeAlias, Unpack

from ragforge.api.call import CHUNK, GENERATE, Call, begin
from ragforge.api.estimates import Estimate
from ragforge.api.evaluation_set import EvaluationSet
from ragforge.api.keywords import ChunkKeywords, GenerateKeywords
from ragforge.api.sources import Documents, Records, as_documents, as_file, as_optional_file
from ragforge.errors import ShortfallError, UsageError
from ragforge.files.set.opening import open_dataset
from ragforge.pipeline.generation.generating import GenerationResult, generate_dataset
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.intake.importing import dataset_for, import_queries, undone_if_failed
from ragforge.pipeline.job import Mode
from ragforge.report.generation import shortfall

Place: TypeAlias = str | PathLike[str]


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
    with begin(GENERATE, settings, {}, mode=Mode(dry_run=True)) as call:
        result = await _generated(documents, chunks, Path(out), call)
        return Estimate(result.estimate or {}, tuple(call.notes))


def open_set(path: Place) -> EvaluationSet:
    """Open a set that is there.

    Args:
        path: Its directory.

    Raises:
        DataError: The directory is missing or holds no set.
    """
    open_dataset(Path(path))
    return EvaluationSet(Path(path))


def from_queries(
    queries: Records,
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    **settings: Unpack[ChunkKeywords],
) -> EvaluationSet:
    """Make a set of hand-made queries with their relevant passages.

    Args:
        queries: A path, records or a data frame, in any shape that `ragforge import` takes, such as
            {query_id, query, relevant: [{doc_id, quote, grade}]} or
            {id, query, relevant_doc_ids}.
        documents: What the passages are looked up in: paths, origins, or texts by name.
        out: The directory of the new set.
        chunks: Ready-made chunks instead: a file, records or a data frame.
        made_by: Who graded, for the records.
        allow_missing: Keep relevant ids that the corpus does not have, as chunks that no run finds.
        settings: max_chars, chunker and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The directory holds something else, or there is no corpus, or two.
        DataError: The queries or the corpus do not hold to the format, or passages are missing.
    """
    _check_corpus(documents, chunks)
    with (
        undone_if_failed(Path(out)),
        begin(CHUNK, settings, {}) as call,
        as_file(queries) as path,
        as_documents(documents) as named,
        as_optional_file(chunks) as chunk_file,
    ):
        source = ChunkSource(named, chunk_file, call.settings.chunk, call.observer)
        dataset = dataset_for(Path(out), source)
        import_queries(path, dataset, call.observer, made_by=made_by, allow_missing=allow_missing)
    return EvaluationSet(Path(out))


def from_csv(
    queries: Place,
    documents: Documents | None = None,
    *,
    out: Place,
    chunks: Records | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    **settings: Unpack[ChunkKeywords],
) -> EvaluationSet:
    """Make a set of a table of queries, such as question,answer,doc_id,quote; see `from_queries`.

    Args:
        queries: A table with a header, .csv or .tsv, also packed.
        documents: As for `from_queries`, like the rest.
        out: The directory of the new set.
        chunks: Ready-made chunks instead.
        made_by: Who graded.
        allow_missing: Keep relevant ids that the corpus does not have.
        settings: As for `from_queries`.

    Raises:
        UsageError: The file is no table; or as `from_queries`.
        DataError: As `from_queries`.
    """
    name = Path(queries).name.lower()
    if not any(ending in name for ending in (".csv", ".tsv")):
        raise UsageError(f"from_csv {queries}: expected a .csv or .tsv; from_queries takes others")
    return from_queries(
        queries,
        documents,
        out=out,
        chunks=chunks,
        made_by=made_by,
        allow_missing=allow_missing,
        **settings,
    )


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
        made_by: Who graded, for the records.
        allow_missing: Keep relevant ids that the corpus does not have.
        settings: quiet and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The directory holds something else.
        DataError: The folder does not hold to the format.
    """
    return from_queries(
        folder,
        out=out,
        chunks=folder,
        made_by=made_by,
        allow_missing=allow_missing,
        **settings,
    )


def _check_corpus(documents: object, chunks: object) -> None:
    if (documents is None) == (chunks is None):
        raise UsageError("name the corpus: either documents or chunks")


async def _generated(
    documents: Documents | None, chunks: Records | None, out: Path, call: Call
) -> GenerationResult:
    with as_documents(documents) as named, as_optional_file(chunks) as chunk_file:
        source = ChunkSource(named, chunk_file, call.settings.chunk, call.observer)
        return await generate_dataset(out, source, call.job)
