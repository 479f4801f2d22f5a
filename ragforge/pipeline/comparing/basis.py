"""What runs are compared on: labels, measures, a part of the queries; and runs measured on it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.chunkings import (
    Chunking,
    are_cut_alike,
    grades_of_chunking,
    listed_of_chunking,
)
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.repeated_passages import Grades
from ragforge.evaluating.runs import PRIMARY, TELL_NOTHING
from ragforge.evaluating.same_judge import (
    PairJudges,
    grades_of_one_judge,
    left_out,
    lists_without,
)
from ragforge.evaluating.selection import Part
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures import Scores, evaluate, parse_measure
from ragforge.measures.listed_relevance import Ground, Listed, grounds
from ragforge.measures.measure_names import by_judgments, of_evidence
from ragforge.measures.run_evaluation import highest_grade
from ragforge.measures.scores import threshold_of
from ragforge.measures.strata import Design
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.records import is_text_id

if TYPE_CHECKING:
    from ragforge.evaluating.evidence import EvidenceBasis

COMPARED_MEASURES: Final = ("nDCG@10", "RR", "R@10", "P@5", "Success@5")
"""What is compared where nothing is asked for. Few, as each measure more makes all others harder
to win by: the order, the first hit, how much is found, how much of the top is right, any hit."""
_EXAMPLES: Final = 3


Qrels: TypeAlias = Mapping[str, Grades]


@dataclass(frozen=True, slots=True)
class TextBasis:
    """What runs with texts that are no chunks of the set are measured on.

    Args:
        chunkings: By name of such a run.
        grades: Of such texts, by query.
        folded: Queries that are measured on documents, whatever was retrieved.
    """

    chunkings: Mapping[str, Chunking]
    grades: Qrels
    folded: Collection[str]


@dataclass(frozen=True, slots=True)
class ComparisonBasis:
    """What runs are measured on."""

    where: Path
    qrels: Qrels
    measures: tuple[str, ...]
    settings: EvaluateSettings
    only_retrieved: bool
    is_binary: bool
    """Whether chunks are relevant or not, and no grade beyond."""
    warnings: list[str] = field(default_factory=list)
    is_complete: bool = False
    """Whether what has no label is not relevant."""
    is_pool: bool = False
    """Whether the labels are said to be of a pool, or of a part of what there is."""
    lacking: Collection[str] = ()
    """Documents that texts of runs name and the set lacks; see `DocumentLevel`."""
    reading: str = ""
    """What is relevant, and what a chunk without a label is, in words."""
    other_judges: str = ""
    """Whose grades are left out of the values, in a sentence; "" where none are."""
    relevant: Listed | None = None
    """What lists call relevant, where they decide binary measures; see `Ground`."""
    pair_judges: PairJudges = field(default_factory=PairJudges)
    """Who graded the queries that several judges did."""
    is_named: bool = False
    """Whether somebody named the runs."""
    part: Part | None = None
    """The part of the queries that is compared on; None where that is all."""
    texts: TextBasis | None = None
    """What runs with texts that are no chunks of the set are measured on; None without such."""
    evidence: "EvidenceBasis | None" = None
    """What measures of evidence are computed from; None where none is compared by."""
    as_retrieved: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """By run the rankings in which chunks have the ids of others, as they came; see `MeasuredRun`.
    """
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Runs of which the set knows no hit, and why that says nothing."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Which query each variant of a question is one of, see `query_variants`."""

    @property
    def design(self) -> Design | None:
        """What the queries are a sample of; None where they are all there is."""
        return self.part.design if self.part else None

    def leaves_open(self, chunk_id: str) -> bool:
        """Whether it is not known of a chunk without a label that it is not relevant."""
        return not self.is_complete or is_text_id(chunk_id) or chunk_id in self.lacking

    def are_cut_alike(self, a: str, b: str) -> bool:
        """Whether two runs are measured on the grades of the same texts."""
        return self.texts is None or are_cut_alike(self.texts.chunkings, a, b)

    def with_texts_of_files(self, texts: TextBasis, told: Iterable[str]) -> "ComparisonBasis":
        """Return the basis with what runs of files are measured on, and what is to be told of it.

        What is relevant is said by all grades: those of a run may not reach as far.
        """
        settings = self.settings.model_copy(update={"rel_threshold": self._threshold})
        warnings = [*self.warnings, *told]
        return replace(self, texts=texts, settings=settings, warnings=warnings)

    def told_of_texts(self) -> "ComparisonBasis":
        """Return the basis with a sentence on each run that goes by grades of other texts."""
        if self.texts is None or not self.by_judgments:
            return self
        told = [chunking.describe(name) for name, chunking in self.texts.chunkings.items()]
        return replace(self, warnings=[*self.warnings, *told])

    def of_run(self, name: str) -> "ComparisonBasis":
        """Return what a run is measured on: the grades of texts that are cut as its own are."""
        chunking = self.texts.chunkings.get(name) if self.texts else None
        return self._of_texts(chunking.grades, chunking.listed) if chunking else self

    def graded_once(self, name: str, query_id: str, grades: Grades) -> Grades:
        """Return the grades of a query with each passage once, as a run is measured on them."""
        texts = self.texts
        chunking = texts.chunkings.get(name) if texts else None
        if (
            texts is None
            or chunking is None
            or chunking.repeats is None
            or query_id in texts.folded
        ):
            return grades
        return chunking.repeats.graded(query_id, grades, self._threshold)

    def with_other_texts(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of some runs that have texts which are no chunks of the set."""
        cut = self.texts.chunkings if self.texts else {}
        return frozenset(name for name in names if name in cut)

    def of_all(self, names: Iterable[str]) -> "ComparisonBasis":
        """Return the grades of all that some runs are measured on, which are cut alike.

        Args:
            names: Of runs with texts that are no chunks of the set; none for runs of its chunks.
        """
        chunkings = [self.texts.chunkings[name] for name in names] if self.texts else []
        if not chunkings:
            return self

        def counts(chunk_id: str) -> bool:
            return any(chunk_id in chunking for chunking in chunkings)

        return self._of_texts(
            lambda _, of, texts, __: grades_of_chunking(of, texts, counts),
            lambda _, of, texts, threshold: listed_of_chunking(of, texts, counts, threshold),
        )

    def _of_texts(
        self,
        grades_of: Callable[[str, Grades, Grades, int], Grades],
        listed_of: Callable[[str, Iterable[str], Grades, int], list[str]],
    ) -> "ComparisonBasis":
        """Return the basis for texts that are cut alike, by the rule of `Task.of_chunking`."""
        assert self.texts is not None
        folded, texts, threshold = self.texts.folded, self.texts.grades, self._threshold
        qrels = {
            key: of if key in folded else grades_of(key, of, texts.get(key, {}), threshold)
            for key, of in self.qrels.items()
        }
        relevant = self.relevant and {
            key: of if key in folded else listed_of(key, of, texts.get(key, {}), threshold)
            for key, of in self.relevant.items()
        }
        return replace(self, qrels=qrels, relevant=relevant)

    @property
    def _threshold(self) -> int:
        return threshold_of(highest_grade(self.qrels), self.settings.rel_threshold)

    @property
    def by_judgments(self) -> tuple[str, ...]:
        """The measures that are computed from judgments."""
        return tuple(by_judgments(self.measures))

    @property
    def designs(self) -> dict[str, Design]:
        """What the queries of measures of evidence are a sample of, by measure."""
        if self.evidence is None or self.part is None or self.part.chosen.design is None:
            return {}
        design = self.part.chosen.design.within(self.evidence.quotes)
        return dict.fromkeys(of_evidence(self.measures), design)

    def on_part(self, chosen: ChosenQueries | None) -> "ComparisonBasis":
        """Return the basis on a part of the queries."""
        if chosen is None:
            return self
        lists = self.relevant or {}
        counting = [key for key, of in self.qrels.items() if of or lists.get(key)]
        design = chosen.design.within(self.qrels) if chosen.design else None
        qrels = {key: of for key, of in self.qrels.items() if key in chosen.query_ids}
        part = Part(chosen, design, chosen.query_ids.intersection(counting))
        # As the whole set has it: a part may lack its only grades beyond 1.
        threshold = threshold_of(highest_grade(self.qrels), self.settings.rel_threshold)
        settings = self.settings.model_copy(update={"rel_threshold": threshold})
        if self.relevant is not None:
            lists = {key: of for key, of in lists.items() if key in chosen.query_ids}
            return replace(self, qrels=qrels, part=part, settings=settings, relevant=lists)
        return replace(self, qrels=qrels, part=part, settings=settings)

    def with_lists(self, relevant: Listed | None) -> "ComparisonBasis":
        """Return the basis with the lists that decide binary measures, and say so, if any."""
        if not relevant:
            return self
        from ragforge.files.formats.row_relevance import lists_in_words

        threshold = threshold_of(highest_grade(self.qrels), self.settings.rel_threshold)
        told = lists_in_words(relevant, self.qrels, threshold)
        return replace(self, relevant=relevant, warnings=[*self.warnings, told])

    def on_one_judge(
        self, by: PairJudges, rankings: Sequence[Mapping[str, Sequence[str]]]
    ) -> "ComparisonBasis":
        """Return the basis with the grades of one judge in each query, as far as they reach."""
        if not by.mixed or not self.by_judgments:
            return self
        qrels, left = grades_of_one_judge(self.qrels, by, rankings, self.by_judgments)
        out = left_out(self.qrels, qrels, by)
        other_judges = (
            f"the means are not those of `evaluate`: {plural(out.total(), 'grade')} by "
            f"{by.names_of(out)} {'is' if out.total() == 1 else 'are'} left out, of chunks that no "
            "run holds as far up as the measures look"
            if out
            else ""
        )
        settings = self.settings
        if settings.rel_threshold == "auto":
            # As the set has it: what is left out may hold the only grades beyond 1.
            grades = (grade or 0 for of in self.qrels.values() for grade in of.values())
            settings = settings.model_copy(update={"rel_threshold": 2 if max(grades) > 1 else 1})
        return replace(
            self,
            qrels=qrels,
            relevant=self.relevant and lists_without(self.relevant, self.qrels, qrels),
            pair_judges=left,
            settings=settings,
            other_judges=other_judges,
        )

    def labels(self, runs: Sequence["RankedRun"]) -> tuple[Ground, ...]:
        """Return the labels that measures of runs are computed on; see `grounds`."""
        threshold = runs[0].scores.rel_threshold
        return grounds(self.qrels, self.relevant, self.by_judgments, threshold)


def comparison_basis(
    where: Path,
    qrels: Qrels,
    settings: EvaluateSettings,
    options: ComparisonOptions,
    is_binary: bool = False,
    warnings: Iterable[str] = (),
) -> ComparisonBasis:
    """Return the basis of a comparison, measures that tell nothing left out.

    Args:
        where: The directory of the set, or the file of the grades.
        qrels: Grade by query and chunk.
        settings: Measures, `COMPARED_MEASURES` where it names none, and threshold.
        options: How to compare.
        is_binary: Whether chunks are relevant or not, and no grade beyond.
        warnings: What is to be told of the labels and runs.

    Raises:
        UsageError: No measure is left.
    """
    asked = [parse_measure(name) for name in settings.measures or COMPARED_MEASURES]
    names = tuple(dict.fromkeys(str(item) for item in asked if item.name not in TELL_NOTHING))
    left = tuple(dict.fromkeys(str(item) for item in asked if item.name in TELL_NOTHING))
    told = f"{', '.join(left)}: no run is the better for it"
    if not names:
        raise UsageError(f"measures: {told}; compare by another measure, such as nDCG@10")
    every = [*warnings, *([f"left out of the comparison: {told}"] if left else [])]
    return ComparisonBasis(where, qrels, names, settings, options.only_retrieved, is_binary, every)


@dataclass(frozen=True, slots=True)
class RankedRun:
    """A run with its values."""

    name: str
    ranked: Mapping[str, Sequence[str]]
    """Chunk ids by query, best first; of queries in the qrels only."""
    failed: frozenset[str]
    """Queries whose retrieval failed."""
    scores: Scores
    values: Mapping[str, Mapping[str, float]]
    """By measure and query."""
    retrieved: Mapping[str, Sequence[str]]
    """The same rankings, each chunk under its own id though it holds the quotes of another."""


def measure_run(
    name: str,
    ranked: Mapping[str, Sequence[str]],
    asked: Collection[str],
    failed: set[str],
    basis: ComparisonBasis,
) -> RankedRun:
    """Measure a run, having made sure that it is of these judgments.

    Args:
        name: Of the run.
        ranked: Its rankings.
        asked: Every query that it holds.
        failed: Queries of the judgments whose retrieval failed.
        basis: The judgments and measures.
    """
    basis = basis.of_run(name)
    _check_judged(name, asked, failed, basis)
    qrels = basis.qrels
    known = {item: ranked[item] for item in ranked if item in qrels}
    of_run = basis.as_retrieved.get(name, {})
    retrieved = {item: of_run.get(item, ids) for item, ids in known.items()} if of_run else known
    scores = evaluate(
        qrels,
        known,
        basis.by_judgments or [PRIMARY],
        rel_threshold=basis.settings.rel_threshold,
        failed=failed,
        only_retrieved=basis.only_retrieved,
        relevant=basis.relevant,
    )
    if basis.evidence is not None:
        chosen = basis.part.chosen if basis.part else None
        evidence = basis.evidence.of_run(
            qrels.keys(), retrieved, failed, chosen, only_retrieved=basis.only_retrieved
        )
        scores = scores.with_evidence(evidence, basis.measures)
    values = {measure: scores.by_query(measure) for measure in basis.measures}
    return RankedRun(name, known, frozenset(failed), scores, values, retrieved)


def _check_judged(
    name: str, asked: Collection[str], failed: set[str], basis: ComparisonBasis
) -> None:
    """Refuse a run of other queries, and judgments without any grade.

    Raises:
        DataError: None of its queries is judged.
    """
    judged = {query_id for query_id, grades in basis.qrels.items() if grades}
    if basis.evidence is not None:
        judged |= basis.evidence.quotes.keys() & basis.qrels.keys()
    if not judged:
        raise DataError(f"{basis.where}: nothing to compare on: no answerable query is judged")
    if not asked and not failed:
        raise DataError(
            f"run {name}: is empty; a run that found nothing holds its queries all the same"
        )
    if judged.isdisjoint(asked) and judged.isdisjoint(failed):
        raise DataError(
            f"run {name}: none of its queries is judged: it holds {some_of(asked)}; "
            f"{basis.where} holds {some_of(judged)}; are they of the same dataset?"
        )


def some_of(ids: Iterable[str]) -> str:
    """Return the first of some ids, for a message."""
    ordered = sorted(ids)
    shown = ", ".join(repr(item) for item in ordered[:_EXAMPLES])
    return f"{shown}, …" if len(ordered) > _EXAMPLES else shown
