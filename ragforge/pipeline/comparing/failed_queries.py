"""What runs may differ by in queries on which a retriever failed, by the grades that are there.

A run that failed may have been worth nothing, or what the best ranking of the graded texts is worth
(where some have no grade: of texts of the highest grade). Of another run texts without a grade may
have any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import combinations
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.evaluating.judgments import on_authors_scale, settle
from ragforge.files.set.sorted_records import ChunkTexts
from ragforge.measures.bounds import Interval, failure_bounds, judgment_bounds
from ragforge.measures.checked_samples import Floats
from ragforge.measures.hit_table import FailedJudgments, JudgedRanking
from ragforge.measures.left_out import Common, CommonQueries, LeftOut
from ragforge.measures.measure_names import Measure
from ragforge.measures.scores import SCALE_TOP
from ragforge.pipeline.comparing.tops import RunTops
from ragforge.records import Judgment

_USUAL_RELEVANT: Final = 2


@dataclass(frozen=True, slots=True)
class FailedQueries:
    """The queries on which one of some runs failed, with the grades that are known of them."""

    tops: RunTops
    measure: Measure
    grades: Mapping[str, Mapping[str, int]]
    """By query and chunk."""
    has_text: frozenset[str]
    """Retrieved chunks whose text is in the set; others cannot be judged, and count 0."""

    def common(self, query_ids: Sequence[str]) -> Common:
        """Return on which queries two runs are held against each other, where one of them failed.

        Args:
            query_ids: Those on which two runs or more did not fail.
        """
        return common_queries(query_ids, self.tops.failed, self.tops.weigh, self._possible)

    def _possible(self, query_id: str, run: int) -> Interval:
        """Return the least and the greatest that a run may be worth in a query."""
        known = self.grades.get(query_id, {})
        rel = self.measure.rel or _USUAL_RELEVANT
        top = max(SCALE_TOP, *known.values(), 0)
        judged = tuple(sorted(known.values(), reverse=True))
        if query_id in self.tops.failed[run]:
            failed = FailedJudgments([], self._n_open(query_id))
            empty = JudgedRanking(query_id, [], [], judged, 0, failed)
            return failure_bounds(empty, self.measure, rel, top, 0)
        ranked = self.tops.rankings[run].get(query_id, ())
        hits = [(rank, known[c]) for rank, c in enumerate(ranked, 1) if c in known]
        is_open = [rank for rank, c in enumerate(ranked, 1) if self._is_open(c, known)]
        ranking = JudgedRanking(
            query_id,
            [rank for rank, _ in hits],
            [grade for _, grade in hits],
            judged,
            len(ranked),
            FailedJudgments(is_open, 0),
        )
        return judgment_bounds(ranking, self.measure, rel, top)

    def _n_open(self, query_id: str) -> int:
        """Return how many texts of any grade a run that failed may have found."""
        known = self.grades.get(query_id, {})
        seen = {c for of_run in self.tops.rankings for c in of_run.get(query_id, ())}
        n = sum(self._is_open(chunk_id, known) for chunk_id in seen)
        return max(n, self.measure.cutoff or 1) if n or not known else 0

    def _is_open(self, chunk_id: str, known: Mapping[str, int]) -> bool:
        return chunk_id not in known and chunk_id in self.has_text


def common_queries(
    query_ids: Sequence[str],
    failed: Sequence[Set[str]],
    weigh: Callable[[Sequence[str]], Floats],
    possible: Callable[[str, int], Interval],
) -> Common:
    """Return on which queries two runs are held against each other, where one of them failed.

    Args:
        query_ids: Those on which two runs or more did not fail.
        failed: By run: queries on which it did.
        weigh: Returns what each of some queries stands for, 1 in the mean.
        possible: Returns what a run may be worth in a query on which one failed.
    """
    every, found = weigh(query_ids), {}
    for a, b in combinations(range(len(failed)), 2):
        lost = sorted(failed[a] | failed[b])
        if not lost:
            continue
        is_lost = frozenset(lost)
        is_kept = np.array([query_id not in is_lost for query_id in query_ids], dtype=bool)
        kept = [query_id for query_id, is_so in zip(query_ids, is_kept, strict=True) if is_so]
        ends = [(possible(query_id, a), possible(query_id, b)) for query_id in lost]
        of_kept, of_all = weigh(kept), weigh([*kept, *lost])
        weights = np.zeros(len(query_ids))
        weights[is_kept] = of_kept / every[is_kept]
        left_out = LeftOut(
            low=np.array([of_b.low - of_a.high for of_a, of_b in ends]),
            high=np.array([of_b.high - of_a.low for of_a, of_b in ends]),
            failed_in_b_alone=np.array([query_id not in failed[a] for query_id in lost]),
            drops=np.array([of_b.low - of_a.low for of_a, of_b in ends]),
            weights=of_all[len(kept) :],
            kept_weights=of_all[: len(kept)],
            kept_alone=of_kept,
        )
        found[a, b] = CommonQueries(weights, left_out)
    return found


def failed_queries(
    tops: RunTops,
    measure: Measure,
    judgments: Iterable[Judgment],
    texts: ChunkTexts,
    authors_threshold: int | None,
) -> FailedQueries:
    """Return the queries on which a run failed, with their grades.

    Args:
        tops: Of the runs.
        measure: It is decided by.
        judgments: Those that count.
        texts: Of what was retrieved.
        authors_threshold: As `Dataset.authors_threshold`.
    """
    lost = set(tops.left_out)
    settled = settle(each for each in judgments if each.query_id in lost)
    grades = {
        query_id: {
            chunk_id: on_authors_scale(one, authors_threshold).grade or 0
            for chunk_id, one in of_query.items()
            if one.grade is not None and one.grade >= 0
        }
        for query_id, of_query in settled.items()
    }
    retrieved = {c for of_run in tops.rankings for key in lost for c in of_run.get(key, ())}
    has_text = frozenset(chunk_id for chunk_id in retrieved if chunk_id in texts)
    for query_id, known in grades.items():
        _share_by_text(query_id, known, tops, texts)
    return FailedQueries(tops, measure, grades, has_text)


def _share_by_text(query_id: str, known: dict[str, int], tops: RunTops, texts: ChunkTexts) -> None:
    """Give the grade of a text to other chunks with the same one."""
    retrieved = {c for of_run in tops.rankings for c in of_run.get(query_id, ()) if c in texts}
    digests = {c: hashlib.sha256(texts[c].encode()).hexdigest() for c in sorted(retrieved)}
    by_text = {digests[c]: known[c] for c in digests if c in known}
    known |= {c: by_text[digest] for c, digest in digests.items() if digest in by_text}
