"""What users asked, as the log of a system tells it."""

from typing import Annotated

from pydantic import Field

from ragforge.records.record import NonEmpty, Record


class RealQuery(Record):
    """A question that users asked, without anything about who asked it or when."""

    query: NonEmpty
    """In the spelling that is most frequent; e-mail addresses and long numbers are masked."""
    count: Annotated[int, Field(ge=1)] = 1
    """How often it was asked, with spellings that are nearly the same."""
    language: str = ""
    """As the log tells it; "" where it does not."""
