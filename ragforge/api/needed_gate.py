"""A gate that buys what its rule needs, and no more: a drop from another run, by sampled pairs."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal, Unpack

from ragforge.api.call import JUDGE, Handle, begin, part_of
from ragforge.api.gating import given_rules, rules_of
from ragforge.api.keywords import GateKeywords, JudgeKeywords
from ragforge.api.results import Estimate, Result, plain_values
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural, share
from ragforge.evaluating.gate import (
    Check,
    Decision,
    FailOn,
    GateOutcome,
    NamedRun,
    Refusal,
    Rules,
    Threshold,
    Verdict,
    decided_on,
    drop_sentence,
)
from ragforge.evaluating.graded_by import graders_text
from ragforge.evaluating.judgments import failed_by_name
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.comparing.as_needed import NeededComparison, decide_as_needed
from ragforge.pipeline.comparing.needed_pairs import Declared
from ragforge.pipeline.gating.checks import check_failures
from ragforge.pipeline.gating.verdict import untold_failures
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.notifying import notify_gate
from ragforge.report.as_needed import gate_lines
from ragforge.report.gate import render_gate_markdown

_TAKES: Final = (
    "base", "run", "max_drop", "max_failures", "fail_on", "again", "dry_run", "sample_seed",
)  # fmt: skip
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NeededGate(Result):
    """Whether a run may ship in the place of another, by the pairs that this took.

    Args:
        found: The difference, and what it rests on.
        allowed: How much lower the run may be.
        dataset: Name of the set.
        version: Of the set.
        fail_on: What stops it.
        notes: What was told on the way.
        most_failures: Share of the queries on which its retriever may have failed; None for any.
    """

    found: NeededComparison
    allowed: float
    dataset: str
    version: int
    fail_on: FailOn = "regression"
    notes: tuple[str, ...] = field(default=())
    most_failures: float | None = None

    @property
    def outcome(self) -> Literal["PASS", "FAIL", "NOT_SHOWN", "REFUSED"]:
        """PASS where a larger drop is ruled out, FAIL where one is shown, else NOT_SHOWN.

        FAIL, too, where more retrievals failed than may. REFUSED where no judge graded, as a
        baseline's grades decide nothing.
        """
        if self.found.is_baseline:
            return "REFUSED"
        failures = self._failures
        is_exceeded = failures is not None and failures.outcome == "FAIL"
        return "FAIL" if is_exceeded else self._of_drop

    @property
    def _failures(self) -> Check | None:
        """The check of how many retrievals failed; None where that is no rule."""
        if self.most_failures is None:
            return None
        return check_failures(
            self._run(self.found.b, self.found.n_failed_of[1]), self.most_failures
        )

    def _run(self, name: str, n_failed: int) -> NamedRun:
        n_queries = self.found.n_queries + len(self.found.left_out)
        return NamedRun(self.dataset, self.version, name, n_queries, n_failed)

    @property
    def _of_drop(self) -> Literal["PASS", "FAIL", "NOT_SHOWN"]:
        low, high = self.found.worst
        if low >= -self.allowed - _ROUNDING:
            return "PASS"
        is_shown = self.found.is_worse or self.found.decided.outcome == "a"
        return "FAIL" if high < 0 and is_shown else "NOT_SHOWN"

    @property
    def passed(self) -> bool:
        """Whether the run may ship."""
        lets = ("PASS", "NOT_SHOWN") if self.fail_on == "regression" else ("PASS",)
        return self.outcome in lets

    def __bool__(self) -> bool:
        return self.passed

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read the figures."""
        return self.found.warnings

    @property
    def verdict(self) -> Verdict:
        """The decision as other gates have it, for their forms of output."""
        found, outcome = self.found, self.outcome
        is_refused = outcome == "REFUSED"
        decision = _decision(found)
        threshold = Threshold(found.measure, self.allowed)
        checked: GateOutcome = "OPEN" if is_refused else self._of_drop
        check = Check(
            kind="max-drop",
            measure=found.measure,
            threshold=self.allowed,
            value=decision.value,
            low=decision.low,
            high=decision.high,
            decided_on=decided_on("max-drop", decision),
            decided=decision.decided,
            n=decision.n,
            n_failed=decision.n_failed,
            outcome=checked,
            text=drop_sentence(decision, threshold, checked),
        )
        failures = self._failures
        if failures is not None and is_refused:
            failures = replace(failures, outcome="OPEN")
        return Verdict(
            outcome=outcome,
            evaluation=self._run(found.b, found.n_failed_of[1]),
            baseline=self._run(found.a, found.n_failed_of[0]),
            checks=(check, *([failures] if failures else [])),
            refusals=(Refusal(found.why, None),) if is_refused else (),
            notes=(_use(found, checked), *self.warnings),
            graded_by=found.graded_by,
            fail_on=self.fail_on,
        )

    def junit(self) -> str:
        """Return the decision as JUnit XML, which CI services show."""
        from ragforge.report.junit import render_junit

        return render_junit(self.verdict)

    def markdown(self) -> str:
        """Return the decision as a comment of a pull request, below 60 kB."""
        return render_gate_markdown(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge gate --judge-as-needed --json` prints."""
        return {
            "outcome": self.outcome,
            "passed": self.passed,
            "max_drop": self.allowed,
            "max_failures": self.most_failures,
            "fail_on": self.fail_on,
            **self.found.as_json(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all that was found."""
        return [plain_values(self.to_dict())]

    def table(self) -> str:
        """Return the outcome and what it rests on, a sentence a line."""
        found = self.found
        lines = gate_lines(
            outcome="REFUSED" if found.is_baseline else self._of_drop,
            names=(found.a, found.b),
            measure=found.measure,
            allowed=self.allowed,
            decided=found.decided,
            worst=found.worst if found.is_worse else None,
            pool=found.pool,
            n_queries=found.n_queries,
            judge=graders_text(found.graded_by, found.judge),
        )
        failures = self._failures
        if failures is not None:
            lines.append(f"max-failures: {failures.outcome}: {failures.text}")
            if self.outcome == "FAIL" and failures.outcome == "FAIL":
                lines[0] = f"gate: FAIL: more retrievals failed than may; {lines[0][6:]}"
        return "\n".join(lines)


def _decision(found: NeededComparison) -> Decision:
    low, high = found.worst
    return Decision(
        value=found.decided.look.difference,
        low=found.decided.low,
        high=found.decided.high,
        decided=low,
        best=high,
        n=found.n_queries,
        n_failed=found.n_failed + len(found.left_out),
        worst=found.is_worse,
        by_point=False,
    )


def _use(found: NeededComparison, outcome: str) -> str:
    """Say how many pairs it took, and what the rest would do."""
    judged = found.pairs_used + found.pairs_known
    known = f", {found.pairs_known:,} of them before" if found.pairs_known else ""
    used = f"{judged:,} of {found.pool:,} pairs judged ({share(judged, found.pool)}){known}, in "
    used += plural(found.looks, "look")
    rest = {
        "NOT_SHOWN": "judging more of these pairs would hardly decide it; more queries would",
        "OPEN": "",
    }.get(outcome, "the rest was not needed" if judged < found.pool else "")
    return f"{used}: {rest}" if rest else used


def undecided(dataset: Dataset, names: tuple[str, str], rules: Rules, why: str) -> Verdict:
    """Return the verdict of a gate whose judging was stopped before its rule was decided.

    Args:
        dataset: The set.
        names: Of the run that ships now, and of the one that is to.
        rules: One drop.
        why: It was stopped.
    """
    manifest = dataset.manifest
    n_queries = sum(query.answerable for query in dataset.require_accepted_queries())
    before, now = (NamedRun(manifest.name, manifest.version, name, n_queries) for name in names)
    [drop] = rules.drops
    check = Check(
        kind="max-drop",
        measure=drop.measure,
        threshold=drop.value,
        value=None,
        low=None,
        high=None,
        decided_on="",
        decided=None,
        n=0,
        n_failed=0,
        outcome="OPEN",
        text="Judging was stopped before it was decided.",
    )
    refused = (Refusal(why, None),)
    return Verdict("REFUSED", now, before, (check,), refused, (), fail_on=rules.fail_on)


async def gate_as_needed(
    handle: Handle,
    base: str,
    run: str,
    *,
    max_drop: Mapping[str, float],
    max_failures: float | str | None = None,
    fail_on: FailOn = "regression",
    again: bool = False,
    dry_run: bool = False,
    sample_seed: int = 0,
    **settings: Unpack[JudgeKeywords],
) -> NeededGate | Estimate:
    """Decide whether a run may ship in the place of another one, judging what that takes.

    Pairs of both runs are judged until the rule is decided on, or until judging the rest would
    hardly do so. The sample stays out of the set's judgments.

    Args:
        handle: The set.
        base: The run that ships now.
        run: The one that is to.
        max_drop: One measure, DCG@k, P@k, RR or Success@k, and how much lower its mean may be.
        max_failures: Share of the queries on which the run's retriever may have failed.
        fail_on: What stops the run: a `regression` that is shown, or also what is `not-shown`.
        again: Use no grade of another model or prompt.
        dry_run: Return what it may take, as an `Estimate`; nothing is asked.
        sample_seed: The same one asks for the same pairs.
        settings: model, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        DataError: There is no such run, or it was made on other chunks.
        UsageError: Not one rule, or a measure that pairs do not decide.
        EndpointError, BudgetError: Judging was stopped; replies are kept, the same call goes on.
    """
    given: GateKeywords = {"max_drop": max_drop, "fail_on": fail_on}
    if max_failures is not None:
        given["max_failures"] = max_failures
    rules = rules_of(given_rules(given))
    dataset = part_of(handle)
    mode = Mode(again=again, dry_run=dry_run)
    takes = type(JUDGE)("gate_as_needed", JUDGE.sections, arguments=_TAKES)
    with begin(takes, settings, handle.keywords, mode=mode) as call:
        found = await hold_as_needed(dataset, (base, run), rules, call.job, sample_seed)
        if isinstance(found, dict):
            return Estimate(found, tuple(call.notes))
        gate = needed_gate(dataset, found, rules, call.notes)
        if not gate.passed:
            notify_gate(gate.verdict, call.settings.refresh, call.observer)
        return gate


def needed_gate(
    dataset: Dataset, found: NeededComparison, rules: Rules, notes: Iterable[str] = ()
) -> NeededGate:
    """Return what a difference means for the one drop of some rules."""
    manifest, [drop] = dataset.manifest, rules.drops
    about = (manifest.name, manifest.version, rules.fail_on)
    return NeededGate(found, drop.value, *about, tuple(notes), rules.max_failures)


async def hold_as_needed(
    dataset: Dataset, names: tuple[str, str], rules: Rules, job: Job, seed: int = 0
) -> NeededComparison | dict[str, object]:
    """Judge pairs of two runs until a drop of the second is decided on.

    It goes on until a larger drop than is allowed is ruled out, or until that has become unlikely
    and a drop is shown, or has become unlikely too.

    Raises:
        UsageError: Not one drop that is given as a number, or a measure that pairs do not decide;
            or failures are to be counted of a run that does not tell them.
    """
    n_checks = rules.n_checks - (rules.max_failures is not None)
    if n_checks != 1 or len(rules.drops) != 1 or rules.drops[0].is_sized or rules.by_point:
        raise UsageError(
            "judge-as-needed: expected one rule, declared before the first call: max-drop "
            "MEASURE=X, such as DCG@10=0.2; beside it max-failures can be given"
        )
    if rules.max_failures is not None:
        _refuse_untold(dataset, names[1])
    [drop] = rules.drops
    declared = Declared(drop.measure, seed, drop.value, rules.min_queries)
    return await decide_as_needed(dataset, names, job, declared)


def _refuse_untold(dataset: Dataset, name: str) -> None:
    """Refuse to count failures of a run of a file that lacks queries and does not say why.

    Raises:
        UsageError: It is one.
    """
    failed = failed_by_name(dataset.failures(), "retrieve").get(name, set())
    asked = {q.query_id for q in dataset.require_accepted_queries() if q.answerable}
    chosen = dataset.chosen_of_run(name)
    asked &= asked if chosen is None else chosen.query_ids
    if text := untold_failures(dataset, name, asked - failed, len(asked)):
        raise UsageError(text)
