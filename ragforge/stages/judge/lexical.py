"""The offline baseline judge: shared words. A floor that an LLM judge should be shown to beat."""

from ragforge.deferred import dataclass
from ragforge.records import Judgment, Provenance
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.words import content_stems, sentences

_NAME = "offline-lexical-1"
_THRESHOLDS = ((0.85, 3), (0.6, 2), (0.3, 1))
"""Lowest share of the query's content words for a grade; chosen by hand, not fitted."""


@dataclass(frozen=True, slots=True)
class LexicalJudge:
    """Grades by the share of the query's content words that the chunk holds."""

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, pair: Pair) -> Judgment:
        """Return the judgment of a pair; never fails."""
        asked = set(content_stems(pair.query))
        held = asked & set(content_stems(pair.text))
        grade = grade_of_share(len(held) / len(asked) if asked else 0.0)
        evidence = best_sentence(pair.query, pair.text) if grade >= 2 else ""
        return Judgment(
            query_id=pair.query_id,
            chunk_id=pair.chunk_id,
            grade=grade,
            contains_answer=grade >= 2,
            evidence=evidence,
            reasoning=f"holds {len(held)} of {len(asked)} content words of the query",
            provenance=self.provenance,
        )


def share_of_words(query: str, text: str) -> float:
    """Return the share of the query's content words that a text holds; 0.0 where it has none."""
    asked = set(content_stems(query))
    return len(asked & set(content_stems(text))) / len(asked) if asked else 0.0


def grade_of_share(share: float) -> int:
    """Return the baseline's grade of a share of words."""
    return next((grade for least, grade in _THRESHOLDS if share >= least), 0)


def best_sentence(query: str, text: str) -> str:
    """Return the first sentence that shares the most words with the query."""
    asked = set(content_stems(query))
    return max(sentences(text), key=lambda part: len(asked & set(content_stems(part))), default="")
