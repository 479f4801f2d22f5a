"""Auditing a judge on pairs of a dataset or of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ragforge.config import Settings
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.files.formats.pairs import read_pairs
from ragforge.files.record_files import write_object, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.wholeness import require_own_chunks
from ragforge.observe import Observer
from ragforge.pipeline.job import Job, OutputFile, all_failed, failures_beside
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.judge.pooling import pool_of, queries_of
from ragforge.records import Failure, JudgeAudit, Judgment
from ragforge.stages.audit.attacks import ATTACKS
from ragforge.stages.audit.stage import Audited, Auditing, KnownPair, Sample, audit, draw, others
from ragforge.stages.judge.llm import LLMJudge, PollingJudge, refuse_shared_queries
from ragforge.stages.judge.pairs import Pair, PairId
from ragforge.stages.runner import Judge

DEFAULT_N: Final = 50
"""Pairs to draw: some 530 calls, for intervals that reach 0.2 to either side at most."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit is to try.

    Args:
        n: Pairs to draw.
        attacks: Keys of `ATTACKS`; all where empty.
        runs: Of a dataset, whose top ranks may be drawn beside the judged pairs; all where empty.
    """

    n: int = DEFAULT_N
    attacks: Sequence[str] = ()
    runs: Sequence[str] = ()

    @property
    def in_order(self) -> list[str]:
        """The attacks, each once, in the order of reports.

        Raises:
            UsageError: There is no such attack.
        """
        unknown = [name for name in self.attacks if name not in ATTACKS]
        if unknown:
            near = did_you_mean(unknown[0], ATTACKS)
            raise UsageError(f"no attack {unknown[0]!r}{near}; there are: {', '.join(ATTACKS)}")
        return [name for name in ATTACKS if not self.attacks or name in self.attacks]


@dataclass(slots=True)
class AuditResult:
    """What an audit came to.

    Args:
        judge: Name of the model or models, or `offline`.
        audit: None in a dry run.
        failures: Of plain and attacked texts.
        estimate: What a dry run counted; None in earnest.
    """

    judge: str
    audit: JudgeAudit | None = None
    failures: list[Failure] = field(default_factory=list)
    estimate: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What was drawn: pairs, and for each one whose passage is of another query, if there is."""

    pairs: list[PairId]
    others: dict[PairId, PairId]


async def audit_dataset(dataset: Dataset, plan: AuditPlan, job: Job) -> AuditResult:
    """Audit a judge on pairs of a dataset, and write the audit beside its judgments.

    Pairs are drawn from those that have a judgment and from the pool of the runs.

    Args:
        dataset: Has chunks, queries, and judgments or runs.
        plan: How many pairs, and which attacks.
        job: Split, depth, prompt, models, budget and seed. A dry run writes nothing.

    Raises:
        DataError: There is nothing to draw from.
        UsageError: There is no such attack, or the judge cannot be asked pair by pair.
        EndpointError, BudgetError: The audit was stopped; its replies are in the call store. Or
            every plain text failed.
    """
    require_own_chunks(dataset)
    names, settings = plan.in_order, job.settings
    queries = queries_of(dataset, settings.judge.split)
    candidates = _candidates(dataset, queries, plan, settings.judge.depth, job.observer)
    with dataset.chunk_texts({each.pair.chunk_id for each in candidates}) as texts:
        there = [each for each in candidates if each.pair.chunk_id in texts]
        drawn = _draw(there, plan.n, settings.model.seed)

        def pair(query_id: str, of: PairId) -> Pair:
            return Pair(query_id, queries[query_id], of.chunk_id, texts[of.chunk_id])

        samples = [
            Sample(
                pair(each.query_id, each),
                pair(each.query_id, drawn.others[each]) if each in drawn.others else None,
            )
            for each in drawn.pairs
        ]
    _refuse_batches(settings)
    async with open_judges(job, dataset, "audit") as judges:
        refuse_shared_queries(judges.examples, queries)
        result = await _audit(samples, names, judges)
        if result.audit is not None:
            dataset.write_audit(result.audit)
            dataset.replace_failures("audit", result.failures, lambda _: True)
            judges.note_in(dataset)
    return result


async def audit_file(
    pairs_path: Path, out: Path, plan: AuditPlan, job: Job, store_path: Path | None = None
) -> AuditResult:
    """Audit a judge on pairs of a file, and write the audit to another.

    Failures go to `OUT.failures.jsonl` beside it, replies to `store_path`, or to `.ragforge/` in
    its folder where None. Grades of people in the file spread the sample; where there are none, it
    is spread over queries alone.

    Raises:
        DataError: The file of pairs does not hold to its format.
        UsageError, EndpointError, BudgetError: As for `audit_dataset`.
    """
    names = plan.in_order
    candidates = [
        KnownPair(PairId(row.query_id, row.chunk_id), row.human_grade)
        for row in read_pairs(pairs_path)
    ]
    samples = _from_file(pairs_path, _draw(candidates, plan.n, job.settings.model.seed))
    _refuse_batches(job.settings)
    async with open_judges(job, OutputFile.beside(out, store_path), "audit") as judges:
        queries = {sample.pair.query_id: sample.pair.query for sample in samples}
        refuse_shared_queries(judges.examples, queries)
        result = await _audit(samples, names, judges)
        if result.audit is not None:
            write_object(out, result.audit)
            beside = failures_beside(out)
            if result.failures or beside.exists():
                write_records(beside, result.failures, lambda each: each.key)
    return result


def again(judge: Judge[Pair, Judgment]) -> Judge[Pair, Judgment]:
    """Return the same judge with replies that the call store does not have from the first time."""
    if isinstance(judge, LLMJudge):
        return replace(judge, vote=judge.vote + 1)
    if isinstance(judge, PollingJudge):
        behind = 1 + max(one.vote for one in judge.judges)
        polled = tuple(replace(one, vote=one.vote + behind) for one in judge.judges)
        return replace(judge, judges=polled)
    return judge


def _refuse_batches(settings: Settings) -> None:
    if settings.judge.batch > 1:
        raise UsageError(
            f"--batch {settings.judge.batch}: an audit asks about one text at a time; take the "
            "default of 1"
        )


async def _audit(samples: Sequence[Sample], names: Sequence[str], judges: Judges) -> AuditResult:
    if judges.job.mode.dry_run and not judges.is_dry:
        # The baseline has no calls to count.
        return AuditResult(judges.name, estimate=judges.estimate(0))
    judge, settings = judges.judge(), judges.settings
    audited = await audit(
        samples,
        Auditing(
            judge=judge,
            again=again(judge),
            attacks=names,
            seed=settings.model.seed,
            workers=judges.stage_workers(),
            is_dry=judges.is_dry,
        ),
    )
    if judges.is_dry:
        return AuditResult(judges.name, estimate=judges.estimate(0))
    _refuse_if_all_failed(audited, judges.name)
    is_model = judge.provenance.kind == "llm"
    temperature = settings.model.temperature if is_model else None
    record = audited.audit.model_copy(update={"temperature": temperature})
    return AuditResult(judges.name, record, audited.failures)


def _candidates(
    dataset: Dataset, queries: Mapping[str, str], plan: AuditPlan, depth: int, observer: Observer
) -> list[KnownPair]:
    """Return the pairs that have a judgment, with its grade, and those of the pool that have none.

    Raises:
        DataError: There are neither judgments nor runs.
    """
    grades: dict[PairId, int | None] = {
        PairId(old.query_id, old.chunk_id): old.grade
        for old in dataset.each_judgment()
        if old.query_id in queries and old.level == "chunk"
    }
    if dataset.run_names() or not grades:
        for pair in pool_of(dataset, queries, plan.runs, depth, observer):
            grades.setdefault(pair, None)
    return [KnownPair(pair, grade) for pair, grade in grades.items()]


def _draw(candidates: Sequence[KnownPair], n: int, seed: int) -> _Drawn:
    pairs = draw(candidates, n, seed)
    if not pairs:
        raise DataError("there is no pair to audit a judge on: nothing is judged or retrieved")
    known: dict[str, set[str]] = {pair.query_id: set() for pair in pairs}
    for each in candidates:
        if each.pair.query_id in known and each.grade != 0:
            known[each.pair.query_id].add(each.pair.chunk_id)
    return _Drawn(pairs, others(pairs, known, seed))


def _from_file(path: Path, drawn: _Drawn) -> list[Sample]:
    """Return the drawn pairs with their texts, which are read a second time."""
    wanted = set(drawn.pairs)
    rows = {
        pair_id: row
        for row in read_pairs(path)
        if (pair_id := PairId(row.query_id, row.chunk_id)) in wanted
    }

    def pair(query: PairId, of: PairId) -> Pair:
        return Pair(query.query_id, rows[query].query, of.chunk_id, rows[of].text)

    return [
        Sample(pair(each, each), pair(each, drawn.others[each]) if each in drawn.others else None)
        for each in drawn.pairs
    ]


def _refuse_if_all_failed(found: Audited, judge: str) -> None:
    record = found.audit
    if record.n_plain_failed and record.n_plain_failed == record.n_plain:
        what = f"judging failed on all {record.n_plain} plain texts"
        raise all_failed(judge, what, found.failures[0])
