"""Which queries of a set were asked or measured: a split, a sample, or a sample of a split."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from ragforge.records.record import NonEmpty, Record


class Stratum(Record):
    """A part of the queries of a set, and how many of it were drawn."""

    stratum: NonEmpty
    n_queries: Annotated[int, Field(ge=1)]
    n_drawn: Annotated[int, Field(ge=0)]


class Selection(Record):
    """The queries that a run or answers were made for, or an evaluation was made on."""

    split: Literal["dev", "test"] | None = Field(
        default=None, exclude_if=lambda split: split is None
    )
    """Only its queries; None for those of all splits."""
    sample: Annotated[int, Field(ge=1)] | None = Field(
        default=None, exclude_if=lambda sample: sample is None
    )
    """How many were to be drawn; None where all were taken."""
    seed: Annotated[int, Field(ge=0)] = 0
    by: str = Field(default="", exclude_if=operator.not_)
    """The field of queries whose values are the strata; "" where there is none."""
    strata: tuple[Stratum, ...] = Field(default=(), exclude_if=operator.not_)
    """What was drawn from, sorted by name; () where nothing was drawn."""
    query_ids: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Those drawn, sorted; recorded of runs and answers, so that they stay known where the set gets
    other queries."""

    @property
    def asked(self) -> tuple[object, ...]:
        """What was asked for, whatever there was to draw from."""
        return (self.split, self.sample, self.seed if self.sample else 0, self.by)

    @property
    def in_words(self) -> str:
        """How it is named in a sentence or a table, such as "sample 50, seed 7, by category"."""
        parts = [f"split {self.split}"] if self.split else []
        if self.sample:
            parts += [f"sample {self.sample}, seed {self.seed}"]
            parts += [f"by {self.by}"] if self.by else []
        return ", ".join(parts)

    @property
    def flags(self) -> str:
        """The flags that ask for it again."""
        parts = [f"--sample {self.sample} --seed {self.seed}"] if self.sample else []
        parts += [f"--by {self.by or 'none'}"] if self.sample else []
        parts += [f"--split {self.split}"] if self.split else []
        return " ".join(parts)
