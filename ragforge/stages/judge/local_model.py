"""The offline baseline judge on a local model: cosines, which find what shares no word."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ragforge.deferred import dataclass
from ragforge.records import Judgment, Provenance
from ragforge.stages.judge.lexical import best_sentence
from ragforge.stages.judge.pairs import Pair

if TYPE_CHECKING:
    from ragforge.retrieval.local_models import Vectors

_NAME = "offline-minilm-1"
"""Goes up with the thresholds: grades of two numberings are grades of two judges."""
_THRESHOLDS = ((0.68, 3), (0.64, 2), (0.54, 1))
"""Lowest cosine of a grade. Fitted for quadratic kappa on the 4,337 human-judged pairs of TREC 2019
Deep Learning; on queries that were left out it is 0.35 [0.22, 0.46], where shared words have 0.16
(`benchmarks/rankers.py`)."""


class Vectorizer(Protocol):
    """Gives vectors of minilm."""

    def vectors(self, texts: Sequence[str]) -> "Vectors":
        """Return one vector of length 1 a text."""
        ...


@dataclass(frozen=True, slots=True)
class MiniLMJudge:
    """Grades by the cosine of query and chunk. Its grades are those of a baseline, as shared words.

    Args:
        model: Gives the vectors.
    """

    model: Vectorizer

    @property
    def provenance(self) -> Provenance:
        """The baseline's name, which is not that of shared words."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, pair: Pair) -> Judgment:
        """Return the judgment of a pair.

        Raises:
            ConfigError: The package of the model is damaged.
        """
        query, text = await asyncio.to_thread(self.model.vectors, [pair.query, pair.text])
        cosine = float(query @ text)
        grade = grade_of_cosine(cosine)
        return Judgment(
            query_id=pair.query_id,
            chunk_id=pair.chunk_id,
            grade=grade,
            contains_answer=grade >= 2,
            evidence=best_sentence(pair.query, pair.text) if grade >= 2 else "",
            reasoning=f"cosine {cosine:.2f} to the query, by all-MiniLM-L6-v2",
            provenance=self.provenance,
        )


def grade_of_cosine(cosine: float) -> int:
    """Return the baseline's grade of a cosine."""
    return next((grade for least, grade in _THRESHOLDS if cosine >= least), 0)
