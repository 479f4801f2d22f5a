"""Weights of the judges of a panel, by people's grades, and whether they are worth anything.

Weights that are fitted and tried on the same pairs always look good. So they are tried on queries
that they were not fitted on, beside equal weights and beside the judge that was best on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.agreement import confusion, quadratic_kappa
from ragforge.measures.checked_samples import Floats
from ragforge.measures.grader_agreement import Agreement, Grader, agree

WEIGHTED: Final = "weighted"
EQUAL: Final = "equal weights"
BEST_SINGLE: Final = "best single judge"
_FOLDS: Final = 10
_LEAST_QUERIES: Final = 10
_PRIOR_PAIRS: Final = 50
"""Pairs' worth of belief that all judges are alike."""
_STEPS: Final = 500


@dataclass(frozen=True, slots=True)
class PanelWeights:
    """Weights of a panel."""

    weights: tuple[float, ...]
    """Of each judge, at least 0, their sum 1; fitted on all pairs."""
    tried: Agreement
    """Of `WEIGHTED`, `EQUAL` and `BEST_SINGLE` with people, on queries kept out of the fit."""

    @property
    def gains(self) -> bool:
        """Whether they agree better than equal ones and the best judge, beyond chance."""
        others = [grader.beyond_first["quadratic kappa"] for grader in self.tried.graders[1:]]
        return all(each.low is not None and each.low > 0 for each in others)


def panel_weights(
    query_ids: Sequence[str],
    human: Sequence[int],
    judges: Sequence[Sequence[int]],
    *,
    threshold: int = 2,
    seed: int = 0,
) -> PanelWeights:
    """Return weights of judges, with how they do on queries that they were not fitted on.

    Args:
        query_ids: Of each pair, shape (n,), of ten queries or more.
        human: The people's grades, aligned.
        judges: Two or more, each with a grade of every pair.
        threshold: Lowest relevant grade.
        seed: Decides which queries are kept out together, and the resampled queries.

    Raises:
        UsageError: There are fewer than two judges or ten queries, or lengths differ.
    """
    if len(judges) < 2:
        raise UsageError("weights of a panel: expected two judges or more")
    if not all(len(each) == len(human) == len(query_ids) for each in judges):
        raise UsageError("weights of a panel: expected a grade of every judge for each pair")
    queries, of_pair = np.unique(np.asarray(query_ids, dtype=object), return_inverse=True)
    if len(queries) < _LEAST_QUERIES:
        raise UsageError(
            f"weights of a panel: expected {_LEAST_QUERIES} queries or more, got {len(queries)}"
        )
    people, grades = np.asarray(human, dtype=np.intp), np.asarray(judges, dtype=np.intp).T
    folds = np.random.default_rng(seed).permutation(len(queries))[of_pair] % _FOLDS
    tried = {name: np.zeros(len(people), dtype=np.intp) for name in (WEIGHTED, EQUAL, BEST_SINGLE)}
    equal = np.full(grades.shape[1], 1 / grades.shape[1])
    for fold in range(_FOLDS):
        out = folds == fold
        weights = _fitted(grades[~out], people[~out])
        best = _best(grades[~out], people[~out])
        tried[WEIGHTED][out] = _rounded(grades[out] @ weights)
        tried[EQUAL][out] = _rounded(grades[out] @ equal)
        tried[BEST_SINGLE][out] = grades[out, best]
    graders = [Grader(name, found.tolist()) for name, found in tried.items()]
    return PanelWeights(
        tuple(_fitted(grades, people).tolist()),
        agree(query_ids, human, graders, threshold=threshold, seed=seed),
    )


def _fitted(grades: np.ndarray, people: np.ndarray) -> Floats:
    """Return the weights of least squares about the means, drawn towards equal ones."""
    n, k = grades.shape
    centred = grades - grades.mean(axis=0)
    prior = _PRIOR_PAIRS / n * max(float(centred.var(axis=0).mean()), 1e-9)
    square = centred.T @ centred / n + prior * np.eye(k)
    target = centred.T @ (people - people.mean()) / n + prior / k
    step = 1 / float(np.linalg.eigvalsh(square)[-1])
    weights: Floats = np.full(k, 1 / k)
    for _ in range(_STEPS):
        weights = _on_simplex(weights - step * (square @ weights - target))
    return weights


def _on_simplex(values: Floats) -> Floats:
    """Return the nearest weights of at least 0 whose sum is 1.

    Source: Duchi et al. 2008, ICML, figure 1.
    """
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > over)[-1])
    found: Floats = np.maximum(values - over[last], 0.0)
    return found


def _best(grades: np.ndarray, people: np.ndarray) -> int:
    kappas = [float(quadratic_kappa(confusion(people, column))) for column in grades.T]
    return int(np.argmax(np.nan_to_num(kappas, nan=-2.0)))


def _rounded(means: Floats) -> np.ndarray:
    """Return grades, rounded half down as a panel's are."""
    found: np.ndarray = np.ceil(np.round(means, 9) - 0.5).astype(np.intp)
    return found
