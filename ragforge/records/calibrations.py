"""What is kept of a calibration: which pairs people are asked to grade, their labels, what follows.

A sample is bound by digests to the runs, the judge and the scale that it was drawn for: labels on
pairs drawn for one question do not answer another.
"""

import json
import operator
from collections.abc import Collection
from typing import Annotated, Literal, Self

from ragforge.deferred import hashlib
from ragforge.records.model import Field, model_validator
from ragforge.records.queries import Count
from ragforge.records.record import Grade, NonEmpty, Provenance, Record

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Probability = Annotated[float, Field(gt=0, le=1)]
SampleOf = Literal["levels", "differences", "both"]


class Label(Record):
    """What one person says of one drawn pair; a row of `labels.jsonl`.

    Rows are sorted by query, chunk, labeller, look, text and wording; no two have all six alike.
    """

    query_id: NonEmpty
    chunk_id: NonEmpty
    text_sha256: Sha256
    """Of the text as it was shown; see `label_text_sha256`."""
    stratum: Count
    """Of the sample."""
    probability: Probability
    """That the pair was drawn, when the label was given."""
    labeller: NonEmpty
    grade: Grade | None
    """None where the labeller skipped the pair."""
    skipped: bool = False
    """Whether the labeller could not say."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    """From the pair's being shown to the grade; None where nobody measured."""
    at: str = ""
    """When, UTC, ISO 8601 with seconds; "" where it is not recorded."""
    look: Annotated[int, Field(ge=1)] = 1
    """2 where the labeller was shown the pair again, unasked, to see whether the grade holds."""
    decides: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether it was given to settle a pair on which labellers differed: then it counts alone."""
    wording_sha256: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """Of the question as it was shown, see `wording_digest`: it counts for no other. "" where that
    is not known."""

    @model_validator(mode="after")
    def _is_grade_or_skip(self) -> Self:
        if self.skipped == (self.grade is not None):
            raise ValueError("expected a grade from 0 to 3, or skipped: true with grade: null")
        return self


class SampledPair(Record):
    """A pair to be labelled."""

    query_id: NonEmpty
    chunk_id: NonEmpty
    """The first by id of those of the query with this text."""
    text_sha256: Sha256
    stratum: Count
    probability: Probability
    twice: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether each labeller is shown it twice, for the labeller's own agreement."""
    same_text: Annotated[tuple[NonEmpty, ...], Field(exclude_if=operator.not_)] = ()
    """Other chunks of the query's with this text: they are one unit, and have its label."""
    labelled_before: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether a person had graded it before it was drawn."""


class LabelStratum(Record):
    """Pairs of which each was as likely to be drawn as another."""

    stratum: Count
    judged: Grade | None
    """The judge's grade; None where it gave none."""
    weight_class: Count
    """From 0 for the lightest pairs of the measures; the highest is for what no run retrieved."""
    n_pairs: Count
    n_drawn: Count


class SampledRun(Record):
    """A run that a sample was drawn for."""

    name: NonEmpty
    rankings_sha256: Sha256
    """Of its queries and their chunks in order, as deep as the measures look."""


class LabelSample(Record):
    """Which pairs people are asked to grade, and how they were drawn; `sample.json`."""

    seed: int
    measures: tuple[NonEmpty, ...]
    runs: Annotated[tuple[SampledRun, ...], Field(min_length=1)]
    """The first is what all others are held against."""
    of: SampleOf
    judge: Provenance
    grades_sha256: Sha256
    """Of the judge's grades of the pairs."""
    parser: NonEmpty
    """What read the judge's replies, with its version."""
    scale: tuple[int, ...] = (0, 1, 2, 3)
    rel_threshold: Annotated[int, Field(ge=1)]
    repeat_share: Annotated[float, Field(ge=0, le=1)]
    n_pairs: Count
    """Pairs that decide, duplicates counted once."""
    n_queries: Count
    """Of the measures, with those that have no such pair."""
    strata: tuple[LabelStratum, ...]
    pairs: tuple[SampledPair, ...]
    """In the order in which they are to be labelled: the first n of them are a sample, too, where
    all before have a label. A larger sample goes on behind them."""

    @property
    def design_sha256(self) -> str:
        """Of all but which pairs are drawn: a larger sample of the same draw has the same."""
        design = self.model_dump(mode="json", exclude={"pairs"})
        for stratum in design["strata"]:
            del stratum["n_drawn"]
        return hashlib.sha256(json.dumps(design, sort_keys=True).encode()).hexdigest()


def label_text_sha256(text: str) -> str:
    """Return what tells a text from others of a query; blanks alone make no other."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


class CorrectedValue(Record):
    """A measure, or a difference, as one method has it."""

    value: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of what people would find on these queries."""
    wide_low: float | None
    wide_high: float | None
    """Those of what they would find on queries like these; None with one query, and for levels of
    nDCG by a model."""


class CorrectedFigure(Record):
    """One measure of a run, or of two, by the judge, by people, and by both."""

    measure: NonEmpty
    run: NonEmpty
    against: str = ""
    """The run whose value is taken off; "" for a level."""
    judge_only: CorrectedValue
    """As if the judge were right; its interval is of queries like these alone."""
    people_only: CorrectedValue | None
    """By the labels alone, each weighted by how likely its pair was drawn."""
    corrected: CorrectedValue | None
    without_judge: CorrectedValue | None
    """By the method of `corrected`, of a judge that gives all pairs one grade."""
    tuned: CorrectedValue | None = None
    """By PPI++, the alternative."""
    n: Count
    """Labels on its pairs."""
    n_pairs: Count
    """Pairs that it depends on."""
    n_queries: Count = 0
    """Queries that it is over: those of its run or runs, without those on which one failed; 0 where
    it is not recorded."""
    model_assisted: bool = False
    refused: str = ""
    """Why it is not corrected; "" where it is."""

    @property
    def judges_share(self) -> float | None:
        """How much narrower the judge makes the interval; below 0 where it makes it wider."""
        mine, centred = _width(self.corrected), _width(self.without_judge)
        return None if mine is None or not centred else 1 - mine / centred

    @property
    def is_difference(self) -> bool:
        """Whether it is of two runs."""
        return bool(self.against)


class LabellerAgreement(Record):
    """Two labellers on the pairs that both graded, or one on those shown twice."""

    labeller: NonEmpty
    other: NonEmpty
    n: Count
    n_same: Count
    kappa: float | None
    """None where one of them gave one grade throughout."""


class LabelCounts(Record):
    """What became of the labels."""

    n_used: Count
    """Drawn pairs with a grade that counts."""
    n_existing: Count
    """Of these, pairs whose grade by people was in the set before."""
    n_skipped: Count
    """Drawn pairs that all who saw them skipped."""
    n_open: Count
    """Drawn pairs that nobody saw yet."""
    n_beyond: Count
    """Labels behind the first drawn pair without one; they count when the gap is closed."""
    n_not_drawn: Count
    """Labels on pairs that the sample did not draw."""
    n_former: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    """Labels of another wording of their question."""
    n_vanished: Count
    """Labels on chunks whose text the set no longer has; they count where their pair was drawn."""
    n_by_hand: Count
    """People's grades in the set on pairs that were not drawn: how likely they were chosen is not
    known, so that they cannot stand for others."""
    seconds: float | None
    """Median time of a label; None where nobody measured."""
    labellers: dict[str, Count]
    """Labels by labeller."""


class Calibration(Record):
    """What people would find, by their labels on a sample; `calibration.json`."""

    name: NonEmpty
    design_sha256: Sha256
    labels_sha256: Sha256
    """Of the labels that count."""
    judge: Provenance
    parser: NonEmpty
    scale: tuple[int, ...]
    rel_threshold: Annotated[int, Field(ge=1)]
    runs: tuple[SampledRun, ...]
    measures: tuple[NonEmpty, ...]
    n_pairs: Count
    n_queries: Count
    n_ungraded: Count
    """Pairs that decide and that the judge did not grade, or failed on."""
    labels: LabelCounts
    agreement: tuple[LabellerAgreement, ...]
    figures: tuple[CorrectedFigure, ...]
    warnings: tuple[str, ...] = ()

    def figure(self, measure: str, run: str, against: str = "") -> CorrectedFigure | None:
        """Return one figure; None where it was not asked for."""
        for each in self.figures:
            if (each.measure, each.run, each.against) == (measure, run, against):
                return each
        return None

    def levels(self, runs: Collection[str], measures: Collection[str]) -> list[CorrectedFigure]:
        """Return the levels of some runs by some measures; by all there are where it has none.

        Args:
            runs: By name.
            measures: Those that somebody named; empty for all.
        """
        of_runs = [each for each in self.figures if not each.against and each.run in runs]
        return [each for each in of_runs if each.measure in measures] or of_runs


def _width(of: CorrectedValue | None) -> float | None:
    return None if of is None or of.low is None or of.high is None else of.high - of.low
