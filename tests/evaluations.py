"""Evaluations and their values, made by hand, for tests of what is said of them."""

from ragforge.files.set.history import content_id
from ragforge.records import (
    Baseline,
    Digests,
    Evaluation,
    Grader,
    ItemValues,
    MeasuredMean,
    Spending,
)

JUDGE = Grader(kind="llm", model="judge-1", prompt="judge", prompt_sha256="ab", count=300)
DIGESTS = Digests(corpus="c1", queries="q1", judgments="j1", rankings="r1", prompts="p1")


def evaluation(mean=0.6, *, half=0.05, n=50, digests=None, **fields):
    """Return an evaluation with one measure, RR, whose interval reaches `half` to each side."""
    measured = MeasuredMean(
        mean=mean, low=mean - half, high=mean + half, n=n, least=mean, most=mean
    )
    made = Evaluation.model_validate(
        {
            "evaluation_id": "-",
            "at": "2026-01-01T02:00:00+00:00",
            "dataset": "set",
            "version": 1,
            "run": "bm25",
            "rel_threshold": 2,
            "n_queries": n,
            "n_failed": 0,
            "n_retrieved": 10 * n,
            "n_holes": 0,
            "measures": {"RR": measured},
            "graders": (JUDGE,),
            "digests": DIGESTS.model_copy(update=digests or {}),
            "spent": Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
            "timing": None,
            "tool_version": "1.0",
            **fields,
        }
    )
    return made.model_copy(update={"evaluation_id": content_id(made)})


def baseline(values, items=None, **fields):
    """Return an evaluation with the values of RR of items q0, q1 …, and its values."""
    n = len(values)
    made = evaluation(sum(values) / n, n=n, **fields)
    digests = items or ["same"] * n
    return Baseline(
        evaluation=made,
        items=tuple(
            ItemValues(
                query_id=f"q{index}",
                item=item,
                grades="same",
                values={"RR": value},
                ranking=(),
                n_retrieved=0,
            )
            for index, (value, item) in enumerate(zip(values, digests, strict=True))
        ),
    )
