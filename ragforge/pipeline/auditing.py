"""Auditing a judge on pairs of a dataset or of a file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError, did_you_mean
from ragforge.files.formats.counterparts import WrittenPassage, read_translations, read_written
from ragforge.files.formats.pairs import read_pairs
from ragforge.files.record_files import write_object, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.files.text import shown
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, OutputFile, all_failed, failures_beside
from ragforge.pipeline.judge.judges import Judges, family_of, open_judges
from ragforge.pipeline.judge.pooling import pool_of, queries_of
from ragforge.records import Failure, JudgeAudit, Judgment
from ragforge.stages.audit.attacks import ATTACKS, Needs
from ragforge.stages.audit.stage import (
    Audited,
    Auditing,
    Counterpart,
    KnownPair,
    Sample,
    audit,
    draw,
    hashed,
    others,
)
from ragforge.stages.judge.llm import LLMJudge, PollingJudge, refuse_shared_queries
from ragforge.stages.judge.pairs import Pair, PairId
from ragforge.stages.runner import Judge

DEFAULT_N: Final = 50
"""Pairs to draw: some 750 calls, for intervals that reach 0.2 to either side at most."""
_LEAST_SEARCH: Final = 2
_WRITERS_TOLD: Final = 8
_FLAGS: Final[dict[Needs, str]] = {
    "translations": "--translations FILE",
    "written": "--written-by FILE",
    "search": "--search-calls N",
}
"""What gives an attack what it needs."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit is to try.

    Args:
        n: Pairs to draw.
        attacks: Keys of `ATTACKS`; all where empty.
        runs: Of a dataset, whose top ranks may be drawn beside the judged pairs; all where empty.
        translations: File of translated chunks; see `read_translations`.
        written: File of passages that several writers made of the same facts; see `read_written`.
        model_family: The judge's own, as the writers of `written` name it; told by the name of the
            model where "".
        search_calls: That a search for a better text may make for each pair; 0 for no search.
    """

    n: int = DEFAULT_N
    attacks: Sequence[str] = ()
    runs: Sequence[str] = ()
    translations: Path | None = None
    written: Path | None = None
    model_family: str = ""
    search_calls: int = 0

    @property
    def in_order(self) -> list[str]:
        """The attacks, each once, in the order of reports; of all, those that have what they need.

        Raises:
            UsageError: There is no such attack, it lacks what it needs, or what is given is for
                none of them.
        """
        unknown = [name for name in self.attacks if name not in ATTACKS]
        if unknown:
            near = did_you_mean(unknown[0], ATTACKS)
            raise UsageError(f"no attack {unknown[0]!r}{near}; there are: {', '.join(ATTACKS)}")
        self._check()
        return [
            name
            for name, attack in ATTACKS.items()
            if (name in self.attacks if self.attacks else self._has(attack.needs))
        ]

    @property
    def left_out(self) -> str:
        """What is not tried for want of what it needs, in words; "" where attacks were named."""
        untried = [name for name in ATTACKS if not self.attacks and name not in self.in_order]
        return ", ".join(f"{name} (needs {_FLAGS[ATTACKS[name].needs]})" for name in untried)

    def _has(self, needs: Needs) -> bool:
        given = {"translations": self.translations, "written": self.written}
        return not needs or bool(self.search_calls if needs == "search" else given[needs])

    def _check(self) -> None:
        if self.search_calls and self.search_calls < _LEAST_SEARCH:
            raise UsageError(
                f"--search-calls {self.search_calls}: expected {_LEAST_SEARCH} or more: the last "
                "one confirms what the search found"
            )
        if self.model_family and self.written is None:
            raise UsageError("--model-family goes with --written-by FILE")
        named = {ATTACKS[name].needs for name in self.attacks}
        for needs, flag in _FLAGS.items():
            if needs in named and not self._has(needs):
                raise UsageError(f"an attack that --attack names needs {flag}")
            if named and self._has(needs) and needs not in named:
                raise UsageError(f"{flag} is for an attack that --attack leaves out")


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
    """What was drawn: pairs, for some one whose passage is of another query, and translated pairs.

    The passage of another query is left out where there is none.
    """

    pairs: list[PairId]
    others: dict[PairId, PairId]
    translated: list[PairId]


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
    supplied, settings = _supplied(plan, job), job.settings
    queries = queries_of(dataset, settings.judge.split)
    candidates = _candidates(dataset, queries, plan, settings.judge.depth, job.observer)
    with dataset.chunk_texts({each.pair.chunk_id for each in candidates}) as texts:
        there = [each for each in candidates if each.pair.chunk_id in texts]
        drawn = _draw(there, plan.n, settings.model.seed, supplied)

        def pair(query_id: str, of: PairId) -> Pair:
            return Pair(query_id, queries[query_id], of.chunk_id, texts[of.chunk_id])

        samples = [
            Sample(
                pair(each.query_id, each),
                pair(each.query_id, drawn.others[each]) if each in drawn.others else None,
            )
            for each in drawn.pairs
        ]
        translated = [pair(each.query_id, each) for each in drawn.translated]
    _refuse_batches(settings)
    async with open_judges(job, dataset, "audit") as judges:
        refuse_shared_queries(judges.examples, {**supplied.queries, **queries})
        result = await _audit(samples, supplied.of(translated), plan, judges)
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
    supplied = _supplied(plan, job)
    candidates = [
        KnownPair(PairId(row.query_id, row.chunk_id), row.human_grade)
        for row in read_pairs(pairs_path)
    ]
    drawn = _draw(candidates, plan.n, job.settings.model.seed, supplied)
    samples, translated = _from_file(pairs_path, drawn)
    _refuse_batches(job.settings)
    async with open_judges(job, OutputFile.beside(out, store_path), "audit") as judges:
        asked = [*translated, *(sample.pair for sample in samples)]
        queries = {pair.query_id: pair.query for pair in asked}
        refuse_shared_queries(judges.examples, {**supplied.queries, **queries})
        result = await _audit(samples, supplied.of(translated), plan, judges)
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


async def _audit(
    samples: Sequence[Sample],
    counterparts: Mapping[str, Sequence[Counterpart]],
    plan: AuditPlan,
    judges: Judges,
) -> AuditResult:
    if judges.job.mode.dry_run and not judges.is_dry:
        # The baseline has no calls to count.
        return AuditResult(judges.name, estimate=judges.estimate(0))
    judge, settings = judges.judge(), judges.settings
    audited = await audit(
        samples,
        Auditing(
            judge=judge,
            again=again(judge),
            attacks=plan.in_order,
            seed=settings.model.seed,
            workers=judges.stage_workers(),
            is_dry=judges.is_dry,
            counterparts=counterparts,
            search_calls=plan.search_calls,
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


def _draw(candidates: Sequence[KnownPair], n: int, seed: int, supplied: "_Supplied") -> _Drawn:
    pairs = draw(candidates, n, seed)
    if not pairs:
        raise DataError("there is no pair to audit a judge on: nothing is judged or retrieved")
    known: dict[str, set[str]] = {pair.query_id: set() for pair in pairs}
    for each in candidates:
        if each.pair.query_id in known and each.grade != 0:
            known[each.pair.query_id].add(each.pair.chunk_id)
    return _Drawn(pairs, others(pairs, known, seed), supplied.drawn(candidates, n, seed))


def _from_file(path: Path, drawn: _Drawn) -> tuple[list[Sample], list[Pair]]:
    """Return the drawn pairs, and those to be translated, with texts, read a second time."""
    wanted = {*drawn.pairs, *drawn.translated}
    rows = {
        pair_id: row
        for row in read_pairs(path)
        if (pair_id := PairId(row.query_id, row.chunk_id)) in wanted
    }

    def pair(query: PairId, of: PairId) -> Pair:
        return Pair(query.query_id, rows[query].query, of.chunk_id, rows[of].text)

    samples = [
        Sample(pair(each, each), pair(each, drawn.others[each]) if each in drawn.others else None)
        for each in drawn.pairs
    ]
    return samples, [pair(each, each) for each in drawn.translated]


@dataclass(frozen=True, slots=True)
class _Supplied:
    """Texts that attacks are made of.

    Args:
        translations: By the id of their chunk.
        written: A passage of another writer beside one of the judge's family.
    """

    translations: Mapping[str, str]
    written: Sequence[Counterpart]

    @property
    def queries(self) -> dict[str, str]:
        """The queries that passages were written for, by id."""
        return {given.plain.query_id: given.plain.query for given in self.written}

    def drawn(self, candidates: Iterable[KnownPair], n: int, seed: int) -> list[PairId]:
        """Return pairs whose chunk is translated.

        Raises:
            DataError: There are translations, and none of a chunk that may be drawn.
        """
        there = [each for each in candidates if each.pair.chunk_id in self.translations]
        if self.translations and not there:
            raise DataError(
                "--translations: none is of a chunk that is judged or retrieved here; the first "
                f"is of {shown(next(iter(self.translations)))}"
            )
        return draw(there, n, seed)

    def of(self, translated: Iterable[Pair]) -> dict[str, Sequence[Counterpart]]:
        """Return the counterparts by the attack that is made of them."""
        return {
            "translation": [
                Counterpart(pair, replace(pair, text=self.translations[pair.chunk_id]))
                for pair in translated
            ],
            "self-preference": self.written,
        }


def _supplied(plan: AuditPlan, job: Job) -> _Supplied:
    """Return what the files of a plan hold; tell what is not tried for want of one."""
    if plan.left_out:
        job.observer(Event("note", message=f"not tried: {plan.left_out}"))
    return _Supplied(
        read_translations(plan.translations) if plan.translations else {},
        _own_beside_others(plan, job) if plan.written else (),
    )


def _own_beside_others(plan: AuditPlan, job: Job) -> list[Counterpart]:
    """Return passages of others, each beside one of the judge's own family on the same facts.

    Raises:
        UsageError: The family is not known.
        DataError: The file cannot be taken, or has no facts of which both wrote.
    """
    assert plan.written is not None
    family, seed = plan.model_family or _family_of_judge(job.settings), job.settings.model.seed
    by_facts: dict[tuple[str, str], list[WrittenPassage]] = {}
    for passage in read_written(plan.written):
        by_facts.setdefault((passage.query_id, passage.facts_id), []).append(passage)
    found: dict[PairId, Counterpart] = {}
    n_unlike = 0
    for of_facts in by_facts.values():
        own = [passage for passage in of_facts if _is_of(passage.writer, family)]
        strange = [passage for passage in of_facts if passage not in own]
        alike = [(one, other) for one in own for other in strange if _may_be_alike(one, other)]
        n_unlike += bool(own and strange and not alike)
        if alike:
            # Of several, one whose turn does not depend on the order of the file.
            one, other = min(alike, key=lambda both: hashed(seed, both[0].writer, both[1].writer))
            shown_pair = _written_pair(one)
            found[PairId(shown_pair.query_id, shown_pair.chunk_id)] = Counterpart(
                _written_pair(other), shown_pair
            )
    if n_unlike:
        message = (
            f"--written-by: {n_unlike:,} facts are left out, whose passages people grade apart"
        )
        job.observer(Event("note", message=message))
    if not found:
        writers = sorted({passage.writer for each in by_facts.values() for passage in each})
        raise DataError(
            f"{plan.written}: expected facts that {family} and another wrote up, got passages of "
            f"{', '.join(map(shown, writers[:_WRITERS_TOLD]))}"
        )
    drawn = draw((KnownPair(pair, None) for pair in found), plan.n, seed)
    return [found[pair] for pair in drawn]


def _family_of_judge(settings: Settings) -> str:
    models = settings.judge.panel or (settings.model.name,)
    families = {family_of(model.partition("@")[0]) for model in models}
    family = families.pop()
    if families or not family:
        raise UsageError(
            f"--written-by: the family of {'+'.join(models)} is not known by its name; give "
            "--model-family"
        )
    return family


def _is_of(writer: str, family: str) -> bool:
    names = {writer.casefold(), family_of(writer).casefold()}
    return family.casefold() in names or (family_of(family) or family).casefold() in names


def _may_be_alike(one: WrittenPassage, other: WrittenPassage) -> bool:
    """Whether people grade two passages alike, as far as they graded them."""
    return one.grade is None or other.grade is None or one.grade == other.grade


def _written_pair(passage: WrittenPassage) -> Pair:
    chunk_id = "/".join(filter(None, (passage.facts_id, passage.writer)))
    return Pair(passage.query_id, passage.query, chunk_id, passage.text)


def _refuse_if_all_failed(found: Audited, judge: str) -> None:
    record = found.audit
    if record.n_plain_failed and record.n_plain_failed == record.n_plain:
        what = f"judging failed on all {record.n_plain} plain texts"
        raise all_failed(judge, what, found.failures[0])
