"""Votes on a pair, and what they come to: all are kept, mean and strict grade are computed."""

from collections.abc import Sequence
from math import ceil, log2

from ragforge.deferred import dataclass, fractions
from ragforge.errors import CallError
from ragforge.records import Judgment, Provenance, Vote
from ragforge.stages.judge.pairs import Pair

GRADES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Ballot:
    """A vote with what the judge said for it, and how sure it was.

    Args:
        vote: Its grade is not None.
        reasoning: The judge's.
        evidence: The passage's own words, "" where none were given.
        odds: Probability of each grade; None where the endpoint gave none that can be used.
        is_mock: Whether `ragforge mock` cast it.
    """

    vote: Vote
    reasoning: str
    evidence: str
    odds: tuple[float, ...] | None = None
    is_mock: bool = False

    @property
    def grade(self) -> int:
        """The grade of the vote."""
        assert self.vote.grade is not None
        return self.vote.grade


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
    means = [fractions.Fraction(sum(grades), len(grades)) for grades in by_model.values()]
    return ceil(sum(means, fractions.Fraction(0)) / len(means) - fractions.Fraction(1, 2))


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


def mean_of(odds: tuple[float, ...]) -> float:
    """Return the grade weighted by its odds, in [0, 3]."""
    return min(3.0, sum(grade * share for grade, share in zip(GRADES, odds, strict=True)))


def entropy_bits(odds: tuple[float, ...]) -> float:
    """Return the entropy of odds: 0 where one grade has all, 2 where all four are alike."""
    return min(2.0, max(0.0, -sum(share * log2(share) for share in odds if share > 0)))


def in_order(votes: Sequence[Vote]) -> tuple[Vote, ...]:
    """Return votes as a judgment keeps them: by model, vote and order."""
    return tuple(sorted(votes, key=lambda vote: (vote.model, vote.vote, vote.permutation)))


def lost_vote(model: str, error: CallError, *, vote: int = 0, permutation: int = 0) -> Vote:
    """Return the record of a vote that failed, with the key of the reply it failed on."""
    return Vote.model_validate(
        {
            "model": model,
            "grade": None,
            "failure": error.kind,
            "vote": vote,
            "permutation": permutation,
            "call_key": error.call_keys[-1] if error.call_keys else "",
        }
    )


def weighted(odds: tuple[float, ...] | None) -> float | None:
    """Return the weighted grade that goes into a vote."""
    return None if odds is None else round(mean_of(odds), 6)
