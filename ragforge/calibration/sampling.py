"""Drawing the pairs that people are asked to grade, and adding to a sample without spoiling it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.calibration.population import (
    UNGRADED,
    LabelPopulation,
    Question,
    load_population,
)
from ragforge.calibration.worded_labels import worded_labels
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import judge_text
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.llm.structured import PARSER
from ragforge.measures.agreement import N_GRADES
from ragforge.measures.corrected import Integers
from ragforge.measures.label_sampling import label_order, label_sizes, label_strata
from ragforge.records import Label, LabelSample, LabelStratum, Provenance, SampledPair

USUAL_LABELS: Final = 200
USUAL_REPEATS: Final = 0.1


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """How to draw."""

    n: int = USUAL_LABELS
    seed: int = 0
    repeat_share: float = USUAL_REPEATS
    """Share of the pairs that each labeller is shown twice."""
    again: bool = False
    """Whether a sample for another question is replaced; its labels count where drawn again."""

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"-n: expected a number of at least 1, got {self.n}")
        if not 0 <= self.repeat_share <= 1:
            raise UsageError(f"--repeat-share: expected 0 to 1, got {self.repeat_share}")


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """A sample, and what came of drawing it."""

    sample: LabelSample
    n_before: int
    """Pairs that were drawn before and still are."""
    n_labels_kept: int
    """Labels that are there and count."""
    n_labels_left: int
    """Labels that are there on pairs that are no longer drawn."""
    n_ungraded: int
    """Pairs that decide and that the judge did not grade."""
    n_vanished: int
    judge_before: Provenance | None = None
    """The judge of the sample that it replaces; None where that is the same, or there is none."""


def draw_sample(
    dataset: Dataset, files: CalibrationFiles, question: Question, options: SampleOptions
) -> DrawnSample:
    """Draw the pairs that people are asked to grade, or more of them, and write which.

    Raises:
        DataError: There is a sample for another question, or what `load_population` raises.
        UsageError: No pair decides, or so few are asked for that some kind has none.
    """
    with files.alone():
        old = files.sample() if files.exists else None
        population = load_population(dataset, question)
        if population.n_vanished:
            raise DataError(
                f"{dataset.path}: {plural(population.n_vanished, 'retrieved text')} cannot be "
                "shown to anybody, as no chunk has it; retrieve anew, or bring the chunks in"
            )
        if not len(population.units) or not population.weights().any():
            raise UsageError(
                "no pair decides: the runs rank alike as far as the measures look, so that the "
                "difference is 0 whatever people say"
            )
        sample, known = _with_pairs(population, options, max(options.n, _size(old))), old
        if old is not None and old.design_sha256 != sample.design_sha256:
            if not options.again:
                raise DataError(
                    f"{files.folder}: has a sample for another question: "
                    f"{'; '.join(differences(old, sample))}; draw under another --name, or "
                    "--again: labels on pairs that are drawn again still count"
                )
            sample, known = _with_pairs(population, options, options.n), None
        labels = worded_labels(dataset, files).now
        _refuse_unjudged(dataset, population, labels)
        sample = _noting_labelled(sample, known, labels, dataset)
        files.write_sample(sample)
    labels = [label for label in labels if label.grade is not None]
    drawn = {(pair.query_id, pair.text_sha256) for pair in sample.pairs}
    kept = sum((label.query_id, label.text_sha256) in drawn for label in labels)
    before = {(pair.query_id, pair.text_sha256) for pair in old.pairs} if old else set()
    return DrawnSample(
        sample,
        len(before & drawn),
        kept,
        len(labels) - kept,
        population.n_ungraded,
        population.n_vanished,
        judge_before=old.judge if old is not None and old.judge != sample.judge else None,
    )


def differences(old: LabelSample, new: LabelSample) -> list[str]:
    """Return in what two samples are not of one draw, a clause each."""
    names = [run.name for run in old.runs]
    is_other = (old.scale, old.rel_threshold) != (new.scale, new.rel_threshold)
    found = [
        f"run {a.name} changed after sampling"
        for a, b in zip(old.runs, new.runs, strict=False)
        if a.name == b.name and a.rankings_sha256 != b.rankings_sha256
        if old.measures == new.measures
    ]
    told = {
        f"its runs are {', '.join(names)}": names != [run.name for run in new.runs],
        f"its measures are {', '.join(old.measures)}": old.measures != new.measures,
        f"it is of {old.of}": old.of != new.of,
        f"its judge is {judge_text(old.judge)}": old.judge != new.judge,
        f"the judge's replies were read by {old.parser!r}": old.parser != new.parser,
        "its scale or threshold is another": is_other,
        f"its seed is {old.seed}": old.seed != new.seed,
        f"its share of repeats is {old.repeat_share}": old.repeat_share != new.repeat_share,
        f"it is of {old.n_queries:,} queries, and there are {new.n_queries:,}": (
            old.n_queries != new.n_queries
        ),
    }
    found += [clause for clause, is_so in told.items() if is_so]
    return found or ["the judge's grades changed after sampling"]


def strata_of(population: LabelPopulation) -> Integers:
    """Return the stratum of each pair, shape (N,)."""
    return label_strata(population.weights(), population.judged, N_GRADES)


def _noting_labelled(
    sample: LabelSample, known: LabelSample | None, labels: Iterable[Label], dataset: Dataset
) -> LabelSample:
    """Return a sample that says which of its pairs people had graded before they were drawn.

    Args:
        sample: Drawn now.
        known: The smaller sample of the same draw, whose pairs stay as they are.
        labels: All there are.
        dataset: Whose judgments are looked at.
    """
    there = known.pairs if known else ()
    said = {(pair.query_id, pair.text_sha256): pair.labelled_before for pair in there}
    labelled = {(label.query_id, label.text_sha256) for label in labels}
    graded = {
        (one.query_id, one.chunk_id) for one in dataset.each_judgment() if one.source == "human"
    }

    def is_from_before(pair: SampledPair) -> bool:
        key = (pair.query_id, pair.text_sha256)
        chunk_ids = (pair.chunk_id, *pair.same_text)
        return said.get(key, key in labelled or any((key[0], one) in graded for one in chunk_ids))

    pairs = tuple(
        pair.model_copy(update={"labelled_before": True}) if is_from_before(pair) else pair
        for pair in sample.pairs
    )
    return sample.model_copy(update={"pairs": pairs})


def _refuse_unjudged(
    dataset: Dataset, population: LabelPopulation, labels: Iterable[Label]
) -> None:
    """Refuse a judge that graded hardly a pair that people labelled, and most of the others.

    Raises:
        DataError: It is such a judge: all labels would be of pairs without its grade.
    """
    seen = {(label.query_id, label.text_sha256) for label in labels}
    is_seen = np.array([(unit.query_id, unit.text_sha256) in seen for unit in population.units])
    has_none = population.judged == UNGRADED
    n_seen, n_without = int(is_seen.sum()), int((is_seen & has_none).sum())
    others = ~is_seen
    if n_seen and 2 * n_without > n_seen and 2 * int((others & has_none).sum()) < others.sum():
        raise DataError(
            f"{dataset.path}: {judge_text(population.judge)} graded {n_seen - n_without:,} of the "
            f"{plural(n_seen, 'pair')} that people labelled; `ragforge judge --on-labels` with "
            "that model grades them, and people's labels stay"
        )


def _size(old: LabelSample | None) -> int:
    return len(old.pairs) if old else 0


def _with_pairs(population: LabelPopulation, options: SampleOptions, n: int) -> LabelSample:
    question, numbers = population.question, population.digests(options.seed)
    strata = strata_of(population)
    sizes = label_sizes(
        population.weights(), population.judged, N_GRADES, ideal=question.needs_ideal
    )
    chosen = label_order(strata, sizes, numbers.places, n)
    totals, drawn = np.bincount(strata), np.bincount(strata[chosen], minlength=strata.max() + 1)
    design = LabelSample(
        seed=options.seed,
        measures=tuple(question.parsed),
        runs=population.runs,
        of=question.of,
        judge=population.judge,
        grades_sha256=population.grades_sha256,
        parser=PARSER,
        rel_threshold=question.rel_threshold,
        repeat_share=options.repeat_share,
        n_pairs=len(population.units),
        n_queries=len(population.query_ids),
        strata=_strata(totals.tolist(), drawn.tolist()),
        pairs=(),
    )
    pairs = []
    for i in chosen.tolist():
        unit, stratum = population.units[i], int(strata[i])
        pairs.append(
            SampledPair(
                query_id=unit.query_id,
                chunk_id=unit.chunk_id,
                text_sha256=unit.text_sha256,
                stratum=stratum,
                probability=int(drawn[stratum]) / int(totals[stratum]),
                twice=bool(numbers.repeats[i] < options.repeat_share),
                same_text=unit.same_text,
            )
        )
    return design.model_copy(update={"pairs": tuple(pairs)})


def _strata(totals: Sequence[int], drawn: Sequence[int]) -> tuple[LabelStratum, ...]:
    return tuple(
        LabelStratum(
            stratum=stratum,
            judged=None if stratum % (N_GRADES + 1) == UNGRADED else stratum % (N_GRADES + 1),
            weight_class=stratum // (N_GRADES + 1),
            n_pairs=total,
            n_drawn=count,
        )
        for stratum, (total, count) in enumerate(zip(totals, drawn, strict=True))
        if total
    )


def sampled_question(sample: LabelSample) -> Question:
    """Return the question that a sample was drawn for."""
    return Question(
        runs=tuple(run.name for run in sample.runs),
        measures=sample.measures,
        of=sample.of,
        judge=sample.judge,
        rel_threshold=sample.rel_threshold,
    )


def population_of(dataset: Dataset, sample: LabelSample) -> LabelPopulation:
    """Return the pairs that a sample was drawn from, as they are now.

    Raises:
        DataError: They are not those any more: a run, the judge, its grades, or what reads its
            replies changed; the message tells which.
    """
    drawn = [(pair.query_id, pair.chunk_id, pair.text_sha256) for pair in sample.pairs]
    population = load_population(dataset, sampled_question(sample), drawn)
    now = replace_bound(sample, population)
    if now.design_sha256 != sample.design_sha256:
        now = now.model_copy(update={"n_queries": len(population.query_ids)})
        raise DataError(
            f"{dataset.path}: the calibration does not fit any more: "
            f"{'; '.join(differences(sample, now))}; `ragforge calibrate sample --again` draws for "
            "what is there now, and keeps the labels that still count"
        )
    return population


def replace_bound(sample: LabelSample, population: LabelPopulation) -> LabelSample:
    """Return a sample with all that it is bound by as it is now."""
    return sample.model_copy(
        update={
            "runs": population.runs,
            "judge": population.judge,
            "grades_sha256": population.grades_sha256,
            "parser": PARSER,
        }
    )
