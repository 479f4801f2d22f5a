"""Canaries: a fixed set of pairs that a judge grades again, to see whether it is still the same.

Each is asked live: its replies go to a call store of its own, so that none of another time stands
for them, and a canary that was stopped goes on where it was.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.files.set.calibrations import calibration_files, calibration_names
from ragforge.files.set.canaries import Canaries, add_canary, read_canaries, same_judge
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.measures.drift import Drift, drift
from ragforge.measures.grader_agreement import Agreement, Grader, agree
from ragforge.observe import Event, silent
from ragforge.pipeline.job import Job, Mode, OutputFile, all_failed
from ragforge.pipeline.judge.agreement import graded_by_people
from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges, open_judges, sum_of_estimates
from ragforge.pipeline.judge.pooling import queries_of
from ragforge.records import AnsweredBy, Canary, CanaryPair, Grade, Judgment, Provenance
from ragforge.records.canaries import before_drift
from ragforge.stages.audit.stage import KnownPair, draw
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import RELEVANT_FROM, Pair, PairId

DEFAULT_N: Final = 40
"""Pairs: of a judge that repeats itself, seven grades that went one way are found."""
LEAST_PAIRS: Final = 10
"""Fewer tell no drift from chance, unless nearly all of them moved."""
NOW: Final = "now"
AT_FIRST: Final = "at first"


@dataclass(slots=True)
class CanaryResult:
    """What a canary came to.

    Args:
        judge: Name of the model or models.
        canary: The line of the ledger; None in a dry run.
        first: What it is held against; None where it is the first.
        drift: How grades differ from those of the first; of a first, from its second reading.
        agreement: With people now and at first; None where people graded too few of the pairs.
        other_answerers: Models or set-ups that answered now and not at first, in words.
        stale: Names of the judge's calibrations that were made before a drift.
        estimate: What a dry run counted; None in earnest.
    """

    judge: str
    canary: Canary | None = None
    first: Canary | None = None
    drift: Drift | None = None
    agreement: Agreement | None = None
    other_answerers: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    estimate: dict[str, object] | None = None

    @property
    def has_drifted(self) -> bool:
        """Whether the judge is another one than at first."""
        return self.canary is not None and bool(self.canary.signs)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A pair of a canary."""

    pair: Pair
    texts_sha256: str
    people: Grade | None


@dataclass(slots=True)
class _Reading:
    """What a judge said when it was asked about all pairs once."""

    grades: dict[PairId, Judgment] = field(default_factory=dict)
    answered_by: Counter[tuple[str, str]] = field(default_factory=Counter)
    estimate: dict[str, object] = field(default_factory=dict)

    def grade(self, pair: Pair) -> Grade | None:
        """Return the grade of a pair; None where the judge failed."""
        found = self.grades.get(PairId(pair.query_id, pair.chunk_id))
        return None if found is None else found.grade


async def run_canary(
    dataset: Dataset, job: Job, n: int = DEFAULT_N, *, anew: bool = False
) -> CanaryResult:
    """Let a judge grade the pairs of its first canary again, and add what it says to the ledger.

    The first canary draws the pairs: those that people graded, spread over grades and queries, and
    for the rest those that this judge graded. It asks about each twice, for how the judge differs
    from itself.

    Args:
        dataset: Has chunks, queries, and grades of people or of this judge.
        job: Prompt, models, budget and seed. A dry run writes nothing.
        n: Pairs that a first canary draws.
        anew: Begin with a first canary again.

    Raises:
        DataError: There are too few pairs, or too few of the first are as they were.
        UsageError: The judge is the offline baseline, or is asked in batches.
        EndpointError, BudgetError: The canary was stopped; its replies are stored. Or the endpoint
            failed on all but a few pairs, or no reply of a first canary was a verdict.
    """
    require_own_chunks(dataset)
    if job.settings.judge.batch > 1:
        raise UsageError(f"--batch {job.settings.judge.batch}: a canary asks about one text a call")
    if n < LEAST_PAIRS:
        raise UsageError(f"-n {n}: expected {LEAST_PAIRS} pairs or more")
    judge = await _judge_of(dataset, job)
    temperature = job.settings.model.temperature
    ledger = read_canaries(dataset)
    for note in ledger.notes:
        job.observer(Event("note", message=note))
    earlier = ledger.of(judge, temperature)
    first = None if anew else _first(earlier)
    if first is None:
        chosen, n_left_out = _drawn(dataset, judge, job, n), 0
    else:
        judge = first.judge
        chosen = _still_there(dataset, first, job)
        n_left_out = len(first.pairs) - len(chosen)
    _refuse_few(dataset, chosen, first)
    asking = _Asking(dataset, job, [each.pair for each in chosen])
    number = len(earlier) + 1
    is_first = first is None
    now = await asking.ask(_place(dataset, judge, temperature, f"{number}"), is_first=is_first)
    again = None
    if first is None:
        place = _place(dataset, judge, temperature, f"{number}-again")
        again = await asking.ask(place, is_first=True)
    if job.mode.dry_run:
        readings = [each.estimate for each in (now, again) if each is not None]
        counts = {"pairs": {"drawn": len(chosen), "readings of each": len(readings)}}
        return CanaryResult(judge.model, estimate={**counts, **sum_of_estimates(readings)})
    canary = Canary(
        canary_id="",
        judge=judge,
        temperature=temperature,
        number=number,
        first_id=first.canary_id if first else "",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        answered_by=tuple(
            AnsweredBy(model=model, fingerprint=fingerprint, n=count)
            for (model, fingerprint), count in sorted(now.answered_by.items())
        ),
        pairs=tuple(_canary_pair(each, now, again) for each in chosen),
        n_left_out=n_left_out,
        p={},
        calibrations=_calibrations(dataset, judge),
    )
    found = drift_of(canary, first)
    if first is not None:
        canary = canary.model_copy(update={"signs": found.found, "p": found.p})
    canary = add_canary(dataset, canary)
    stale = Canaries((*ledger.all, canary)).stale()
    return CanaryResult(
        judge=judge.model,
        canary=canary,
        first=first,
        drift=found,
        agreement=_agreement(canary, first),
        other_answerers=_others(canary, first),
        stale=tuple(name for name, of in canary.calibrations.items() if of in stale),
    )


def drift_of(canary: Canary, first: Canary | None) -> Drift:
    """Return how the grades of a canary differ from those of the first.

    Pairs on which the endpoint failed now are left out: that says nothing of the judge.

    Args:
        canary: What was said now.
        first: None where it is the first itself: then its second reading is held against its first.
    """
    before = {PairId(old.query_id, old.chunk_id): old for old in (first or canary).pairs}
    answered = [each for each in canary.pairs if each.failure != "error"]
    pairs = [before[PairId(each.query_id, each.chunk_id)] for each in answered]
    again = [old.again for old in pairs]
    return drift(
        [old.query_id for old in pairs],
        [old.grade for old in pairs],
        again,
        again if first is None else [each.grade for each in answered],
    )


@dataclass(frozen=True, slots=True)
class _Asking:
    """What a judge is asked about."""

    dataset: Dataset
    job: Job
    pairs: Sequence[Pair]

    async def ask(self, store_path: Path, *, is_first: bool) -> _Reading:
        """Ask about all pairs once; replies of an earlier time are used where it was stopped.

        Args:
            store_path: Of the replies.
            is_first: Whether there is nothing to hold failures against: if all fail, that is no
                canary, and the next one asks live.

        Raises:
            EndpointError: The endpoint takes no call, or failed on all but a few pairs; or all of a
                first canary failed.
            BudgetError: The limit is reached.
        """
        place = OutputFile(store_path, store_path)
        async with open_judges(self.job, place, "judge") as judges:
            refuse_shared_queries(
                judges.examples, {pair.query_id: pair.query for pair in self.pairs}
            )
            result = JudgingResult(judges.name, len(self.pairs))
            reading = _Reading()
            store_path.parent.mkdir(parents=True, exist_ok=True)
            with judged_spool(store_path.parent) as judged:
                await JudgeRun(judges, judged, result).judge(lambda: self.pairs, len(self.pairs))
                reading.grades = {
                    PairId(one.query_id, one.chunk_id): one for one in judged.results()
                }
            if self.job.mode.dry_run:
                reading.estimate = judges.estimate(result.n_texts)
                return reading
            reading.answered_by = _answered_by(judges)
            n_errors = sum(one.failure == "error" for one in reading.grades.values())
            if is_first and result.n_failed == len(self.pairs):
                _forget_replies(judges)
            elif len(self.pairs) - n_errors >= LEAST_PAIRS:
                return reading
        assert result.first_failure is not None
        what = f"judging failed on {result.n_failed} of {len(self.pairs)} pairs of the canary"
        raise all_failed(result.judge, what, result.first_failure)


async def _judge_of(dataset: Dataset, job: Job) -> Provenance:
    """Return the judge that the settings name, with the drift since which; nothing is asked.

    Raises:
        UsageError: It is the offline baseline.
    """
    counting = replace(job, mode=Mode(dry_run=True), observer=silent)
    async with open_judges(counting, dataset, "judge") as judges:
        judge = judges.provenance()
    if judge.kind == "baseline":
        raise UsageError(
            "the offline baseline is a rule, and does not drift; name a model with --model"
        )
    return judge


def _first(earlier: Sequence[Canary]) -> Canary | None:
    """Return the canary that a next one is held against; None where there is none.

    Raises:
        DataError: It was lost.
    """
    if not earlier:
        return None
    wanted = earlier[-1].first_id or earlier[-1].canary_id
    for each in earlier:
        if each.canary_id == wanted:
            return each
    raise DataError(
        f"canaries.jsonl: the first canary of {earlier[-1].judge.model}, {wanted}, is not there "
        "any more; `ragforge judge canary --anew` begins again"
    )


def _drawn(dataset: Dataset, judge: Provenance, job: Job, n: int) -> list[_Chosen]:
    """Return the pairs of a first canary: of people, then of this judge."""
    queries = queries_of(dataset, job.settings.judge.split)
    people = _by_people(dataset)
    own = {
        PairId(one.query_id, one.chunk_id): one.grade
        for one in dataset.each_judgment()
        if one.level == "chunk" and one.grade is not None and not one.copied_from
        if one.source != "human" and one.provenance and same_judge(one.provenance, judge)
    }
    with dataset.chunk_texts({pair.chunk_id for pair in (*people, *own)}) as texts:

        def known(grades: Mapping[PairId, Grade | None]) -> list[KnownPair]:
            return [
                KnownPair(pair, grade)
                for pair, grade in grades.items()
                if pair.query_id in queries and pair.chunk_id in texts
            ]

        seed = job.settings.model.seed
        drawn = draw(known(people), n, seed)
        if len(drawn) < n:
            rest = {pair: grade for pair, grade in own.items() if pair not in people}
            drawn = sorted([*drawn, *draw(known(rest), n - len(drawn), seed)])
        return [_chosen(pair, queries, texts, people.get(pair)) for pair in drawn]


def _by_people(dataset: Dataset) -> dict[PairId, Grade | None]:
    """Return people's grades in the set, and those of the labels of its calibrations."""
    found: dict[PairId, Grade | None] = {}
    for name in calibration_names(dataset):
        for label in worded_labels(dataset, calibration_files(dataset, name)).now:
            pair = PairId(label.query_id, label.chunk_id)
            if label.grade is not None and (label.decides or pair not in found):
                found[pair] = label.grade
    return found | {
        PairId(one.query_id, one.chunk_id): one.grading.grade
        for one in graded_by_people(dataset.judgment_table())
    }


def _still_there(dataset: Dataset, first: Canary, job: Job) -> list[_Chosen]:
    """Return the pairs of a first canary whose texts are as they were."""
    queries = queries_of(dataset, "all")
    people = _by_people(dataset)
    with dataset.chunk_texts({old.chunk_id for old in first.pairs}) as texts:
        there = []
        for old in first.pairs:
            pair = PairId(old.query_id, old.chunk_id)
            if pair.query_id in queries and pair.chunk_id in texts:
                given = old.people if old.people is not None else people.get(pair)
                chosen = _chosen(pair, queries, texts, given)
                if chosen.texts_sha256 == old.texts_sha256:
                    there.append(chosen)
    n_gone = len(first.pairs) - len(there)
    if n_gone:
        message = f"{n_gone} of {len(first.pairs)} pairs are left out: their texts changed"
        job.observer(Event("note", message=message))
    return there


def _chosen(
    pair: PairId, queries: Mapping[str, str], texts: ChunkTexts, people: Grade | None
) -> _Chosen:
    shown = Pair(pair.query_id, queries[pair.query_id], pair.chunk_id, texts[pair.chunk_id])
    digest = hashlib.sha256(json.dumps([shown.query, shown.text]).encode()).hexdigest()
    return _Chosen(shown, digest, people)


def _refuse_few(dataset: Dataset, chosen: Sequence[_Chosen], first: Canary | None) -> None:
    if len(chosen) >= LEAST_PAIRS:
        return
    if first is not None:
        raise DataError(
            f"{dataset.path}: {len(chosen)} of the {len(first.pairs)} pairs of the first canary "
            f"are as they were, and {LEAST_PAIRS} are needed; `ragforge judge canary --anew` "
            "begins again with others"
        )
    raise DataError(
        f"{dataset.path}: {len(chosen)} pairs have a grade of people or of this judge, and "
        f"{LEAST_PAIRS} are needed; judge or label more of them first"
    )


def _place(dataset: Dataset, judge: Provenance, temperature: float, name: str) -> Path:
    """Return the call store of one reading."""
    parts = [judge.model, judge.prompt_sha256, before_drift(judge).protocol, temperature]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return dataset.store_path.parent / "canaries" / f"{digest}-{name}.sqlite"


def _forget_replies(judges: Judges) -> None:
    """Put replies aside, so that they are asked for again; panels share a store."""
    connections = [each.connection for each in judges.backends if each.connection]
    for store in (each.store for each in connections[:1]):
        store.forget([row.key for row in store.rows()])


def _answered_by(judges: Judges) -> Counter[tuple[str, str]]:
    """Return the models and set-ups that answered; panels share a store."""
    connections = [each.connection for each in judges.backends if each.connection]
    counts: Counter[tuple[str, str]] = Counter()
    for row in connections[0].store.rows() if connections else ():
        reply = json.loads(row.reply)
        counts[str(reply.get("model") or row.model), str(reply.get("fingerprint") or "")] += 1
    return counts


def _canary_pair(each: _Chosen, now: _Reading, again: _Reading | None) -> CanaryPair:
    found = now.grades.get(PairId(each.pair.query_id, each.pair.chunk_id))
    return CanaryPair(
        query_id=each.pair.query_id,
        chunk_id=each.pair.chunk_id,
        texts_sha256=each.texts_sha256,
        people=each.people,
        grade=now.grade(each.pair),
        failure=found.failure if found else None,
        again=again.grade(each.pair) if again else None,
    )


def _calibrations(dataset: Dataset, judge: Provenance) -> dict[str, str]:
    """Return the grades that each calibration of a judge is bound to, by its name."""
    samples = {
        name: calibration_files(dataset, name).sample() for name in calibration_names(dataset)
    }
    return {
        name: sample.grades_sha256
        for name, sample in samples.items()
        if same_judge(sample.judge, judge)
    }


def _agreement(canary: Canary, first: Canary | None) -> Agreement | None:
    before = {PairId(old.query_id, old.chunk_id): old for old in first.pairs} if first else {}
    rows = []
    for each in canary.pairs:
        old = before.get(PairId(each.query_id, each.chunk_id), each)
        if each.people is not None and each.grade is not None and old.grade is not None:
            rows.append((each.query_id, each.people, each.grade, old.grade))
    if not rows:
        return None
    query_ids, people, now, then = zip(*rows, strict=True)
    graders = [Grader(NOW, list(now)), *([Grader(AT_FIRST, list(then))] if first else [])]
    return agree(list(query_ids), list(people), graders, threshold=RELEVANT_FROM)


def _others(canary: Canary, first: Canary | None) -> tuple[str, ...]:
    if first is None:
        return ()
    known = _names(first.answered_by)
    return tuple(name for name in _names(canary.answered_by) if name not in known)


def _names(answered_by: Iterable[AnsweredBy]) -> list[str]:
    return [
        f"{each.model} ({each.fingerprint})" if each.fingerprint else each.model
        for each in answered_by
    ]
