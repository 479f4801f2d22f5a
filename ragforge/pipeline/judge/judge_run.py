"""One run over pairs: in batches while their order does no harm, else text by text.

What is judged is sorted on disk, on its way into a file or a dataset.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import signed
from ragforge.files.set.dataset import Dataset
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import ResultSpool
from ragforge.pipeline.judge.judged_pairs import JudgedPairs
from ragforge.pipeline.judge.judges import Judges
from ragforge.pipeline.observer_events import emit_judgments
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.batches import Batch, batches, judge_batches
from ragforge.stages.judge.pairs import Pair, QuerySummary

if TYPE_CHECKING:
    from ragforge.measures.grader_agreement import Agreement
    from ragforge.pipeline.judge.pooling import KeptGrades

_LEAST_PAIRS = 10
"""Fewer say too little, whatever they say."""
ALPHA = 0.01
_LEAST_SHIFT = 0.1
"""Grades between the first and the last place of a batch; less changes no ranking of systems."""
_HIGHEST = 3.0
_SEED = 0


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """How grades change with the place in the batch, within the same pair.

    Args:
        shift: Grades from the first place of a batch to the last; below 0 where later passages get
            lower ones.
        low, high: 95 % interval.
        p: Of the hypothesis that places do not matter.
        n_pairs: That have votes at different places.
    """

    shift: float
    low: float
    high: float
    p: float
    n_pairs: int

    @property
    def is_told(self) -> bool:
        """Whether there are enough pairs to tell."""
        return self.n_pairs >= _LEAST_PAIRS

    @property
    def is_significant(self) -> bool:
        """Whether batches are to be given up for single passages."""
        return self.is_told and self.p < ALPHA and abs(self.shift) >= _LEAST_SHIFT


class PositionSums:
    """What of the votes is needed, pair by pair, so that judgments need not be kept."""

    def __init__(self) -> None:
        self._covered = array("d")
        self._spread = array("d")
        self._last = 0

    @property
    def n_pairs(self) -> int:
        """Pairs that have votes at different places."""
        return len(self._spread)

    def add(self, judgment: Judgment) -> None:
        """Take a judgment; a copy for another chunk of the same text counts once."""
        if judgment.copied_from:
            return
        by_model: dict[str, list[tuple[int, int]]] = {}
        for vote in judgment.votes:
            if vote.position is not None and vote.grade is not None:
                by_model.setdefault(vote.model, []).append((vote.position, vote.grade))
                self._last = max(self._last, vote.position)
        sums = [_sums(votes) for votes in by_model.values()]
        spread = sum(each.spread for each in sums)
        if spread:
            self._covered.append(sum(each.covered for each in sums))
            self._spread.append(spread)

    def effect(self) -> PositionEffect | None:
        """Return the effect, None where fewer than two pairs were seen at two places.

        The slope of the grade on the place, with an intercept of its own for each pair. Places are
        drawn anew for each pair and order, so pairs are the unit: their signs are flipped for p.
        """
        n = self.n_pairs
        if n < 2:
            return None
        from ragforge.measures.distributions import student_quantile
        from ragforge.measures.paired import randomisation_test

        spread = sum(self._spread)
        slope = sum(self._covered) / spread
        residuals = (
            covered - slope * each
            for covered, each in zip(self._covered, self._spread, strict=True)
        )
        error = sqrt(sum(value * value for value in residuals) * n / (n - 1))
        half = student_quantile(0.975, n - 1) * error / spread
        test = randomisation_test([0.0] * n, self._covered.tolist(), seed=_SEED)
        shift, low, high = (
            max(-_HIGHEST, min(_HIGHEST, value * self._last))
            for value in (slope, slope - half, slope + half)
        )
        return PositionEffect(shift, low, high, test.p, n)


@dataclass(frozen=True, slots=True)
class _Sums:
    covered: float
    spread: float


def _sums(votes: list[tuple[int, int]]) -> _Sums:
    """Return the sums of products and of squares, about the means of a pair."""
    place = sum(at for at, _ in votes) / len(votes)
    grade = sum(given for _, given in votes) / len(votes)
    return _Sums(
        covered=sum((at - place) * (given - grade) for at, given in votes),
        spread=sum((at - place) ** 2 for at, _ in votes),
    )


def keeps_batches(effect: PositionEffect | None) -> bool:
    """Whether batches are gone on with after an effect; None where no pair was seen twice."""
    return effect is None or (effect.is_told and not effect.is_significant)


PILOT_PAIRS = 200
"""Pairs after which the effect of places is looked at for the first time; then at twice as many,
and so on."""
_NO_LOOK = 1 << 62
MOST_DOUBTFUL = 20
_BETWEEN = 1.5
"""The mean grade that lies between what is not relevant and what is."""


def judged_spool(folder: Path) -> ResultSpool[Judgment]:
    """Return a sink for judgments; their sorted parts are put in a folder."""
    return ResultSpool(Judgment, lambda item: (item.query_id, item.chunk_id), folder)


@dataclass(slots=True)
class JudgingResult:
    """What judging came to.

    Args:
        judge: Name of the model or models, or `offline`.
        n_pairs: Pairs in the pool or file.
        n_judged, n_failed: Of those in work now.
        n_copied: Judged pairs whose grade is that of a chunk with the same text.
        n_texts: Distinct texts in work, query by query.
        grades: How many of each.
        flags: How many chunks hold what is suspicious, by what it is.
        unwrapped: How many replies, stored ones too, had something around their object: thinking,
            a channel, a fence.
        first_failure: None where none failed.
        doubtful: Judgments that a person should look at first: those whose votes or probabilities
            are most divided, the most undecided first.
        position: Effect of the place in a batch; None without batches in several orders.
        gave_up_batches: Whether that effect made each text be judged alone.
        summaries: One a query, over everything judged for it.
        estimate: What a dry run counted; None in earnest.
        agreement: With people, where they graded pairs that were judged.
    """

    judge: str
    n_pairs: int = 0
    n_judged: int = 0
    n_failed: int = 0
    n_copied: int = 0
    n_texts: int = 0
    grades: Counter[int] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    unwrapped: Counter[str] = field(default_factory=Counter)
    first_failure: Failure | None = None
    doubtful: list[Judgment] = field(default_factory=list)
    position: PositionEffect | None = None
    gave_up_batches: bool = False
    summaries: list[QuerySummary] = field(default_factory=list)
    estimate: dict[str, object] | None = None
    agreement: Agreement | None = None

    def result(self, result: Judgment) -> None:
        """Count a judgment."""
        if result.grade is not None:
            self.n_judged += 1
            self.n_copied += bool(result.copied_from)
            self.grades[result.grade] += 1
            self.flags.update(result.flags)
            self._note_doubtful(result)

    def _note_doubtful(self, result: Judgment) -> None:
        if not result.entropy_bits or result.copied_from:
            return
        self.doubtful.append(result)
        self.doubtful.sort(key=_certainty)
        del self.doubtful[MOST_DOUBTFUL:]

    def failure(self, failure: Failure) -> None:
        """Count a failure."""
        self.n_failed += 1
        self.first_failure = self.first_failure or failure

    def begin_anew(self) -> None:
        """Forget what was counted of judgments that are made again."""
        self.n_judged = self.n_failed = self.n_copied = self.n_texts = 0
        self.grades.clear()
        self.flags.clear()
        self.doubtful.clear()
        self.first_failure = None


def _certainty(judgment: Judgment) -> tuple[float, float, str, str]:
    """Order judgments by doubt: divided first, and of equals those next to being relevant."""
    mean = judgment.grade_mean or 0.0
    undecided = judgment.entropy_bits or 0.0
    return -undecided, abs(mean - _BETWEEN), judgment.query_id, judgment.chunk_id


@dataclass(slots=True)
class _PositionWatch:
    """A sink that counts, tells, and looks at the effect of places while judgments come in."""

    counts: JudgingResult
    inner: ResultSpool[Judgment]
    observer: Observer
    sums: PositionSums = field(default_factory=PositionSums)
    next_look: int = PILOT_PAIRS
    is_biased: bool = False

    def result(self, result: Judgment) -> None:
        self.counts.result(result)
        self.inner.result(result)
        emit_judgments([result], self.observer)
        self.sums.add(result)
        if self.sums.n_pairs >= self.next_look:
            self.next_look *= 2
            self.look()

    def failure(self, failure: Failure) -> None:
        self.counts.failure(failure)
        self.inner.failure(failure)

    def look(self) -> None:
        """Look whether places move grades."""
        self.counts.position = self.sums.effect()
        found = self.counts.position
        self.is_biased = self.is_biased or (found is not None and found.is_significant)


def _never(pair: Pair) -> bool:
    """Keep no pair out of batches: there are none."""
    return False


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """Who judges, and where judgments go.

    Args:
        judges: Who judges.
        judged: Takes judgments and failures.
        result: Counts them.
        batched: Whether in batches, where that is decided; None to look at what order does.
    """

    judges: Judges
    judged: ResultSpool[Judgment]
    result: JudgingResult
    batched: bool | None = None

    async def judge(
        self,
        pairs: Callable[[], Iterable[Pair]],
        total: int | None,
        singly: Callable[[Pair], bool] = _never,
    ) -> None:
        """Judge pairs; begin anew without batches where their order moves grades, or may.

        Args:
            pairs: Makes the pairs, those of a query together; called again to begin anew.
            total: How many there are, where that is known.
            singly: Whether a pair is kept out of batches.

        Raises:
            EndpointError, BudgetError: What was done is in `judged`.
        """
        batch = self.judges.batch
        self.result.unwrapped = self.judges.unwrapped
        observer = self.judges.job.observer
        if self.batched is not None:
            size = batch if self.batched else 1
            decided = _PositionWatch(self.result, self.judged, observer, next_look=_NO_LOOK)
            await self._run(batches(pairs(), size, singly), decided, total, batched=size > 1)
            return
        watched = _PositionWatch(self.result, self.judged, observer)
        await self._run(batches(pairs(), batch, singly), watched, total, batched=batch > 1)
        watched.look()
        effect = self.result.position
        # What a dry run does not know yet may decide otherwise.
        is_open = self.judges.is_dry and self.result.n_failed
        if is_open or (keeps_batches(effect) and not watched.is_biased):
            return
        observer(Event("note", message=why_alone(effect)))
        self.result.begin_anew()
        self.result.gave_up_batches = True
        self.judged.begin_anew()
        alone = _PositionWatch(self.result, self.judged, observer, next_look=_NO_LOOK)
        await self._run(batches(pairs(), 1), alone, total, batched=False)

    async def _run(
        self, batches: Iterable[Batch], watched: _PositionWatch, total: int | None, *, batched: bool
    ) -> None:
        judges = self.judges
        judge, workers = judges.batch_judge(batched=batched), judges.stage_workers()
        await judge_batches(self._counted(batches, watched), judge, workers, watched, total=total)

    def _counted(self, batches: Iterable[Batch], watched: _PositionWatch) -> Iterator[Batch]:
        for batch in batches:
            if watched.is_biased:
                return
            self.result.n_texts += len(batch.texts)
            yield batch


async def judge_into(
    dataset: Dataset,
    judges: Judges,
    kept_grades: KeptGrades,
    result: JudgingResult,
    pairs: Callable[[], Iterable[Pair]],
    total: int,
) -> None:
    """Judge pairs into a dataset, also what was done of a run that is stopped.

    Args:
        dataset: Gets judgments and failures, but not in a dry run.
        judges: Who judges.
        kept_grades: Knows the pairs that the judge failed on before; they are kept out of batches.
        result: Counts judgments and failures.
        pairs: As for `JudgeRun.judge`.
        total: How many there are.

    Raises:
        EndpointError, BudgetError: The run was stopped.
    """
    mode, kept = judges.job.mode, JudgedPairs(dataset)
    with judged_spool(dataset.files) as judged:
        try:
            run = JudgeRun(judges, judged, result)
            before = dataset.each_judgment() if judges.batch > 1 else ()
            singly = kept_grades.failed_before(before)
            await run.judge(lambda: kept.shown(pairs()), total, singly)
        finally:
            if judged.has_any and not mode.dry_run:
                # Where nothing came of it, what another judge said stays as it was.
                is_for_nothing = mode.again and not result.n_judged
                kept.write(judged, judges.job.observer, failures_alone=is_for_nothing)
                judges.note_in(dataset)


def why_alone(effect: PositionEffect | None) -> str:
    """Return why batches are given up, in words."""
    assert effect is not None
    if not effect.is_told:
        return (
            f"whether the place in a batch moves a grade cannot be told from {effect.n_pairs} "
            "pairs; each passage is judged alone"
        )
    return (
        "the place of a passage in its batch moves its grade "
        f"({describe_position_effect(effect)}); batches are given up, and each passage is judged "
        "alone"
    )


def describe_position_effect(effect: PositionEffect) -> str:
    """Return an effect in words."""
    if not effect.is_told:
        return f"{effect.n_pairs} pairs were seen at two places, too few to tell"
    return (
        f"{signed(effect.shift, 2)} from the first place to the last, 95 % interval "
        f"[{signed(effect.low, 2)}, {signed(effect.high, 2)}], p {effect.p:.2g}, "
        f"{effect.n_pairs} pairs"
    )
