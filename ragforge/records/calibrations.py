"""What is kept of a calibration: which pairs people are asked to grade, their labels, what follows.

A sample is bound by digests to the runs, the judge and the scale that it was drawn for: labels on
pairs drawn for one question do not answer another.
"""

import hashlib
import json
import operator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ragforge.records.queries import Count
from ragforge.records.record import Grade, NonEmpty, Provenance, Record

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Probability = Annotated[float, Field(gt=0, le=1)]
SampleOf = Literal["levels", "differences", "both"]


class Label(Record):
    """What one person says of one drawn pair; a row of `labels.jsonl`.

    Rows are sorted by query, chunk, labeller and look; no two have all four alike.
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
