"""From several votes to one judgment: all are kept, the mean and the strict grade are computed."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from ragforge.errors import CallError
from ragforge.records import Judgment, Provenance, Vote
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.reply import GRADES, Ballot, entropy_bits, mean_of


def settle(
    pair: Pair, ballots: Sequence[Ballot], lost: Sequence[Vote], provenance: Provenance
) -> Judgment:
    """Return the judgment that votes come to.

    Every model counts alike, however many of its votes there are. The grade is the mean rounded to
    the nearest, halves down: where judges are split, the strict side is taken.

    Args:
        pair: What was judged.
        ballots: At least one; of one alone, the judgment is what it says.
        lost: Votes that failed; kept beside the others.
        provenance: Who judged; a mock where it cast any of the votes.
    """
    several = len(ballots) + len(lost) > 1
    grade = strict_grade(ballots) if several else ballots[0].grade
    spoken = _spokesman(ballots, grade)
    unsure = several or spoken.odds is not None
    if any(ballot.is_mock for ballot in ballots):
        provenance = provenance.model_copy(update={"kind": "mock"})
    return Judgment(
        query_id=pair.query_id,
        chunk_id=pair.chunk_id,
        grade=grade,
        contains_answer=grade >= 2,
        evidence=spoken.evidence if grade > 0 else "",
        reasoning=spoken.reasoning,
        grade_mean=round(_mean_of_models(ballots), 6) if unsure else None,
        entropy_bits=round(entropy_bits(_shared_odds(ballots)), 6) if unsure else None,
        votes=in_order([*(ballot.vote for ballot in ballots), *lost]) if several else (),
        provenance=provenance,
    )


def strict_grade(ballots: Sequence[Ballot]) -> int:
    """Return the mean of the models' mean grades, rounded, halves down."""
    by_model: dict[str, list[int]] = {}
    for ballot in ballots:
        by_model.setdefault(ballot.vote.model, []).append(ballot.grade)
    means = [Fraction(sum(grades), len(grades)) for grades in by_model.values()]
    return ceil(sum(means, Fraction(0)) / len(means) - Fraction(1, 2))


class NoQuorumError(CallError):
    """Half of the votes or more failed; those that were cast are kept.

    Args:
        first: The first of the errors.
        message: What happened.
        call_keys: Keys of all replies that were no use.
        votes: All votes, the failed ones too.
    """

    def __init__(
        self, first: CallError, message: str, call_keys: tuple[str, ...], votes: tuple[Vote, ...]
    ) -> None:
        super().__init__(first.kind, message, first.raw, call_keys=call_keys)
        self.votes = votes


def refuse_below_quorum(
    ballots: Sequence[Ballot], errors: Sequence[CallError], lost: Sequence[Vote]
) -> None:
    """Refuse to let a minority speak for all.

    Args:
        ballots: Votes that were cast.
        errors: Why the others failed.
        lost: The others.

    Raises:
        NoQuorumError: Half of the votes or more failed.
    """
    votes = len(ballots) + len(errors)
    if 2 * len(ballots) > votes:
        return
    first = errors[0]
    keys = tuple(key for error in errors for key in error.call_keys)
    told = f"{len(errors)} of {votes} votes failed, the first: {first}" if votes > 1 else str(first)
    every = in_order([*(ballot.vote for ballot in ballots), *lost])
    raise NoQuorumError(first, told, keys, every if votes > 1 else ())


def _mean_of_models(ballots: Sequence[Ballot]) -> float:
    by_model: dict[str, list[float]] = {}
    for ballot in ballots:
        weighted = ballot.vote.grade_mean
        value = ballot.grade if weighted is None else weighted
        by_model.setdefault(ballot.vote.model, []).append(value)
    means = [sum(values) / len(values) for values in by_model.values()]
    return sum(means) / len(means)


def _spokesman(ballots: Sequence[Ballot], grade: int) -> Ballot:
    """Return the ballot whose words stand for the grade: on its side of 2, and nearest to it."""
    return min(ballots, key=lambda one: ((one.grade >= 2) != (grade >= 2), abs(one.grade - grade)))


def _shared_odds(ballots: Sequence[Ballot]) -> tuple[float, ...]:
    """Return the mean odds of the grades; a vote without any has all on its grade."""
    odds = [
        ballot.odds or tuple(float(grade == ballot.grade) for grade in GRADES) for ballot in ballots
    ]
    return tuple(sum(column) / len(odds) for column in zip(*odds, strict=True))


def in_order(votes: Sequence[Vote]) -> tuple[Vote, ...]:
    """Return votes as a judgment keeps them: by model, vote and order."""
    return tuple(sorted(votes, key=lambda vote: (vote.model, vote.vote, vote.permutation)))


def last_key(error: CallError) -> str:
    """Return the key of the reply that a vote failed on, "" where none came."""
    return error.call_keys[-1] if error.call_keys else ""


def weighted(odds: tuple[float, ...] | None) -> float | None:
    """Return the weighted grade that goes into a vote."""
    return None if odds is None else round(mean_of(odds), 6)
