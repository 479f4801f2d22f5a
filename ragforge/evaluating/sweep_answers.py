"""Which configurations of a sweep give the best answers, and what is not told apart from the best.

Answers are compared over the same queries, by their scores; the comparisons with the best are one
family, as those of the evidence are. What the offline baseline or a mock graded names no best.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ragforge.deferred import dataclass
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.measures.chosen_best import largest_of
from ragforge.measures.comparing import ALPHA, Comparison, RunPair, compare_with_chosen
from ragforge.measures.intervals import Ends
from ragforge.measures.missing_values import mean_difference_bounds, stays_worse
from ragforge.measures.rates import Rate, mean_rate, sample_rate
from ragforge.measures.strata import Design
from ragforge.records import AnswerGrade

_SHARE = "P"
"""A measure with values in [0, 1], as scores are."""
_NO_JUDGES = ("baseline", "mock")


@dataclass(frozen=True, slots=True)
class AnsweredConfiguration:
    """What a system answered from what a configuration retrieved.

    Args:
        configuration: Which.
        answers: Texts by query.
        grades: By query, of the answers that have one.
        failed: Why there is no grade, by query.
        prompt_tokens: What the contexts take of a prompt, in the mean, estimated.
    """

    configuration: Configuration
    answers: Mapping[str, str]
    grades: Mapping[str, AnswerGrade]
    failed: Mapping[str, str]
    prompt_tokens: float


@dataclass(frozen=True, slots=True)
class ConfigurationAnswers:
    """How good the answers of a configuration are.

    Args:
        answered: What they are.
        score: Mean score of the answers, by which the best is found.
        correct, not_attempted, hallucination: Shares of them.
        comparison: Of its scores (b) with those of the best (a); None for the best, and where no
            answer was graded.
        bounds: What the difference could be, had nothing failed; None where nothing has.
    """

    answered: AnsweredConfiguration
    score: Rate
    correct: Rate
    not_attempted: Rate
    hallucination: Rate
    comparison: Comparison | None = None
    bounds: Ends | None = None

    @property
    def configuration(self) -> Configuration:
        """Which."""
        return self.answered.configuration

    @property
    def is_worse(self) -> bool:
        """Whether it is told apart from the best, whatever failed."""
        return stays_worse(self.comparison, self.bounds)


@dataclass(frozen=True, slots=True)
class SweepAnswers:
    """The answers of a sweep.

    Args:
        system: Its spec.
        judge: Who graded.
        top: How much of each ranking it was given.
        results: Best first.
        n_queries: Queries that each configuration answered or failed on.
        n_configurations: All that were ranked; those with answers are the first of them.
        n_left_out: Queries without an expected answer.
        n_asked, n_kept: Questions with their contexts that the system was asked now, and those that
            it had answered before.
        calls, cost_usd: Calls of the model, for answers and grades, and what they cost; None where
            a price is not known.
        names_best: Whether the grades are of a judge that may name the best.
    """

    system: str
    judge: str
    top: Top
    results: tuple[ConfigurationAnswers, ...]
    n_queries: int
    n_configurations: int
    n_left_out: int = 0
    n_asked: int = 0
    n_kept: int = 0
    calls: int = 0
    cost_usd: float | None = 0.0
    names_best: bool = True

    @property
    def best(self) -> ConfigurationAnswers:
        """The configuration with the greatest score, failures worth 0.

        Read it with `ties` and `names_best`.
        """
        return self.results[0]

    @property
    def ties(self) -> tuple[ConfigurationAnswers, ...]:
        """The configurations that are not told apart from the best, better ones first."""
        return tuple(item for item in self.results[1:] if not item.is_worse)

    @property
    def equals(self) -> tuple[ConfigurationAnswers, ...]:
        """The configurations whose score is that of the best: none of these is first."""
        if self.best.answered.failed:
            return ()
        return tuple(
            item
            for item in self.results[1:]
            if item.score.mean == self.best.score.mean and not item.answered.failed
        )


@dataclass(frozen=True, slots=True)
class AnswersForecast:
    """What the answers of a sweep would take.

    Args:
        system: Its spec.
        top: How much of each ranking it would be given.
        n_configurations, n_queries: That would be answered for.
        n_left_out: Queries without an expected answer.
        asked: Questions that the system would be asked; 0 where it is the model, whose calls are
            in the estimate.
        kept: Questions that it answered before.
        estimate: Calls, tokens and money of the model, for answers and grades.
        is_exact: Whether all is ranked, so that what would be asked is known; else chunks stand in
            for what will be retrieved.
    """

    system: str
    top: Top
    n_configurations: int
    n_queries: int
    n_left_out: int
    asked: int
    kept: int
    estimate: Mapping[str, object]
    is_exact: bool


def compare_answers(
    answered: Sequence[AnsweredConfiguration], design: Design | None
) -> tuple[ConfigurationAnswers, ...]:
    """Return how good the answers of configurations are, best first.

    Args:
        answered: One or more.
        design: What their queries are a sample of; None where they are all there is.
    """
    results = [_measured(each, design) for each in answered]
    results.sort(key=_order)
    best = results[0]
    of_best = _scores(best.answered)
    pairs, compared = [], []
    for at, result in enumerate(results[1:], start=1):
        own = _scores(result.answered)
        shared = sorted(of_best.keys() & own.keys())
        if shared:
            compared.append(at)
            pairs.append(
                RunPair(
                    best.configuration.name,
                    result.configuration.name,
                    _SHARE,
                    [of_best[key] for key in shared],
                    [own[key] for key in shared],
                    drawn=design.stratified(shared) if design else None,
                )
            )
    asked = {key for each in answered for key in (*each.grades, *each.failed)}
    by_chance = largest_of([_scores(result.answered) for result in results], design)
    comparisons = compare_with_chosen(pairs, by_chance, ALPHA)
    for at, comparison in zip(compared, comparisons, strict=True):
        bounds = mean_difference_bounds(of_best, _scores(results[at].answered), asked, design)
        results[at] = replace(results[at], comparison=comparison, bounds=bounds)
    return tuple(results)


def names_best(answered: Sequence[AnsweredConfiguration]) -> bool:
    """Whether no answer was graded by a baseline or a mock."""
    return not any(
        grade.provenance is not None and grade.provenance.kind in _NO_JUDGES
        for each in answered
        for grade in each.grades.values()
    )


def _order(result: ConfigurationAnswers) -> tuple[float, float, str]:
    score = result.score
    least = score.bounds.low if score.bounds else (score.mean or 0.0)
    return -least, result.answered.prompt_tokens, result.configuration.name


def _scores(answered: AnsweredConfiguration) -> dict[str, float]:
    return {key: of.score for key, of in answered.grades.items() if of.score is not None}


def _measured(answered: AnsweredConfiguration, design: Design | None) -> ConfigurationAnswers:
    def rate(value: Callable[[AnswerGrade], float | None]) -> Rate:
        known = {
            key: found
            for key, grade in answered.grades.items()
            if (found := value(grade)) is not None
        }
        unknown = answered.grades.keys() - known.keys()
        if design is not None:
            return sample_rate(known, answered.failed.keys(), unknown, design)
        return mean_rate(list(known.values()), len(answered.failed), len(unknown))

    return ConfigurationAnswers(
        answered,
        score=rate(lambda grade: grade.score),
        correct=rate(lambda grade: float(grade.verdict == "correct")),
        not_attempted=rate(lambda grade: float(grade.verdict == "not_attempted")),
        hallucination=rate(_unsupported),
    )


def _unsupported(grade: AnswerGrade) -> float | None:
    return None if grade.has_hallucination is None else float(grade.has_hallucination)
