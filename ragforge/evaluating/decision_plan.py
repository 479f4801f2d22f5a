"""What a decision between two retrievers takes, as data for text and JSON."""

from collections.abc import Mapping
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.graded_by import GradedBy

POWER: Final = 0.8
ALPHA: Final = 0.05
BATCH_PRICE: Final = 0.5
"""Of a live call: what batch endpoints of the large providers ask."""
TYPICAL_SPREADS: Final[Mapping[str, float]] = {
    "nDCG": 0.3,
    "DCG": 3.35,
    "P": 0.35,
    "R": 0.3,
    "RR": 0.5,
    "AP": 0.3,
    "Success@1": 0.7,
    "Success": 0.45,
}
"""Standard deviation of the differences per query of two retrievers, and of the values of one: the
largest of 15 couples of runs of TREC Deep Learning 2019, rounded up (`benchmarks/planning.py`). For
other cutoffs and the like the name of the measure counts."""
OF_THE_POOL: Final = (0.27, 0.54)
"""Of the pool is judged by `compare --judge-as-needed`: where retrievers are far apart, and where
they are close (`benchmarks/deciding.py`)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How much two retrievers differ from query to query."""

    sd: float
    n: int
    """Queries it was seen on; 0 where it is what is typical."""
    runs: tuple[str, ...] = ()
    """The two whose it is; empty where it is what is typical."""
    n_couples: int = 0
    """How many couples of runs it is the median of."""
    graded_by: tuple[GradedBy, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedDifference:
    """What it takes to show one difference."""

    difference: float
    queries: int
    pairs: int
    """Texts to be graded for two new retrievers, all of them."""
    calls: int | None
    """None where no model is named."""
    cost_usd: float | None
    """Live; None where no model is named or its price is not known."""
    is_shown: bool
    """Whether the set that is there can show it."""

    @property
    def cost_batch_usd(self) -> float | None:
        """By a batch endpoint."""
        return None if self.cost_usd is None else BATCH_PRICE * self.cost_usd


@dataclass(frozen=True, slots=True)
class DecisionPlan:
    """What a decision between two retrievers by one measure takes."""

    measure: str
    spread: Spread
    n_queries: int
    """Of the set, that can be measured; 0 where there is no set."""
    shows: float | None
    """The least difference that these show, by the test and by the interval of a comparison; None
    with fewer than two."""
    pairs_a_query: float
    rows: tuple[PlannedDifference, ...]
    model: str = ""
    judged_share: float | None = None
    """Of the top ranks of the two runs; None where the spread is what is typical."""


@dataclass(frozen=True, slots=True)
class RulePlan:
    """What a rule of a gate can show with the queries that are there."""

    kind: str
    """`min`, `max` or `max-drop`."""
    measure: str
    threshold: float | None
    """None where the drop is to be sized."""
    n_queries: int
    sd: float
    """Of the values of a run; of the differences of two for a drop."""
    is_typical: bool
    """Whether the spread is what is typical, and not that of judged runs."""
    shows: float | None
    """How far beyond the threshold a run has to be to pass with 80 % chance; the least drop that is
    ruled out for a run that is as good. None with fewer than two queries, and where no mean can be
    so far beyond. By the interval that a gate decides on; by the spread alone where it is what is
    typical."""
    passes_unchanged: float | None
    """Chance that a run which is as good as the baseline is shown to be; None but for drops."""
    queries: int | None
    """That would show what the rule asks (a drop), or half of `shows`; None where nothing more is
    to be had."""
