"""What people would grade the pairs that none of them graded, as draws from a model.

Each step from a grade to the next has its own logit (continuation ratio). Features are the judge's
grade and where the pair was retrieved. Two effects of the query come on top, since people and judge
differ from query to query: one moves all steps alike, one moves the last against the first (some
queries have many pairs of grade 1 and none of grade 3). Both are integrated out on a grid. It is a
model and no estimate: it supplies divisors, whose errors hardly move a difference, and no values.

Source: Agresti 2010, Analysis of Ordinal Categorical Data, section 4.2, for the logits; Louis 1982,
JRSS B 44(2), for the information of the marginal likelihood.
"""

from functools import cache, cached_property
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
_HIGHEST: Final = 700.0
"""Above, `exp` overflows."""


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
        weights = self._weights(generator)
        pool, cells = self.pool, self._cells
        logits = self._logits(weights, self._effects(weights, generator)[cells.queries])
        drawn = _stepped(_sigmoid(logits), cells.of_pair, generator)
        return np.where(pool.grades >= 0, pool.grades, drawn)

    def draw_anew(self, generator: np.random.Generator) -> Integers:
        """Return one grade for each labelled pair, as if nobody had labelled its query.

        Held against the labels it tells whether they could be of the model.
        """
        weights = self._weights(generator)
        cells = self._cells
        drawn = generator.standard_normal((self.pool.n_queries, N_EFFECTS))
        effects = self._on_steps(drawn, weights)
        logits = self._logits(weights, effects[cells.queries])
        return _stepped(_sigmoid(logits), cells.of_pair[self.pool.grades >= 0], generator)

    def _weights(self, generator: np.random.Generator) -> Floats:
        found: Floats = self.mode + self.spread @ generator.standard_normal(len(self.mode))
        return found

    def _logits(self, weights: Floats, effects: Floats) -> Floats:
        """Return the logit of each step in each cell, shape (steps, cells)."""
        n_steps = self.pool.n_grades - 1
        fixed = self._cells.features @ weights[n_steps:-N_EFFECTS]
        found: Floats = effects.T + weights[:n_steps, np.newaxis] + fixed
        return found

    def _on_steps(self, drawn: Floats, weights: Floats) -> Floats:
        """Return effects of queries on each step, shape (queries, steps)."""
        sizes = drawn * weights[-N_EFFECTS:]
        found: Floats = sizes[:, :1] + sizes[:, 1:] * _tilts(self.pool.n_grades - 1)
        return found

    def _effects(self, weights: Floats, generator: np.random.Generator) -> Floats:
        """Return the effect of each query on each step, drawn from what its labels leave open."""
        posterior = _posterior(_likelihoods(self._steps, weights, self.pool.n_queries))
        ends = np.cumsum(posterior, axis=1)
        at = (generator.random((len(ends), 1)) > ends).sum(axis=1)
        nodes = _nodes()
        drawn = nodes[np.minimum(at, len(nodes) - 1)]
        drawn = drawn + (generator.random(drawn.shape) - 0.5) * _NODE_WIDTHS
        return self._on_steps(drawn, weights)

    @cached_property
    def _cells(self) -> "_Cells":
        return _cells_of(self.pool)

    @cached_property
    def _steps(self) -> "_Steps":
        return _steps_of(self.pool, self._cells)


def fit_grades(pool: GradedPool) -> GradeModel:
    """Fit the model to the pairs that people graded.

    Args:
        pool: With at least one grade by people.
    """
    steps = _steps_of(pool, _cells_of(pool))
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
class _Cells:
    """Pairs that the model cannot tell apart: those of a query with the same features."""

    of_pair: Integers
    """Shape (N,)."""
    queries: Integers
    """Shape (cells,), ascending."""
    features: Floats
    """Shape (cells, F)."""


def _cells_of(pool: GradedPool) -> _Cells:
    order = np.lexsort((*pool.features.T, pool.queries))
    queries, features = pool.queries[order], pool.features[order]
    is_new = np.any(features[1:] != features[:-1], axis=1) | (queries[1:] != queries[:-1])
    is_first = np.concatenate([[True], is_new])
    of_pair = np.empty(len(order), dtype=np.intp)
    of_pair[order] = np.cumsum(is_first) - 1
    return _Cells(of_pair, queries[is_first], features[is_first])


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps that labelled pairs took or did not take: one row for all of a cell, by query."""

    counts: Floats
    """How many pairs there are of each row, shape (rows, 1)."""

    queries: Integers
    """Ascending."""
    present: Integers
    """Queries with rows, shape (P,)."""
    starts: Integers
    """The first row of each, shape (P,)."""
    columns: Floats
    """Shape (rows, steps + F): which step it is, then the features."""
    tilts: Floats
    """From -1 at the first step to 1 at the last."""
    signs: Floats
    """1 where the pair has a higher grade than the step's, else -1."""


def _steps_of(pool: GradedPool, cells: _Cells) -> _Steps:
    labelled = np.flatnonzero(pool.grades >= 0)
    grades, cell = pool.grades[labelled], cells.of_pair[labelled]
    n_steps = pool.n_grades - 1
    keys = []
    for step in range(n_steps):
        reached = grades >= step
        keys.append((cell[reached] * n_steps + step) * 2 + (grades[reached] > step))
    rows, counts = np.unique(np.concatenate(keys), return_counts=True)
    at, is_higher = np.divmod(rows, 2)
    of_cell, step_of = np.divmod(at, n_steps)
    columns = np.hstack([np.eye(n_steps)[step_of], cells.features[of_cell]])
    queries = cells.queries[of_cell]
    present, starts = np.unique(queries, return_index=True)
    return _Steps(
        counts[:, np.newaxis].astype(np.float64),
        queries,
        present,
        starts,
        columns,
        _tilts(n_steps)[step_of],
        np.where(is_higher, 1.0, -1.0),
    )


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


@cache
def _nodes() -> Floats:
    """Return the points of the grid, shape (nodes, 2), in standard deviations of the effects."""
    common = np.linspace(-_WIDEST, _WIDEST, _N_COMMON)
    tilt = np.linspace(-_WIDEST, _WIDEST, _N_TILTS)
    return np.stack(np.meshgrid(common, tilt, indexing="ij"), axis=-1).reshape(-1, N_EFFECTS)


@cache
def _log_node_weights() -> Floats:
    logs = -(_nodes() ** 2).sum(axis=1) / 2
    found: Floats = logs - np.log(np.exp(logs).sum())
    return found


def _stepped(chances: Floats, cells: Integers, generator: np.random.Generator) -> Integers:
    """Return grades of pairs in these cells, each step taken with its chance."""
    drawn = np.zeros(len(cells), dtype=np.intp)
    is_higher = np.ones(len(cells), dtype=bool)
    for of_step in chances:
        is_higher &= generator.random(len(cells)) < of_step[cells]
        drawn += is_higher
    return drawn


def _sigmoid(values: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(values / 2))
    return found


def _arguments(steps: _Steps, weights: Floats) -> Floats:
    """Return the logit of what was seen, shape (rows, nodes)."""
    fixed = steps.columns @ weights[:-N_EFFECTS]
    rows = np.stack([fixed, np.ones_like(fixed), steps.tilts], axis=1)
    rows *= steps.signs[:, np.newaxis]
    sizes = _nodes() * weights[-N_EFFECTS:]
    found: Floats = rows @ np.vstack([np.ones(len(sizes)), sizes.T])
    return found


def _likelihoods(steps: _Steps, weights: Floats, n_queries: int) -> Floats:
    """Return the logarithm of the likelihood of each query at each node, with the node's own."""
    # In place, and a tenth of the time of logaddexp: most of the fit is spent here.
    logs = _arguments(steps, weights)
    np.negative(logs, out=logs)
    np.minimum(logs, _HIGHEST, out=logs)
    np.exp(logs, out=logs)
    logs += 1.0
    np.log(logs, out=logs)
    logs *= steps.counts
    return _log_node_weights() - _summed(logs, steps, n_queries)


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
    residuals = steps.counts * steps.signs[:, np.newaxis] * against
    curvature = steps.counts * against * (1 - against) * posterior[steps.queries]
    # Over nodes a row has the same columns but for the last two, its place on the grid.
    nodes, columns, tilts = _nodes(), steps.columns, steps.tilts[:, np.newaxis]
    n_fixed = columns.shape[1]
    scores = np.zeros((n_queries, len(nodes), n_fixed + N_EFFECTS))
    for column in range(n_fixed):
        scores[:, :, column] = _summed(residuals * columns[:, column, np.newaxis], steps, n_queries)
    scores[:, :, n_fixed] = _summed(residuals, steps, n_queries) * nodes[:, 0]
    scores[:, :, n_fixed + 1] = _summed(residuals * tilts, steps, n_queries) * nodes[:, 1]
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


def _summed(values: Floats, steps: _Steps, n_queries: int) -> Floats:
    """Return the sums of rows by query, shape (queries, nodes); a query without rows has 0."""
    found = np.zeros((n_queries, values.shape[1]))
    found[steps.present] = np.add.reduceat(values, steps.starts, axis=0)
    return found


def _definite(information: Floats) -> Floats:
    """Return the matrix with eigenvalues of at least a little, so that it can be inverted."""
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    found: Floats = (vectors * np.maximum(values, 0.05)) @ vectors.T
    return found
