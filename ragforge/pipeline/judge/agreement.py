"""Judges beside people, on the pairs that people graded."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass
from ragforge.evaluating.graded_by import ALWAYS_0, BASELINE
from ragforge.evaluating.same_judge import JudgeKey, canonical_judge_keys
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.judgment_table import GradedPair, JudgmentTable
from ragforge.records import Judgment
from ragforge.stages.judge.lexical import grade_of_share, share_of_words
from ragforge.stages.judge.pairs import RELEVANT_FROM, Pair, PairId

if TYPE_CHECKING:
    from ragforge.measures.grader_agreement import Agreement, Grader


@dataclass(frozen=True, slots=True)
class _Label:
    human: int
    share: float


class HumanLabels:
    """What people gave to pairs, and the lexical baseline beside them; no texts are kept."""

    def __init__(self) -> None:
        self._labels: dict[PairId, _Label] = {}

    def add(self, pair: Pair, human_grade: int | None) -> None:
        """Take a pair; one that nobody graded is passed over."""
        if human_grade is not None:
            share = share_of_words(pair.query, pair.text)
            self._labels[PairId(pair.query_id, pair.chunk_id)] = _Label(human_grade, share)

    def agreement_with(self, judge: str, judgments: Iterable[Judgment]) -> "Agreement | None":
        """Return the agreement of a judge, the baseline and always 0 with people on the same pairs.

        The judge's score is its mean grade where it has one, else its grade.

        Args:
            judge: Its name.
            judgments: The judge's, not asked for where nobody graded a pair; of the others only
                those of graded pairs are held.

        Returns:
            None where no judged pair was graded by a person.
        """
        if not self._labels:
            return None
        mine: dict[PairId, Judgment] = {}
        for one in judgments:
            pair = PairId(one.query_id, one.chunk_id)
            # A judge of batches may have failed on a pair in one way, and graded it in the other.
            if pair in self._labels and (pair not in mine or not one.is_failed):
                mine[pair] = one
        asked = [pair for pair in self._labels if pair in mine]
        if not asked:
            return None
        from ragforge.measures.grader_agreement import Grader

        graded = {pair: grade for pair in asked if (grade := mine[pair].grade) is not None}
        means = [mine[pair].grade_mean for pair in graded]
        scores = [
            grade if mean is None else mean
            for grade, mean in zip(graded.values(), means, strict=True)
        ]
        has_means = any(mean is not None for mean in means)
        grader = Grader(judge, list(graded.values()), scores if has_means else None)
        failed = [self._labels[pair].human for pair in asked if pair not in graded]
        return self._agree([grader], list(graded), failed)

    def baseline(self) -> "Agreement | None":
        """Return the baseline's agreement with people on all pairs; None where there is no pair."""
        return self._agree([], list(self._labels), []) if self._labels else None

    def _agree(self, first: "list[Grader]", pairs: list[PairId], failed: list[int]) -> "Agreement":
        from ragforge.measures.grader_agreement import Grader, agree

        labels = [self._labels[pair] for pair in pairs]
        shares = [label.share for label in labels]
        return agree(
            [pair.query_id for pair in pairs],
            [label.human for label in labels],
            [
                *first,
                Grader(BASELINE, [grade_of_share(share) for share in shares], shares),
                Grader(ALWAYS_0, [0] * len(labels)),
            ],
            failed=failed,
            threshold=RELEVANT_FROM,
        )


def agreement_in(dataset: Dataset, judgments: JudgmentTable) -> "tuple[Agreement, ...]":
    """Return the agreement with people of each judge of a dataset's label checks.

    Where people graded pairs and no judge was asked to, how the baseline does.

    Args:
        dataset: The dataset.
        judgments: Its judgments.

    Raises:
        DataError: A file of the dataset does not hold to its format.
    """
    labels = labels_of(dataset, judgments)
    named: dict[JudgeKey, list[Judgment]] = {}
    for check in dataset.label_checks():
        by = check.provenance
        if by is not None and by.kind != "baseline" and check.source != "evidence":
            named.setdefault((by.kind, by.model, by.protocol, by.prompt_sha256), []).append(check)
    by_judge: dict[JudgeKey, list[Judgment]] = {}
    canonical = canonical_judge_keys(named)
    for key, checks in named.items():
        by_judge.setdefault(canonical[key], []).extend(checks)
    found = [
        labels.agreement_with(_judge_name(named[judge][0]), checks)
        for judge, checks in by_judge.items()
    ]
    held = tuple(agreement for agreement in found if agreement is not None)
    alone = labels.baseline()
    return held or ((alone,) if alone else ())


def labels_of(dataset: Dataset, judgments: JudgmentTable) -> HumanLabels:
    """Return the pairs of accepted queries that people graded and whose texts are in the corpus.

    Args:
        dataset: The dataset.
        judgments: Its judgments.
    """
    labels = HumanLabels()
    by_people = graded_by_people(judgments)
    if not by_people or not dataset.chunks_path.exists():
        return labels
    queries = {query.query_id: query.asked for query in dataset.queries()}
    graded = [one for one in by_people if one.query_id in queries]
    with dataset.chunk_texts({one.chunk_id for one in graded}) as texts:
        for one in graded:
            if one.chunk_id in texts:
                text = texts[one.chunk_id]
                pair = Pair(one.query_id, queries[one.query_id], one.chunk_id, text)
                labels.add(pair, one.grading.grade)
    return labels


def graded_by_people(judgments: JudgmentTable) -> list[GradedPair]:
    """Return the pairs with the grades that people gave to chunks, in the order of the judgments.

    Those of whole documents are left out: no judge grades these.
    """
    return list(
        judgments.pairs(
            lambda of: of.source == "human" and of.grade is not None and of.level == "chunk"
        )
    )


def _judge_name(check: Judgment) -> str:
    by = check.provenance
    assert by is not None
    if by.kind == "mock":
        return f"ragforge mock in the place of {by.model}"
    prompt = f"{by.prompt} {by.prompt_sha256[:8]}" if by.prompt else ""
    more = ", ".join(filter(None, [prompt, by.protocol]))
    return f"{by.model} ({more})" if more else by.model
