"""Runs, or answer systems, that were compared: which is better, and whether that can be told."""

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

from ragforge.api.results import Result, shown_html
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.comparison import Compared, ComparisonReport
from ragforge.evaluating.graded_by import graded_line
from ragforge.report.comparison import (
    by_pair,
    corrected_tables,
    findings,
    means_table,
    pair_table,
    render_comparison,
    render_comparison_summary,
    warnings_of,
)
from ragforge.report.comparison_json import comparison_json

MOVED_SHOWN: Final = 5
"""Queries that gained, and that lost, in the text, where only two runs are compared."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunComparison(Result):
    """Which of several runs is better. The first measure decides; all are there.

    Args:
        report: All comparisons of one call; each difference may be read by itself, as the
            intervals and p are corrected for all of them.
        notes: What was told on the way.
    """

    report: ComparisonReport
    notes: tuple[str, ...] = field(default=())

    @property
    def winner(self) -> str | None:
        """The run that is shown to be better than each it was held against; None for none.

        With a base that is the only run that beats it: the others are not held against each other.
        """
        return self.winner_in(self.report.measures[0])

    @property
    def better(self) -> tuple[str, ...]:
        """The runs that are shown to be better than the base; without one, the winner alone.

        Where none beats the base and it beats all others, it is the base.
        """
        return self.better_in(self.report.measures[0])

    @property
    def outcome(self) -> str:
        """The winner's name, or one of these.

        SEVERAL: several runs beat the base, see `better`; which is the best is not told. MIXED:
        some are told apart, and none beats all that it was held against. TIE: none are told apart.
        UNKNOWN: that cannot be told. A TIE does not say that they are equal: few queries show large
        differences only.
        """
        return self.outcome_in(self.report.measures[0])

    @property
    def verdict(self) -> tuple[str, ...]:
        """What can be said of each two, in sentences."""
        found = (findings(items) for items in by_pair(self.report.items))
        return tuple(line for lines in found for line in lines)

    @property
    def comparisons(self) -> tuple[Compared, ...]:
        """Pair by pair, in each the measures in their order."""
        return self.report.items

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read it."""
        return warnings_of(self.report)

    def winner_in(self, measure: str) -> str | None:
        """Return the winner by one of the measures.

        Raises:
            UsageError: It was not compared by that measure.
        """
        return self.report.winner_by(self._compared(measure))

    def better_in(self, measure: str) -> tuple[str, ...]:
        """Return the better ones by one of the measures; see `better`."""
        return self.report.better_by(self._compared(measure))

    def outcome_in(self, measure: str) -> str:
        """Return the outcome by one of the measures; see `outcome`."""
        return self.report.outcome_by(self._compared(measure))

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge compare --json` prints."""
        return comparison_json(self.report)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each two and measure."""
        return [_row(item) for item in self.report.items]

    def table(self, n_moved: int | None = None) -> str:
        """Return the comparison as text.

        Args:
            n_moved: Queries to show that gained most and that lost most in the first measure; 5
                for two runs and none for more where None.
        """
        shown = MOVED_SHOWN if len(self.report.names) == 2 else 0
        return render_comparison(self.report, shown if n_moved is None else n_moved)

    def summary(self) -> str:
        """Return the comparison as text, without the legend and the queries that moved."""
        return render_comparison_summary(self.report)

    def _compared(self, measure: str) -> str:
        if measure not in self.report.measures:
            there = ", ".join(self.report.measures)
            raise UsageError(f"measure {measure!r}: was not compared; there are: {there}")
        return measure

    def _repr_html_(self) -> str:
        return "".join(self._html())

    def _html(self) -> Iterator[str]:
        report = self.report
        several = [means_table(report)] if len(report.names) > 2 else []
        head = [graded_line(report.graded_by, report.correction)]
        yield shown_html(head=head, tables=several, bars=report.measures)
        for items in by_pair(report.items):
            tables = [*corrected_tables(items), pair_table(items)]
            yield shown_html(tables=tables, bars=("A", "B"))
            yield shown_html(head=findings(items))


def _row(item: Compared) -> dict[str, Any]:
    found, corrected = item.comparison, item.corrected
    by_people = (
        {}
        if corrected is None
        else {
            "corrected": corrected.value,
            "corrected_low": corrected.wide_low,
            "corrected_high": corrected.wide_high,
        }
    )
    return {
        "a": found.a,
        "b": found.b,
        "measure": found.measure,
        "mean_a": found.mean_a,
        "mean_b": found.mean_b,
        "diff": found.diff,
        "low": None if found.interval is None else found.interval.low,
        "high": None if found.interval is None else found.interval.high,
        "p": found.p,
        "p_corrected": found.p_corrected,
        "outcome": item.outcome,
        "winner": item.better,
        "n": found.n,
        **by_people,
    }
