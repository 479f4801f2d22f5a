"""What a sweep found: each configuration by measures that no chunking moves, and the best of them.

The configurations are held against the best one. That is picked by the same queries, so any two of
them are one family: with a chance of alpha at most, any is called worse that is as good. What is
not told apart from the best may be the best.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from ragforge.corpus.documents import Document
from ragforge.corpus.wordings import Wording
from ragforge.deferred import dataclass
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.evaluating.evidence import PlacedQuote, placed_quotes, reaching
from ragforge.evaluating.sweep_answers import AnswersForecast, SweepAnswers
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures.chosen_best import largest_of
from ragforge.measures.comparing import ALPHA, Comparison, RunPair, compare_with_chosen
from ragforge.measures.evidence_coverage import RetrievedText, RunEvidence, Stretch, within
from ragforge.measures.intervals import ConfidenceInterval, Ends
from ragforge.measures.measure_names import Measure
from ragforge.measures.missing_values import mean_difference_bounds, stays_worse
from ragforge.measures.sequential_several import Standings
from ragforge.measures.stratified import sample_interval
from ragforge.measures.unseen_values import interval_by_measure
from ragforge.records import Query

_FAMILY: Final = ("EvidenceR", "TokenR", "TokenP", "TokenIoU")


@dataclass(frozen=True, slots=True)
class RankedConfiguration:
    """What a configuration retrieved.

    Args:
        configuration: Which.
        n_chunks: Chunks of all documents.
        mean_chars: Their length in the mean.
        rankings: By query, best first.
        failed: Queries whose retrieval failed.
        seconds: It took to cut, index and rank.
        was_kept: Whether an earlier sweep did it.
    """

    configuration: Configuration
    n_chunks: int
    mean_chars: float
    rankings: Mapping[str, Sequence[RetrievedText]]
    failed: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    was_kept: bool = False


@dataclass(frozen=True, slots=True)
class TopResult:
    """What the top of the rankings of a configuration holds.

    Args:
        top: How much was taken.
        values: Interval of the mean by the measure's name.
        prompt_tokens: What it takes of a prompt, in the mean, estimated.
    """

    top: Top
    values: Mapping[str, ConfidenceInterval]
    prompt_tokens: float


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """How a configuration did.

    Args:
        ranked: What it retrieved.
        value: By the measure that decides.
        tops: Each budget and cutoff.
        prompt_tokens: At the top that the measure decides by.
        least: The mean of that, were each query that failed worth 0.
        comparison: Of it (b) with the best (a); None for the best.
        bounds: What its difference to the best could be, had nothing failed; None where nothing
            has, and for the best.
    """

    ranked: RankedConfiguration
    value: ConfidenceInterval
    tops: tuple[TopResult, ...]
    prompt_tokens: float
    least: float
    comparison: Comparison | None = None
    bounds: Ends | None = None

    @property
    def configuration(self) -> Configuration:
        """Which."""
        return self.ranked.configuration

    @property
    def is_worse(self) -> bool:
        """Whether it is told apart from the best, whatever failed."""
        return stays_worse(self.comparison, self.bounds)


@dataclass(frozen=True, slots=True)
class JudgedSweep:
    """Which configurations may be the best by a judge: whose prompts hold an answer.

    Args:
        configurations: In the order of the standings' runs.
        standings: By the share of prompts with a text that answers.
        least_grade: Of such a text.
        pool: Texts of all prompts, each of a query once.
        n_queries: That count.
        left_out: Queries on which a retriever failed.
        judge: Who graded.
        is_baseline: Whether no judge did, so that nothing is shown.
        n_failed: Judgments that failed.
    """

    configurations: tuple[Configuration, ...]
    standings: Standings
    least_grade: int
    pool: int
    n_queries: int
    left_out: tuple[str, ...]
    judge: str
    is_baseline: bool
    n_failed: int

    @property
    def may_be_best(self) -> tuple[Configuration, ...]:
        """Holds the best in at least 95 %, the best by the estimate first; all of a baseline."""
        if self.is_baseline:
            return self.configurations
        return tuple(self.configurations[run] for run in self.standings.may_be_best)


@dataclass(frozen=True, slots=True)
class JudgedForecast:
    """What judging the prompts of a sweep may take.

    Args:
        expected: Texts: what was typical by first hits, the least and the most.
        at_most: Texts of all prompts.
        is_exact: Whether the prompts are known, and not supposed.
        usd_a_text: None where the price is not known.
    """

    expected: tuple[int, int]
    at_most: int
    is_exact: bool
    usd_a_text: float | None


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep found.

    Args:
        dataset: Its path.
        decided_by: The measure, canonical.
        results: Best first; none where nothing could be ranked.
        n_queries: Queries measured.
        n_documents: Documents that were cut.
        failed: Configurations that could not be ranked, with the reason.
        calls, cost_usd: Calls of the embedding model that this sweep made, and what they cost;
            None where a price is not known.
        warnings: What must be known to read it.
        answers: What a system answered from what the first of them retrieved; None where none was
            asked.
        judged: Which of them may be the best by a judge; None where none was asked.
    """

    dataset: str
    decided_by: str
    results: tuple[ConfigurationResult, ...]
    n_queries: int
    n_documents: int
    failed: tuple[tuple[Configuration, str], ...] = ()
    calls: int = 0
    cost_usd: float | None = 0.0
    warnings: tuple[str, ...] = ()
    answers: SweepAnswers | None = None
    judged: JudgedSweep | None = None

    @property
    def best(self) -> ConfigurationResult:
        """The configuration with the greatest mean, failures worth 0; read it with `ties`."""
        return self.results[0]

    @property
    def ties(self) -> tuple[ConfigurationResult, ...]:
        """The configurations that are not told apart from the best, better ones first."""
        return tuple(item for item in self.results[1:] if not item.is_worse)

    @property
    def equals(self) -> tuple[ConfigurationResult, ...]:
        """The configurations whose mean is that of the best: none of these is first."""
        if self.best.ranked.failed:
            return ()
        least = self.best.least
        return tuple(
            item for item in self.results[1:] if item.least == least and not item.ranked.failed
        )


@dataclass(frozen=True, slots=True)
class SweepForecast:
    """What a sweep would do.

    Args:
        dataset: Its path.
        decided_by: The measure, canonical.
        configurations: Each with its chunks.
        kept: Those that an earlier sweep ranked.
        failed: Those that cannot be cut, with the reason.
        n_queries, n_documents: What would be asked and cut.
        calls, cached: Calls of the embedding model, and those that the store has.
        prompt_tokens: Of these calls.
        cost_usd: What they would cost; None where the price is not known.
        answers: What answers would take; None where no system is to be asked.
        judged: What judging prompts would take; None where no judge is to be asked.
    """

    dataset: str
    decided_by: str
    configurations: tuple[tuple[Configuration, int], ...]
    kept: tuple[Configuration, ...]
    failed: tuple[tuple[Configuration, str], ...]
    n_queries: int
    n_documents: int
    calls: int
    cached: int
    prompt_tokens: int
    cost_usd: float | None
    answers: AnswersForecast | None = None
    judged: JudgedForecast | None = None


def trusted_evidence(queries: Iterable[Query], texts: Mapping[str, str]) -> list[Query]:
    """Return queries whose evidence has offsets only where the documents have the quote there.

    A quote without offsets is looked for in its document.
    """
    return [
        query.model_copy(
            update={
                "evidence": tuple(
                    item
                    if item.start is not None
                    and item.end is not None
                    and _says(texts.get(item.doc_id, "")[item.start : item.end], item.quote)
                    else item.model_copy(update={"start": None, "end": None})
                    for item in query.evidence
                )
            }
        )
        for query in queries
    ]


def _says(found: str, quote: str) -> bool:
    return bool(found) and (found == quote or Wording(found).says_the_same(Wording(quote)))


@dataclass(frozen=True, slots=True)
class SweptQueries:
    """What configurations are measured on.

    Args:
        queries: All that could be drawn, with evidence that is trusted.
        measured: Ids of those that are measured.
        chosen: The part that these are; None for all.
        texts: Documents by id, as long as their files; see `laid_out_text`.
        documents: The same, as they are read.
    """

    queries: Sequence[Query]
    measured: Collection[str]
    chosen: ChosenQueries | None
    texts: Mapping[str, str]
    documents: Mapping[str, Document]


def measure_sweep(
    ranked: Sequence[RankedConfiguration],
    swept: SweptQueries,
    tops: Sequence[Top],
    decided_by: Measure,
) -> list[ConfigurationResult]:
    """Return how configurations did, best first.

    Args:
        ranked: One or more.
        swept: What they are measured on.
        tops: Budgets and cutoffs.
        decided_by: The measure that decides.
    """
    near: dict[str, set[str]] = {}
    for each in ranked:
        for query_id, texts in each.rankings.items():
            of_query = near.setdefault(query_id, set())
            of_query.update(place.document for text in texts for place in text.places)
    quotes = placed_quotes(swept.queries, swept.texts, near).quotes
    found = [_measured(each, quotes, swept, tops, decided_by) for each in ranked]
    found.sort(key=lambda pair: _order(pair[0]))
    return _compared(found, decided_by)


def _order(result: ConfigurationResult) -> tuple[float, float, str]:
    return -result.least, result.prompt_tokens, result.configuration.name


def _measured(
    ranked: RankedConfiguration,
    quotes: Mapping[str, Sequence[PlacedQuote]],
    swept: SweptQueries,
    tops: Sequence[Top],
    decided_by: Measure,
) -> tuple[ConfigurationResult, RunEvidence]:
    design = swept.chosen.design if swept.chosen else None
    evidence = RunEvidence(
        {
            key: tuple(item.quote for item in of_query)
            for key, of_query in quotes.items()
            if key in swept.measured
        },
        _reaching(ranked.rankings, swept.texts),
        ranked.failed.keys(),
        design.within(quotes) if design else None,
    )
    results = tuple(
        TopResult(
            top,
            {str(top.measure(name)): _interval(evidence, top.measure(name)) for name in _FAMILY},
            _prompt_tokens(evidence, ranked, top),
        )
        for top in tops
    )
    top = Top(decided_by.cutoff, decided_by.tokens)
    value = _interval(evidence, decided_by)
    tokens = _prompt_tokens(evidence, ranked, top)
    known = _by_query(evidence, decided_by)
    least = evidence.mean(known | dict.fromkeys(evidence.failed, 0.0)) or 0.0
    return ConfigurationResult(ranked, value, results, tokens, least), evidence


def _by_query(evidence: RunEvidence, measure: Measure) -> dict[str, float]:
    return dict(zip(evidence.query_ids, evidence.values(measure), strict=True))


def _reaching(
    rankings: Mapping[str, Sequence[RetrievedText]], documents: Mapping[str, str]
) -> dict[str, list[RetrievedText]]:
    """Return rankings whose texts reach to the next letter, as `evaluate` has them."""
    known: dict[tuple[Stretch, ...], tuple[Stretch, ...]] = {}
    found: dict[str, list[RetrievedText]] = {}
    for query_id, ranking in rankings.items():
        found[query_id] = []
        for text in ranking:
            if text.places not in known:
                known[text.places] = tuple(reaching(place, documents) for place in text.places)
            found[query_id].append(replace(text, places=known[text.places]))
    return found


def _interval(evidence: RunEvidence, measure: Measure) -> ConfidenceInterval:
    values = evidence.values(measure)
    if evidence.design is None:
        return interval_by_measure(str(measure), values)
    drawn = evidence.design.stratified(evidence.query_ids)
    return sample_interval(str(measure), values, drawn)


def _prompt_tokens(evidence: RunEvidence, ranked: RankedConfiguration, top: Top) -> float:
    taken = {
        query_id: float(
            sum(
                text.n_tokens
                for text in within(
                    ranked.rankings.get(query_id, ()), cutoff=top.cutoff, tokens=top.tokens
                )
            )
        )
        for query_id in evidence.query_ids
    }
    return evidence.mean(taken) or 0.0


def _compared(
    found: Sequence[tuple[ConfigurationResult, RunEvidence]], measure: Measure
) -> list[ConfigurationResult]:
    """Return results with the comparison of each with the first."""
    (best, best_evidence), *others = found
    of_best = _by_query(best_evidence, measure)
    pairs, bounds, design = [], [], best_evidence.design
    for result, evidence in others:
        own = _by_query(evidence, measure)
        shared = sorted(of_best.keys() & own.keys())
        asked = [*evidence.query_ids, *evidence.failed]
        bounds.append(mean_difference_bounds(of_best, own, asked, design))
        pairs.append(
            RunPair(
                best.configuration.name,
                result.configuration.name,
                str(measure),
                [of_best[key] for key in shared],
                [own[key] for key in shared],
                drawn=design.stratified(shared) if design else None,
            )
        )
    by_chance = largest_of([_by_query(evidence, measure) for _, evidence in found], design)
    comparisons = compare_with_chosen(pairs, by_chance, ALPHA)
    compared = (
        replace(result, comparison=comparison, bounds=ends)
        for (result, _), comparison, ends in zip(others, comparisons, bounds, strict=True)
    )
    return [best, *compared]
