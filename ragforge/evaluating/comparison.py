"""A comparison of runs, or of answer systems, as data for text, JSON and page."""

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural, signed
from ragforge.evaluating.graded_by import Correction, GradedBy
from ragforge.evaluating.selection import Part

if TYPE_CHECKING:
    from ragforge.measures.comparing import Comparison
    from ragforge.measures.intervals import Ends
from ragforge.records import Calibration

Outcome: TypeAlias = Literal["A", "B", "TIE", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class MovedQuery:
    """A query that two runs treat differently."""

    query_id: str
    text: str
    """"" where only ids are known."""
    value_a: float
    value_b: float
    first_a: int | None = None
    first_b: int | None = None
    """Ranks of the first relevant chunk; None where none came, or for answers."""

    @property
    def diff(self) -> float:
        """How much higher b is."""
        return self.value_b - self.value_a


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Retrieved chunks without a grade, above all those that only one of two runs retrieved."""

    n_only_a: int
    n_only_b: int
    """As far down as the measure looks."""
    bounds: "Ends"
    """Of the difference, over every grade that these and the `n_both` could have. Chunks that
    nobody retrieved are not in it: were one relevant, all values of the query would shrink."""
    n_both: int = 0
    """Chunks without a grade that both retrieved; they move a difference by where they stand."""


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """How much higher b is, by a judge's grades and people's labels."""

    judge_only: float
    value: float
    low: float
    high: float
    """Ends of the 95 % interval over these queries."""
    wide_low: float
    wide_high: float
    """Over queries like these, wide enough for all comparisons made: what decides."""
    n: int
    n_pairs: int
    """Labels, on so many pairs that it depends on."""

    @property
    def winner(self) -> Outcome:
        """Which is better: the interval over queries like these leaves 0 out."""
        if self.wide_low > 0:
            return "B"
        return "A" if self.wide_high < 0 else "TIE"


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure of two runs, with what else must be known."""

    comparison: "Comparison"
    n_left_out: int
    """Queries in which one of the two has no value: something failed, or an answer was not given,
    graded or checked."""
    failure_bounds: "Ends | None"
    """Of the difference, were nothing failed; None where nothing did."""
    unjudged: Unjudged | None
    """None where there is none, and for answers. Where a judgment failed the chunk is in
    `failure_bounds`, and not here."""
    gained: tuple[MovedQuery, ...]
    lost: tuple[MovedQuery, ...]
    """The queries in which b is better and worse by most, most first."""
    withheld: str = ""
    """Why nobody is called better whatever the numbers say, such as that the grades are not of one
    judge: a clause that follows a colon. "" where the numbers decide."""

    corrected: CorrectedDifference | None = None
    """By people's labels, where a calibration is used: then it decides."""
    n_open: int = 0
    """Queries left out, and those that count although a judgment failed: what `failure_bounds` rest
    on."""

    fair_measure: str = ""
    """By what to compare the two instead, where the one ahead returns much more text, which a
    measure of evidence @k rises with; "" where that is not so."""
    has_uneven_labels: bool = False
    """Whether the winner is withheld as people graded what one run found more than the other's."""
    not_by_question: str = ""
    """Why a winner would be one of several wordings of a few questions: with each question counted
    once none is shown. "" where one is, or no question has several wordings."""

    @property
    def lacks_questions(self) -> bool:
        """Whether the winner is withheld as it is one of several wordings of a few questions."""
        return bool(self.withheld) and self.withheld == self.not_by_question

    @property
    def outcome(self) -> Outcome:
        """Which is better: what the numbers say, unless the winner is withheld."""
        if self.withheld:
            return "UNKNOWN"
        return self.comparison.winner if self.corrected is None else self.corrected.winner

    @property
    def diff(self) -> float | None:
        """How much higher b is, by what decides."""
        return self.comparison.diff if self.corrected is None else self.corrected.value

    @property
    def better(self) -> str | None:
        """The name of the better one; None where no difference is shown, or it is not known."""
        return {"A": self.comparison.a, "B": self.comparison.b}.get(self.outcome)

    @property
    def is_open(self) -> bool:
        """Whether the numbers name a winner, and failures could turn it round."""
        ends, decided = self.failure_bounds, self.corrected or self.comparison
        has_winner = decided.winner in ("A", "B")
        return has_winner and ends is not None and ends.low <= 0 <= ends.high

    @property
    def why_open(self) -> str:
        """Why failures leave open whether the better one is better; "" where they do not."""
        ends = self.failure_bounds
        if ends is None or not self.is_open:
            return ""
        return open_text(self.n_open, ends)


def open_text(n_queries: int, ends: "Ends") -> str:
    """Return a note that failures could turn a difference round.

    Args:
        n_queries: Left out, or with a judgment that failed.
        ends: Of the difference, were nothing failed.
    """
    counted = plural(n_queries, "query is", "queries are")
    return (
        f"{counted} left out or without a judgment, as something failed or is missing; with it "
        f"the difference could be anything from {signed(ends.low)} to {signed(ends.high)}; "
        "mend that first"
    )


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """All comparisons of one call: one family."""

    of: str
    """`runs` or `answers`."""
    names: tuple[str, ...]
    """In the order given."""
    measures: tuple[str, ...]
    items: tuple[Compared, ...]
    """Pair by pair, in each the measures in their order."""
    letters: dict[str, dict[str, str]]
    """By measure and run: runs that share a letter were not told apart. Without measures in which a
    winner is withheld; empty with a baseline, as not all runs are compared then."""
    means: dict[str, dict[str, float | None]]
    """By measure and run, over all queries in which the run has a value."""
    alpha: float
    rel_threshold: int | None
    """None for answers."""
    judged_by: tuple[str, ...]
    """In words; empty where it is not known."""
    warnings: tuple[str, ...]
    by_lists: bool = False
    """Whether lists say what is relevant in binary measures, rather than the threshold."""
    reading: str = ""
    """What is relevant, and what a chunk without a label is, in words; "" where neither is told."""
    other_judges: str = ""
    """Whose grades are left out of the values, in a sentence; "" where none are."""
    graded_by: tuple[GradedBy, ...] = ()
    """Who gave the grades, who gave most first; empty where it is not known."""
    baseline: str | None = None
    """The run that all others are held against; None where each two are compared."""
    n_values: dict[str, dict[str, int]] = field(default_factory=dict)
    """By measure and run: queries that its mean is over."""
    part: Part | None = None
    """The part of the queries that was compared on; None where that is all."""

    calibration: Calibration | None = None
    """By which differences are corrected; None where none is used."""
    n_lacked: dict[str, int] = field(default_factory=dict)
    """By run: queries that it lacks and that are left out for it, rather than counted as 0."""

    @property
    def every_warning(self) -> tuple[str, ...]:
        """The warnings, with what a table shows below it."""
        return (*filter(None, [self.other_judges]), *self.warnings)

    @property
    def correction(self) -> Correction | None:
        """What labels do to the measures; None where no calibration is used."""
        corrected = (one.comparison.measure for one in self.items if one.corrected is not None)
        return Correction.of(self.calibration, corrected, self.measures)

    def of_measure(self, measure: str) -> tuple[Compared, ...]:
        """Return the comparisons by one measure, pair by pair."""
        return tuple(item for item in self.items if item.comparison.measure == measure)

    def better_by(self, measure: str) -> tuple[str, ...]:
        """Return who is shown to be better, by one measure: with a baseline, than it.

        Without one that is who is better than each other; with one, those that beat it are not
        held against each other.
        """
        items = self.of_measure(measure)
        if self.baseline is not None:
            beating = {item.better for item in items} - {self.baseline, None}
            if beating:
                return tuple(name for name in self.names if name in beating)
        for name in self.names:
            mine = [item for item in items if name in (item.comparison.a, item.comparison.b)]
            if len(mine) == len(self.names) - 1 and all(item.better == name for item in mine):
                return (name,)
        return ()

    def winner_by(self, measure: str) -> str | None:
        """Return who is shown to be better than each it was held against; None for none.

        With a baseline that is the only one that beats it, if no other comparison is UNKNOWN.
        """
        better = self.better_by(measure)
        is_known = all(item.outcome != "UNKNOWN" for item in self.of_measure(measure))
        return better[0] if len(better) == 1 and is_known else None

    def outcome_by(self, measure: str) -> str:
        """Return the winner's name, or why there is none: SEVERAL, UNKNOWN, MIXED or TIE."""
        winner = self.winner_by(measure)
        if winner is not None:
            return winner
        items = self.of_measure(measure)
        if len(self.better_by(measure)) > 1:
            return "SEVERAL"
        if any(item.outcome == "UNKNOWN" for item in items):
            return "UNKNOWN"
        return "MIXED" if any(item.better for item in items) else "TIE"
