"""What users asked, as the log of a system tells it."""

from typing import Annotated, Literal

from pydantic import Field

from ragforge.records.record import NonEmpty, Record

Draw = Literal["frequency", "rarity", "even"]
"""Which questions of a log are likelier drawn: those asked often, those asked seldom, or none."""


class RealQuery(Record):
    """A question that users asked, without anything about who asked it or when."""

    query: NonEmpty
    """In the spelling that is most frequent; e-mail addresses and long numbers are masked."""
    count: Annotated[int, Field(ge=1)] = 1
    """How often it was asked, with spellings that are nearly the same."""
    language: str = ""
    """As the log tells it; "" where it does not."""


class LogDraw(Record):
    """How a question of a log was drawn into a set."""

    batch: NonEmpty
    """What was drawn at once, such as a week: "2026-W47"."""
    log: NonEmpty
    """First 16 hex digits of a sha256 of what was asked in the log, and how often."""
    draw: Draw
    seed: Annotated[int, Field(ge=0)]
    wanted: Annotated[int, Field(ge=1)]
    """Questions that were to be drawn."""
    count: Annotated[int, Field(ge=1)]
    """How often it was asked in the log, with spellings that are nearly the same."""
    inclusion: Annotated[float, Field(gt=0, le=1)]
    """Probability with which the draw took it, among the questions that were not in the set."""
    share: Annotated[float, Field(gt=0, le=1)]
    """What these questions are of all that was asked in the log: what the batch stands for."""

    @property
    def weight(self) -> float:
        """How often it was asked for each time it could be drawn: weights a mean over traffic."""
        return self.count / self.inclusion
