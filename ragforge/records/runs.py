"""What retrievers returned."""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from ragforge.records.record import NonEmpty, Record

_QUESTION_DIGITS: Final = 16


class Hit(Record):
    """One retrieved chunk. Higher scores rank first; ties are broken by id, descending."""

    chunk_id: NonEmpty
    score: float


class Ranking(Record):
    """What a retriever returned for one query, best first."""

    query_id: NonEmpty
    ranking: tuple[Hit, ...]
    latency_s: Annotated[float, Field(ge=0)] | None = None
    query_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The first 16 digits of that of the question, as it was asked; "" where it is not known."""

    def for_question(self, asked: str) -> "Ranking":
        """Return it with what was asked."""
        return self.model_copy(update={"query_sha256": question_digest(asked)})


def question_digest(asked: str) -> str:
    """Return what tells a question from another one under the same id."""
    return hashlib.sha256(asked.encode()).hexdigest()[:_QUESTION_DIGITS]
