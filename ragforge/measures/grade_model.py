"""What people would grade the pairs that none of them graded, as draws from a model.

Each step from a grade to the next has its own logit (continuation ratio). Features are the judge's
grade and where the pair was retrieved. Two effects of the query come on top, since people and judge
differ from query to query: one moves all steps alike, one moves the last against the first (some
queries have many pairs of grade 1 and none of grade 3). Both are integrated out on a grid. It is a
model and no estimate: it supplies divisors, whose errors hardly move a difference, and no values.

Source: Agresti 2010, Analysis of Ordinal Categorical Data, section 4.2, for the logits; Louis 1982,
JRSS B 44(2), for the information of the marginal likelihood.
"""

from functools import cached_property
from typing import Final

import numpy as np

from ragforge.deferred import dataclass
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import Integers

_N_COMMON: Final = 11
_N_TILTS: Final = 7
_WIDEST: Final = 2.75
_MOST_STEPS: Final = 40
_CONVERGED: Final = 1e-8


@dataclass(frozen=True, slots=True)
class GradedPool:
    """All pairs of the queries, N of them, with the grades that people gave to some."""

    queries: Integers
    """Shape (N,), from 0 to n_queries - 1."""
    features: Floats
    """Shape (N, F); each about 0 to 1."""
    grades: Integers
    """Shape (N,): the person's grade, -1 where there is none."""
    n_queries: int
    n_grades: int


@dataclass(frozen=True)
class GradeModel:
    """A fitted model: the mode of the marginal posterior, and its spread."""

    pool: GradedPool
    mode: Floats
    """Logits of the steps at a query of no effect, weights of features, sizes of both effects."""
    spread: Floats
    """A root of the covariance: spread @ normal draws is what the mode may be off by."""

    def draw(self, generator: np.random.Generator) -> Integers:
        """Return one grade for each pair, shape (N,): the person's, else one drawn."""
        weights = self.mode + self.spread @ generator.standard_normal(len(self.mode))
        pool, n_steps = self.pool, self.pool.n_grades - 1
        logits = self._effects(weights, generator)[pool.queries].T
        logits += weights[:n_steps, np.newaxis] + pool.features @ weights[n_steps:-N_EFFECTS]
        drawn = np.cumprod(generator.random(logits.shape) < _sigmoid(logits), axis=0).sum(axis=0)
        found: Integers = np.where(pool.grades >= 0, pool.grades, drawn).astype(np.intp)
        return found

    def _effects(self, weights: Floats, generator: np.random.Generator) -> Floats:
        """Return the effect of each query on each step, drawn from what its labels leave open."""
        posterior = _posterior(_likelihoods(self._steps, weights, self.pool.n_queries))
        ends = np.cumsum(posterior, axis=1)
        at = (generator.random((len(ends), 1)) > ends).sum(axis=1)
        nodes = _nodes()
        drawn = nodes[np.minimum(at, len(nodes) - 1)]
        drawn = drawn + (generator.random(drawn.shape) - 0.5) * _NODE_WIDTHS
        sizes = drawn * weights[-N_EFFECTS:]
        found: Floats = sizes[:, :1] + sizes[:, 1:] * _tilts(self.pool.n_grades - 1)
        return found

    @cached_property
    def _steps(self) -> "_Steps":
        return _steps_of(self.pool)


def fit_grades(pool: GradedPool) -> GradeModel:
    """Fit the model to the pairs that people graded.

    Args:
        pool: With at least one grade by people.
    """
    steps = _steps_of(pool)
    centre, precision = _prior(pool)
    weights = centre.copy()
    objective = _objective(steps, weights, pool, centre, precision)
    information = np.diag(precision)
    for _ in range(_MOST_STEPS):
        gradient, information = _derivatives(steps, weights, pool.n_queries)
        gradient -= precision * (weights - centre)
        information = _definite(information + np.diag(precision))
        move = np.linalg.solve(information, gradient)
        size = 1.0
        while True:
            tried = weights + size * move
            value = _objective(steps, tried, pool, centre, precision)
            if value >= objective or size < 1e-4:
                break
            size /= 2
        gain, objective = value - objective, max(value, objective)
        weights = tried if gain >= 0 else weights
        if gain < _CONVERGED:
            break
    root = np.linalg.cholesky(np.linalg.inv(information))
    return GradeModel(pool, weights, root)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps that labelled pairs took or did not take: one row each."""

    queries: Integers
    columns: Floats
    """Shape (rows, steps + F): which step it is, then the features."""
    tilts: Floats
    """From -1 at the first step to 1 at the last."""
    signs: Floats
    """1 where the pair has a higher grade than the step's, else -1."""


def _steps_of(pool: GradedPool) -> _Steps:
    labelled = np.flatnonzero(pool.grades >= 0)
    n_steps = pool.n_grades - 1
    rows: list[Integers] = []
    at: list[Integers] = []
    for step in range(n_steps):
        reached = labelled[pool.grades[labelled] >= step]
        rows.append(reached)
        at.append(np.full(len(reached), step, dtype=np.intp))
    row, step_of = np.concatenate(rows), np.concatenate(at)
    columns = np.hstack([np.eye(n_steps)[step_of], pool.features[row]])
    signs = np.where(pool.grades[row] > step_of, 1.0, -1.0)
    return _Steps(pool.queries[row], columns, _tilts(n_steps)[step_of], signs)


def _tilts(n_steps: int) -> Floats:
    return np.linspace(-1.0, 1.0, n_steps) if n_steps > 1 else np.zeros(1)


def _prior(pool: GradedPool) -> tuple[Floats, Floats]:
    """Return the centre and the precision of a weak normal prior."""
    n_steps, n_features = pool.n_grades - 1, pool.features.shape[1]
    centre = np.concatenate([np.full(n_steps, -0.5), np.zeros(n_features), [0.7, 0.5]])
    deviations = np.concatenate([np.full(n_steps, 2.0), np.full(n_features, 1.5), [0.5, 0.4]])
    return centre, deviations**-2.0


N_EFFECTS: Final = 2
_NODE_WIDTHS: Final = np.array([2 * _WIDEST / (_N_COMMON - 1), 2 * _WIDEST / (_N_TILTS - 1)])


def _nodes() -> Floats:
    """Return the points of the grid, shape (nodes, 2), in standard deviations of the effects."""
    common = np.linspace(-_WIDEST, _WIDEST, _N_COMMON)
    tilt = np.linspace(-_WIDEST, _WIDEST, _N_TILTS)
    return np.stack(np.meshgrid(common, tilt, indexing="ij"), axis=-1).reshape(-1, N_EFFECTS)


def _log_node_weights() -> Floats:
    logs = -(_nodes() ** 2).sum(axis=1) / 2
    found: Floats = logs - np.log(np.exp(logs).sum())
    return found


def _sigmoid(values: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(values / 2))
    return found


def _arguments(steps: _Steps, weights: Floats) -> Floats:
    """Return the logit of what was seen, shape (rows, nodes)."""
    fixed = steps.columns @ weights[:-N_EFFECTS]
    sizes = _nodes() * weights[-N_EFFECTS:]
    moved = sizes[:, 0] + steps.tilts[:, np.newaxis] * sizes[:, 1]
    found: Floats = steps.signs[:, np.newaxis] * (fixed[:, np.newaxis] + moved)
    return found


def _likelihoods(steps: _Steps, weights: Floats, n_queries: int) -> Floats:
    """Return the logarithm of the likelihood of each query at each node, with the node's own."""
    logs = -np.logaddexp(0.0, -_arguments(steps, weights))
    return _sums(logs, steps.queries, n_queries) + _log_node_weights()


def _sums(values: Floats, queries: Integers, n_queries: int) -> Floats:
    found = np.zeros((n_queries, *values.shape[1:]))
    np.add.at(found, queries, values)
    return found


def _posterior(logs: Floats) -> Floats:
    scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: Floats = scaled / scaled.sum(axis=1, keepdims=True)
    return found


def _objective(
    steps: _Steps, weights: Floats, pool: GradedPool, centre: Floats, precision: Floats
) -> float:
    logs = _likelihoods(steps, weights, pool.n_queries)
    highest = logs.max(axis=1, keepdims=True)
    marginal = (highest[:, 0] + np.log(np.exp(logs - highest).sum(axis=1))).sum()
    return float(marginal - 0.5 * (precision * (weights - centre) ** 2).sum())


def _derivatives(steps: _Steps, weights: Floats, n_queries: int) -> tuple[Floats, Floats]:
    """Return gradient and information of the marginal log likelihood (Louis' identity)."""
    posterior = _posterior(_likelihoods(steps, weights, n_queries))
    against = _sigmoid(-_arguments(steps, weights))
    residuals = steps.signs[:, np.newaxis] * against
    curvature = against * (1 - against) * posterior[steps.queries]
    # Over nodes a row has the same columns but for the last two, its place on the grid.
    nodes, columns, tilts = _nodes(), steps.columns, steps.tilts[:, np.newaxis]
    n_fixed = columns.shape[1]
    order = np.argsort(steps.queries, kind="stable")
    starts = np.searchsorted(steps.queries[order], np.arange(n_queries))
    scores = np.zeros((n_queries, len(nodes), n_fixed + N_EFFECTS))
    for column in range(n_fixed):
        scores[:, :, column] = _summed(residuals * columns[:, column, np.newaxis], order, starts)
    scores[:, :, n_fixed] = _summed(residuals, order, starts) * nodes[:, 0]
    scores[:, :, n_fixed + 1] = _summed(residuals * tilts, order, starts) * nodes[:, 1]
    expected = np.einsum("qg,qgp->qp", posterior, scores)
    weighted = scores * posterior[:, :, np.newaxis]
    flat = scores.reshape(-1, scores.shape[2])
    second = weighted.reshape(flat.shape).T @ flat
    information = np.zeros(second.shape)
    information[:n_fixed, :n_fixed] = (columns * curvature.sum(axis=1)[:, np.newaxis]).T @ columns
    places = (nodes[:, 0], nodes[:, 1])
    factors = (np.ones_like(tilts), tilts)
    for i in range(N_EFFECTS):
        along = columns.T @ (curvature @ places[i] * factors[i][:, 0])
        information[:n_fixed, n_fixed + i] = information[n_fixed + i, :n_fixed] = along
        for j in range(N_EFFECTS):
            both = (curvature @ (places[i] * places[j])) * (factors[i] * factors[j])[:, 0]
            information[n_fixed + i, n_fixed + j] = float(both.sum())
    return expected.sum(axis=0), information - second + expected.T @ expected


def _summed(values: Floats, order: Integers, starts: Integers) -> Floats:
    """Return the sums of rows by query, shape (queries, nodes); a query without rows has 0."""
    ends = np.append(starts[1:], len(order))
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[order], axis=0)])
    found: Floats = sums[ends] - sums[starts]
    return found


def _definite(information: Floats) -> Floats:
    """Return the matrix with eigenvalues of at least a little, so that it can be inverted."""
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    found: Floats = (vectors * np.maximum(values, 0.05)) @ vectors.T
    return found
