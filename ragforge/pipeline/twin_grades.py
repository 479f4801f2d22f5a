"""Grades for chunks that read as a graded one does: the same text is never judged twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.survey import Survey
from ragforge.records import Judgment
from ragforge.stages.judge.pairs import PairId

_RANKS: Final = {"human": 0, "judge": 1, "carried": 2}
"""Whose word is taken where several chunks with one text have a grade. What evidence says is not
among them: it follows from quotes, whose places are known."""


class TwinGrades:
    """Finds grades by the text of their chunk; blanks are folded.

    Args:
        survey: The corpus; of it digests of the chunks that were looked at are held.
    """

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._digests: dict[str, str | None] = {}

    def of(
        self,
        pairs: Sequence[PairId],
        judgments: Callable[[], Iterable[Judgment]],
        stands: Callable[[Judgment], bool],
    ) -> list[Judgment]:
        """Return grades for those of some pairs whose text has one under another chunk id.

        Args:
            pairs: Without a grade.
            judgments: Reads those that are there; not asked where there is no pair.
            stands: Whether one counts.

        Returns:
            As of chunks that were copied, sorted by query and chunk.
        """
        wanted: dict[str, dict[str, list[str]]] = {}
        for query_id, chunk_id in pairs:
            if digest := self._digest(chunk_id):
                wanted.setdefault(query_id, {}).setdefault(digest, []).append(chunk_id)
        found: dict[tuple[str, str], Judgment] = {}
        for one in judgments() if wanted else ():
            texts = wanted.get(one.query_id)
            if texts is None or one.grade is None or one.source not in _RANKS or not stands(one):
                continue
            for chunk_id in self._twins(one, texts):
                pair = one.query_id, chunk_id
                found[pair] = min(found.get(pair, one), one, key=_rank)
        return [_copied(found[pair], pair[1]) for pair in sorted(found)]

    def _twins(self, judgment: Judgment, texts: Mapping[str, Sequence[str]]) -> Sequence[str]:
        digest = self._digest(judgment.chunk_id)
        twins = texts.get(digest, ()) if digest else ()
        return [chunk_id for chunk_id in twins if chunk_id != judgment.chunk_id]

    def _digest(self, chunk_id: str) -> str | None:
        """Return what a chunk reads; None where it is not in the corpus."""
        if chunk_id not in self._digests:
            try:
                self._digests[chunk_id] = text_sha256(self._survey.chunk(chunk_id).text)
            except KeyError:
                self._digests[chunk_id] = None
        return self._digests[chunk_id]


def _rank(judgment: Judgment) -> tuple[int, str]:
    return _RANKS[judgment.source], judgment.chunk_id


def _copied(judgment: Judgment, chunk_id: str) -> Judgment:
    original = judgment.copied_from or judgment.chunk_id
    return judgment.model_copy(
        update={"chunk_id": chunk_id, "source": "carried", "copied_from": original}
    )
