"""How a candidate stands: which gates it has passed, and which it has to pass yet."""

from dataclasses import dataclass, field
from typing import Literal

from ragforge.records import Failure, Gate, GateResult, Measured, Provenance
from ragforge.stages.asking import visible
from ragforge.stages.generate.candidates import Rejection
from ragforge.stages.generate.checks.batches import Item

_LONGEST_REASON = 300
"""Characters; a reason is what a model said, and no model is bound to be brief."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdicts of the gates on a candidate.

    Args:
        gates: Those that were tried, in their order; behind one that is not passed none is.
        passed: Whether all its gates are there and passed.
        measured: Labels: closed-book success and agreement. Ranks and difficulty are not known
            here.
        call_keys: Keys of the replies that say so, sorted.
        failures: Calls that gave nothing, each of them why a gate or label is unknown.
    """

    gates: tuple[GateResult, ...]
    passed: bool
    measured: Measured
    call_keys: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def rejection(self) -> Rejection | None:
        """Why it is stopped, `GATE_fail` or `GATE_unknown`; None where it passed."""
        for result in self.gates:
            if result.verdict != "pass":
                return Rejection(f"{result.gate}_{result.verdict}", result.reason)
        return None if self.passed else Rejection("check_unknown", "not all gates were tried")


@dataclass(slots=True, eq=False)
class GateProgress:
    """A candidate under way through its gates.

    Args:
        item: What is checked.
        results: Of the gates tried so far.
        known: The answer from general knowledge; "" where there is none.
        given: The answer from the evidence alone; "" before it is read.
        read_by: Who gave that answer.
        agreement: How that compares with the expected answer.
        closed_book: Whether general knowledge gives the expected answer.
        call_keys: Of the replies so far.
        failures: Of the calls so far.
    """

    item: Item
    results: list[GateResult] = field(default_factory=list)
    known: str = ""
    given: str = ""
    read_by: Provenance | None = None
    agreement: Literal["agrees", "in part", "differs", "unknown"] = "unknown"
    closed_book: Literal["solved", "not solved", "unknown"] = "unknown"
    call_keys: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    @property
    def next_gate(self) -> Gate | None:
        """The gate that is to be tried now; None where all are passed, or one is not."""
        if any(result.verdict != "pass" for result in self.results):
            return None
        left = self.item.gates[len(self.results) :]
        return left[0] if left else None

    @property
    def has_passed(self) -> bool:
        """Whether every gate is passed."""
        verdicts = [(result.gate, result.verdict) for result in self.results]
        return verdicts == [(gate, "pass") for gate in self.item.gates]

    def settle(self, is_passed: bool, why_not: str, by: Provenance | None) -> None:
        """Take the verdict on the next gate.

        Args:
            is_passed: Whether it is passed.
            why_not: The reason where it is not.
            by: Who says so.
        """
        if is_passed:
            self._add("pass", "", by)
        else:
            self._add("fail", why_not, by)

    def failed(self, failure: Failure) -> None:
        """Note that nobody can say whether the next gate is passed."""
        self._add("unknown", f"{failure.kind}: {failure.message}", None)
        self.failures.append(failure)

    def checked(self) -> Checked:
        """Return how it ended."""
        return Checked(
            gates=tuple(self.results),
            passed=self.has_passed,
            measured=Measured(closed_book=self.closed_book, agreement=self.agreement),
            call_keys=tuple(sorted(self.call_keys - {""})),
            failures=tuple(self.failures),
        )

    def _add(
        self, verdict: Literal["pass", "fail", "unknown"], reason: str, by: Provenance | None
    ) -> None:
        gate = self.next_gate
        assert gate is not None
        if by is not None:
            self.call_keys.add(by.call_key)
        told = " ".join(visible(reason).split())[:_LONGEST_REASON]
        self.results.append(GateResult(gate=gate, verdict=verdict, reason=told, by=by))
