"""Jobs on a set that may ask a retriever, a system or a model; each can be awaited.

Awaited, a job works in the caller's event loop, and so does an async retriever or system of the
user's. Reading and writing files blocks that loop for a moment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias, Unpack

from ragforge.api.answered import Answered, Grounded, ask_and_grade, describe_asking, grade
from ragforge.api.arguments import checked
from ragforge.api.call import (
    ASK,
    JUDGE,
    REFRESH,
    RETRIEVE,
    Call,
    Handle,
    begin,
    part_of,
    whole_of,
)
from ragforge.api.canaries import CanaryOutcome
from ragforge.api.judged import Audited, Completed, Judged
from ragforge.api.keywords import (
    AskKeywords,
    JudgeKeywords,
    RefreshKeywords,
    RetrieveKeywords,
)
from ragforge.api.outcomes import Refreshed, Retrieved, describe_failures, retrieved
from ragforge.api.sources import AnyRetriever, AnySystem, Records, as_file
from ragforge.deferred import tempfile
from ragforge.errors import EndpointError, UsageError
from ragforge.evaluating.gate import parse_share
from ragforge.files.record_files import read_records
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.files.text import checked_name
from ragforge.pipeline.auditing import DEFAULT_N, AuditPlan, audit_dataset
from ragforge.pipeline.complete.completing import complete_whole
from ragforge.pipeline.grounding import ground_system
from ragforge.pipeline.job import Mode
from ragforge.pipeline.judge.canaries import DEFAULT_N as CANARY_PAIRS
from ragforge.pipeline.judge.canaries import run_canary
from ragforge.pipeline.judge.judging import judge_dataset
from ragforge.pipeline.judge.judging import judge_labels as judge_labels_of
from ragforge.pipeline.judge.pooling import EarlierRankings
from ragforge.pipeline.retrieving import make_runs, require_working, usual_retrievers
from ragforge.pipeline.run_list import describe_holes as holes_in_words
from ragforge.pipeline.run_list import holes_of, named_specs
from ragforge.plugins import HandedOver
from ragforge.records import Grounding
from ragforge.refresh.refreshing import RefreshOptions, refresh_dataset
from ragforge.retrieval.retrievers import reranked

Runs: TypeAlias = str | Sequence[str]
"""The name of a run, or several."""

_MAX_FAILURES: Final = 0.05


@checked
async def retrieve(
    handle: Handle,
    retriever: AnyRetriever,
    *,
    name: str | None = None,
    rerank: str | None = None,
    max_failures: float | str = _MAX_FAILURES,
    **settings: Unpack[RetrieveKeywords],
) -> Retrieved:
    """Run a retriever over the queries; the result is a run of the set.

    Args:
        handle: The set.
        retriever: A function `f(query, k)` or `f(query)`, plain or async; an object with retrieve,
            invoke, get_relevant_documents or search; a vector store, index, chain or pipeline of
            a framework; or `bm25`, `chargram`, `minilm`, `static`, `dense`, two of them as
            `bm25+minilm`, an address that takes {"query", "k"}, a service of the settings, or
            `package.module:attribute`.
        rerank: A local model that ranks the top of the retriever anew: `minilm` or `static`.
        name: Of the run; that of the retriever where None. An earlier run of it is replaced, unless
            it has more of the queries, as more fail now than may.
        max_failures: Share of the queries that may fail, 0.01 or `1%`.
        settings: k, concurrency, timeout_s and others; see `ragforge.api.keywords`.

    Raises:
        UsageError, ConfigError, DataError: The retriever cannot be made, or somebody changed the
            chunks.
        EndpointError: It failed on more queries than that; all else is written.
    """
    spec = spec_of(retriever)
    names = [name or _own_name(retriever)] if isinstance(spec, HandedOver) or name else []
    if rerank is not None:
        spec = reranked(spec, rerank)
    [made] = await _retrieved(handle, named_specs([spec], names), max_failures, settings)
    return made


@checked
async def retrieve_several(
    handle: Handle,
    retrievers: Mapping[str, AnyRetriever] | Iterable[str] | None = None,
    *,
    max_failures: float | str = _MAX_FAILURES,
    **settings: Unpack[RetrieveKeywords],
) -> tuple[Retrieved, ...]:
    """Run several retrievers over the queries at the same time; each gives a run.

    Args:
        handle: The set.
        retrievers: As for `retrieve`, by the names of their runs; or names of retrievers. Where
            None, `bm25`, and `minilm` where it is installed.
        max_failures: As for `retrieve`, of each.
        settings: As for `retrieve`; concurrency is that of each, and 1 has them work in turn.

    Raises:
        UsageError, ConfigError, DataError: As for `retrieve`.
        EndpointError: One failed on more queries than that; all else is written.
    """
    if retrievers is None:
        specs = {}
    elif isinstance(retrievers, Mapping):
        specs = {name: spec_of(retriever) for name, retriever in retrievers.items()}
    else:
        specs = named_specs([retrievers] if isinstance(retrievers, str) else [*retrievers])
    if not specs and retrievers is not None:
        raise UsageError("retrievers: expected at least one")
    return await _retrieved(handle, specs, max_failures, settings)


@checked
async def judge(
    handle: Handle,
    runs: Runs = (),
    *,
    again: bool = False,
    mix: bool = False,
    earlier_rankings: int | str | PathLike[str] | None = None,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> Judged:
    """Grade how well retrieved chunks answer the queries, 0-3; pairs that have a grade stay.

    The top ranks of the runs are pooled and judged. A pair whose judgment fails gets no grade; it
    is counted, and bounds what it could change.

    Args:
        handle: The set.
        runs: Whose ranks are pooled; all where empty.
        again: Judge again what another model or prompt graded; human grades stay.
        mix: Let grades of another model or prompt stand beside the new ones.
        earlier_rankings: Judge as well what that many rankings of earlier evaluations of each run
            need, or those of a baseline file.
        dry_run: Count calls, tokens and money, and ask nothing; see `Judged.estimate`.
        settings: model, depth, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no such run, or none at all.
        UsageError: Another model or prompt graded a part of the pool.
        EndpointError, BudgetError: It was stopped, what was judged is written; or every pair
            failed.
    """
    mode = Mode(again=again, mix=mix, dry_run=dry_run)
    with begin(JUDGE, settings, handle.keywords, mode=mode) as call:
        _check_batches(settings, call)
        result = await judge_dataset(
            part_of(handle),
            names_of(runs),
            call.job,
            _earlier(earlier_rankings),
        )
        return Judged(result, notes=tuple(call.notes))


@checked
async def judge_labels(
    handle: Handle, *, dry_run: bool = False, **settings: Unpack[JudgeKeywords]
) -> Judged:
    """Judge the pairs that people graded, and compare: see `Judged.agreement`. Their grades stay.

    Args:
        handle: The set.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `judge`.

    Raises:
        DataError: People graded no pair.
        EndpointError, BudgetError: As for `judge`.
    """
    with begin(JUDGE, settings, handle.keywords, mode=Mode(dry_run=dry_run)) as call:
        _check_batches(settings, call)
        result = await judge_labels_of(part_of(handle), call.job)
        return Judged(result, notes=tuple(call.notes))


@checked
async def audit_judge(
    handle: Handle,
    n: int = DEFAULT_N,
    *,
    attacks: str | Sequence[str] = (),
    runs: Runs = (),
    translations: str | PathLike[str] | None = None,
    written_by: str | PathLike[str] | None = None,
    model_family: str = "",
    search_calls: int = 0,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> Audited:
    """Find out whether a judge's grade holds when somebody tampers with the text.

    Args:
        handle: The set.
        n: Pairs to draw.
        attacks: Names of attacks; all that have what they need where empty.
        runs: Whose top ranks may be drawn beside the judged pairs; all where empty.
        translations: File of translated chunks, for the attack `translation`.
        written_by: File of passages of several writers, for `self-preference`.
        model_family: The judge's own among the writers; told by the model's name where "".
        search_calls: For `optimised`: calls for each pair; 0 for no search.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `judge`.

    Raises:
        UsageError: There is no such attack, or n is below 1.
        DataError: There is nothing to draw from.
        EndpointError, BudgetError: As for `judge`.
    """
    supplied = AuditPlan(
        translations=path_of(translations),
        written=path_of(written_by),
        model_family=model_family,
        search_calls=search_calls,
    )
    plan = audit_plan(n, attacks, runs, supplied)
    with begin(JUDGE, settings, handle.keywords, mode=Mode(dry_run=dry_run)) as call:
        found = await audit_dataset(part_of(handle), plan, call.job)
        return Audited(found, tuple(call.notes))


@checked
async def judge_canary(
    handle: Handle,
    n: int = CANARY_PAIRS,
    *,
    anew: bool = False,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> CanaryOutcome:
    """Ask a judge again about the pairs of its first canary: does it still grade as it did?

    The first canary draws the pairs and asks twice. A drift is a verdict, and no exception: see
    `CanaryOutcome.verdict`.

    Args:
        handle: The set.
        n: Pairs that a first canary draws.
        anew: Begin with a first canary again.
        dry_run: Count calls, tokens and money, and ask nothing; see `CanaryOutcome.estimate`.
        settings: As for `judge`.

    Raises:
        DataError: There are too few pairs, or too few of the first are as they were.
        UsageError: The judge is the offline baseline, or is asked in batches.
        EndpointError, BudgetError: It was stopped, its replies are kept; or every pair failed.
    """
    with begin(JUDGE, settings, handle.keywords, mode=Mode(dry_run=dry_run)) as call:
        found = await run_canary(whole_of(handle, "judge_canary"), call.job, n, anew=anew)
        return CanaryOutcome(found, tuple(call.notes))


@checked
async def complete(
    handle: Handle,
    *,
    again: bool = False,
    mix: bool = False,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> Completed:
    """Judge what probes find in the whole corpus, with or without runs.

    Args:
        handle: The set.
        again: As for `judge`.
        mix: As for `judge`.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `judge`, but for the depth, which the pools find by themselves.

    Raises:
        UsageError: A depth is given.
        EndpointError, BudgetError: As for `judge`.
    """
    if settings.get("depth") is not None:
        raise UsageError("depth: does not go with complete, whose pool is found by probes")
    mode = Mode(again=again, mix=mix, dry_run=dry_run)
    with begin(JUDGE, settings, handle.keywords, mode=mode) as call:
        done = await complete_whole(part_of(handle), call.job)
        return Completed(done, tuple(call.notes))


@checked
async def answer(
    handle: Handle,
    system: AnySystem,
    *,
    name: str,
    again: bool = False,
    answers_only: bool = False,
    max_failures: float | str = _MAX_FAILURES,
    single_call: bool = False,
    dry_run: bool = False,
    **settings: Unpack[AskKeywords],
) -> Answered:
    """Have a RAG system answer the queries that it has not answered yet, and grade its answers.

    Args:
        handle: The set.
        system: A function `f(query)`, plain or async; an object with answer, invoke or query; an
            address that takes {"query"}; a service of the settings; or `package.module:attribute`.
        name: Under which its answers are kept.
        again: Ask also the queries that have an answer.
        answers_only: Grade nothing.
        max_failures: Share of the queries asked now on which it may fail, 0.01 or `1%`.
        single_call: Compare each answer as a whole, in one call, without drawing facts first.
        dry_run: Ask nothing; count what would be asked of answers that are there.
        settings: model, concurrency, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: The system cannot be made.
        EndpointError: It failed on more queries than that; all else is written.
        EndpointError, BudgetError: It was stopped, what was done is written; or all failed.
    """
    allowed = parse_share(str(max_failures), "max_failures")
    mode = Mode(single_call=single_call, dry_run=dry_run)
    with begin(ASK, settings, handle.keywords, mode=mode) as call:
        dataset = part_of(handle)
        found = await ask_and_grade(
            dataset, spec_of(system), name, call.job, again=again, answers_only=answers_only
        )
        if found.asked is not None and found.asked.failures:
            message, asked = describe_asking(found.asked, name), found.asked
            _refuse_failures(message, len(asked.failures), asked.n_asked, allowed)
        return replace(found, notes=tuple(call.notes))


@checked
async def grade_answers(
    handle: Handle,
    answers: Records,
    *,
    name: str,
    graded_by: str = "",
    single_call: bool = False,
    dry_run: bool = False,
    **settings: Unpack[AskKeywords],
) -> Answered:
    """Grade answers that are there: verdict, score, and claims that no retrieved chunk supports.

    Args:
        handle: The set.
        answers: A file, records or a data frame with query_id (or query), answer and chunk_ids.
        name: Of the system, under which they are kept.
        graded_by: Who gave the grades that the answers bring, if any; then no judge is asked
            unless a model is named. The name of the file, or of the system, where "".
        single_call: As for `answer`.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `answer`.

    Raises:
        DataError: They do not hold to the format, or answer none of the queries.
        EndpointError, BudgetError: As for `answer`.
    """
    checked_name(name)
    mode = Mode(
        single_call=single_call,
        dry_run=dry_run,
        with_judge=(settings.get("model") or handle.keywords.get("model")) is not None,
        graded_by=graded_by,
    )
    with begin(ASK, settings, handle.keywords, mode=mode) as call, as_file(answers, name) as path:
        found = await grade(part_of(handle), path, name, call.job)
        return replace(found, notes=tuple(call.notes))


@checked
async def ground(
    handle: Handle,
    answers: Records,
    *,
    out: str | PathLike[str] | None = None,
    dry_run: bool = False,
    **settings: Unpack[AskKeywords],
) -> Grounded:
    """Check that answers say only what their retrieved chunks say; no reference is needed.

    Args:
        handle: The set, whose chunks the answers name.
        answers: The name of a system in the set; or a path (no plain text), records or a data
            frame with query_id, answer and chunk_ids.
        out: Where groundings are written; they are in the result where None.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `answer`.

    Raises:
        DataError: There are no such answers, or no chunks.
        EndpointError, BudgetError: As for `answer`.
    """
    with (
        begin(ASK, settings, handle.keywords, mode=Mode(dry_run=dry_run)) as call,
        _named_or_file(answers) as named,
        grounding_place(out) as place,
    ):
        dataset = whole_of(handle, "ground")
        result = await ground_system(dataset, named, place, call.job)
        found = () if out is not None or dry_run else tuple(read_records(place, Grounding))
        return Grounded(
            result.grounder,
            result.summary,
            found,
            None if out is None else place,
            result.estimate,
            tuple(call.notes),
        )


@checked
async def refresh(
    handle: Handle,
    documents: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    chunks: str | PathLike[str] | None = None,
    accept_churn: bool = False,
    allow_baseline: bool = False,
    dry_run: bool = False,
    **settings: Unpack[RefreshKeywords],
) -> Refreshed:
    """Follow a corpus that changed: publish the next version, or none where nothing changed.

    A version that a check stops is not published, and no exception: see `Refreshed.status`.

    Args:
        handle: The set.
        documents: Files, folders and origins; those of the settings file where None.
        chunks: Ready-made chunks instead.
        accept_churn: Go on although much of the corpus is gone.
        allow_baseline: Let the offline baseline refresh a set that a model made.
        dry_run: Count, and change nothing.
        settings: model, max_cost_usd, at_least and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: There is no corpus, or two; or another refresh of the set is running.
        ChurnError, DataError: Too much of the corpus is gone; or it cannot be read.
        EndpointError, BudgetError: It was stopped; the replies that were bought are kept.
    """
    own: dict[str, object] = {"refresh.dataset": str(handle.path)}
    if documents is not None:
        listed = [documents] if isinstance(documents, str | PathLike) else documents
        own["refresh.documents"] = tuple(str(item) for item in listed)
    whole_of(handle, "refresh")
    with begin(REFRESH, settings, handle.keywords, own=own, mode=Mode(dry_run=dry_run)) as call:
        if (chunks is None) == (not call.settings.refresh.documents):
            raise UsageError("refresh: name the corpus by documents or chunks, and not by both")
        options = RefreshOptions(
            accept_churn=accept_churn,
            allow_baseline=allow_baseline,
            chunk_file=None if chunks is None else Path(chunks),
        )
        summary = await refresh_dataset(handle.path, call.job, options)
        return Refreshed(summary, tuple(call.notes))


def names_of(given: Runs) -> list[str]:
    """Return names that may be given as one."""
    return [given] if isinstance(given, str) else list(given)


def spec_of(given: AnyRetriever | AnySystem) -> str:
    """Return what names a retriever or system; an object is handed over with its name."""
    if isinstance(given, str):
        return given
    of = given if hasattr(given, "__qualname__") else type(given)
    module, name = getattr(of, "__module__", ""), getattr(of, "__qualname__", "")
    is_named = of is given and module != "__main__" and "<" not in name
    # So it can be named again in a shell; no module may look like an address.
    joined = f"{module}:{name}" if is_named and module not in ("http", "https") else ""
    return HandedOver(joined or f"{module}.{name}", given)


def specs_of(given: Iterable[AnyRetriever]) -> list[str]:
    """Return what names each; of several objects of one name the later ones are numbered."""
    taken: dict[str, HandedOver] = {}
    specs = [spec_of(item) for item in given]
    for place, spec in enumerate(specs):
        if not isinstance(spec, HandedOver):
            continue
        names = (spec, *(f"{spec}-{number}" for number in range(2, len(specs) + 1)))
        name = next(n for n in names if n not in taken or taken[n].held is spec.held)
        specs[place] = taken[name] = HandedOver(name, spec.held)
    return specs


_ALL: Final = AuditPlan()


def path_of(given: str | PathLike[str] | None) -> Path | None:
    """Return a path; None where none was given."""
    return None if given is None else Path(given)


def audit_plan(
    n: int, attacks: str | Sequence[str], runs: Runs = (), supplied: AuditPlan = _ALL
) -> AuditPlan:
    """Return what an audit is to try.

    Args:
        n: Pairs to draw.
        attacks: Names.
        runs: Whose top ranks may be drawn.
        supplied: Has the rest.

    Raises:
        UsageError: n is below 1.
    """
    if n < 1:
        raise UsageError(f"n {n}: expected a number from 1")
    names = tuple(names_of(attacks))
    return replace(supplied, n=n, attacks=names, runs=tuple(names_of(runs)))


@contextmanager
def grounding_place(out: str | PathLike[str] | None) -> Iterator[Path]:
    """Lend the place where groundings are written: a file of the user's, or one that goes again.

    Raises:
        UsageError, DataError: The file holds something else.
    """
    if out is not None:
        refuse_to_replace(Path(out), Grounding)
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="ragforge-") as folder:
        yield Path(folder, "groundings.jsonl")


@contextmanager
def _named_or_file(answers: Records) -> Iterator[Path | str]:
    if isinstance(answers, str):
        yield answers
        return
    with as_file(answers) as path:
        yield path


async def _retrieved(
    handle: Handle,
    specs: Mapping[str, str],
    max_failures: float | str,
    settings: RetrieveKeywords,
) -> tuple[Retrieved, ...]:
    allowed = parse_share(str(max_failures), "max_failures")
    with begin(RETRIEVE, settings, handle.keywords) as call:
        dataset = part_of(handle)
        specs = specs or named_specs(usual_retrievers(dataset, call.job))
        made = await make_runs(dataset, specs, call.job, max_failures=allowed)
        for run in made:
            require_working([run])
            if run.failures:
                n_queries = len(run.failures) + len(run.rankings)
                _refuse_failures(describe_failures(run), len(run.failures), n_queries, allowed)
        holes = (holes_in_words(item, dataset) for item in holes_of(dataset, list(specs)))
        call.notes.extend(filter(None, holes))
        return tuple(retrieved(run, dataset, tuple(call.notes)) for run in made)


def _own_name(retriever: AnyRetriever) -> str:
    """Return what an object is called, fit for a file."""
    name = getattr(retriever, "__name__", type(retriever).__name__)
    return "".join(letter for letter in name if letter.isalnum() or letter in "-_") or "run"


def _refuse_failures(message: str, n_failed: int, n_queries: int, allowed: float) -> None:
    """Refuse a run, or answers, with more failures than allowed; they are written all the same.

    Raises:
        EndpointError: There are more.
    """
    if n_failed > allowed * n_queries:
        raise EndpointError(
            f"{message}; all else is written, but max_failures allows "
            f"{allowed:.1%}: run it again, or allow more"
        )


def _check_batches(settings: JudgeKeywords, call: Call) -> None:
    if settings.get("permutations") is not None and call.settings.judge.batch == 1:
        raise UsageError("permutations: goes with batch")


def _earlier(given: int | str | PathLike[str] | None) -> EarlierRankings | None:
    """Return which earlier rankings are judged as well."""
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return EarlierRankings(given)
    if isinstance(given, str | PathLike) and Path(given).is_file():
        return EarlierRankings(1, (Path(given),))
    raise UsageError(
        f"earlier_rankings {given}: expected a number of rankings from 1, or the file of a baseline"
    )
