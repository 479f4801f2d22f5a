"""Deciding whether a run may ship: the rules as people give them, and what was decided."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragforge.api.results import Result, plain_values, shown_html
from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.gate import (
    ALLOWANCES,
    FAIL_ON,
    MAX_HOLES,
    MIN_QUERIES,
    SIZED,
    Allowance,
    Check,
    FailOn,
    Rules,
    Threshold,
    Verdict,
    VerdictOutcome,
    parse_count,
    parse_share,
    parse_thresholds,
    read_thresholds,
    verdict_json,
)
from ragforge.evaluating.graded_by import graded_line
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import UsableRuns, usable_runs
from ragforge.pipeline.gating.subjects import Subject, find_baseline, run_subject
from ragforge.pipeline.gating.verdict import check_subject, evaluate_for
from ragforge.records import Calibration
from ragforge.report.gate import (
    check_table,
    render_gate,
    render_gate_markdown,
    sentences,
)

if TYPE_CHECKING:
    from ragforge.api.keywords import GateKeywords


@dataclass(frozen=True, slots=True)
class GivenRules:
    """Rules as people write them.

    Args:
        least, most, drops: Each MEASURE=NUMBER.
        max_failures, max_holes: Shares, `1%` or `0.01`; None where not given.
        min_queries: A whole number; None where not given.
        by_point: Decide on means, not on the ends of their intervals.
        answers: The system whose answers are decided on; None for a run.
        dashes: What stands before the names in messages: `--` for flags.
        fail_on: `regression` or `not-shown`; the first where None.
    """

    least: Sequence[str] = ()
    most: Sequence[str] = ()
    drops: Sequence[str] = ()
    max_failures: str | None = None
    min_queries: str | None = None
    max_holes: str | None = None
    by_point: bool = False
    answers: str | None = None
    dashes: str = ""
    fail_on: str | None = None

    def name(self, flag: str) -> str:
        """Return a rule as messages call it: `--max-drop` or `max_drop`."""
        return f"{self.dashes}{flag}" if self.dashes else flag.replace("-", "_")


def rules_of(given: GivenRules) -> Rules:
    """Return rules that can be held.

    Raises:
        UsageError: One cannot be read, or goes with another subject.
    """
    failures, queries, holes = given.max_failures, given.min_queries, given.max_holes
    least, most, drops = _thresholds(given)
    name = given.name
    if given.by_point and any(drop.is_sized for drop in drops):
        raise UsageError(
            f"{name('max-drop')} {SIZED}: is sized by an interval, and {name('point')} decides on "
            "means"
        )
    return Rules(
        least=least,
        most=most,
        drops=drops,
        max_failures=None if failures is None else parse_share(failures, name("max-failures")),
        min_queries=MIN_QUERIES if queries is None else parse_count(queries, name("min-queries")),
        max_holes=MAX_HOLES if holes is None else parse_share(holes, name("max-holes")),
        by_point=given.by_point,
        fail_on=_fail_on(given),
    )


def _fail_on(given: GivenRules) -> FailOn:
    if given.fail_on is None:
        return FAIL_ON[0]
    for name in FAIL_ON:
        if name == given.fail_on.replace("_", "-"):
            return name
    there = " or ".join(FAIL_ON)
    raise UsageError(f"{given.name('fail-on')} {given.fail_on[:40]!r}: expected {there}")


def given_rules(rules: "GateKeywords") -> GivenRules:
    """Return rules as calls take them.

    Raises:
        TypeError: There is no such rule.
    """
    from ragforge.api.arguments import refuse_other_kind  # No command needs these three.
    from ragforge.api.call import check
    from ragforge.api.keywords import GateKeywords

    check("gate", rules, GateKeywords.__annotations__)
    refuse_other_kind("gate: point", rules.get("point", False), bool)
    failures, queries, holes = (
        rules.get("max_failures"),
        rules.get("min_queries"),
        rules.get("max_holes"),
    )
    return GivenRules(
        least=_texts(rules.get("min")),
        most=_texts(rules.get("max")),
        drops=_texts(rules.get("max_drop")),
        max_failures=None if failures is None else str(failures),
        min_queries=None if queries is None else str(queries),
        max_holes=None if holes is None else str(holes),
        by_point=bool(rules.get("point")),
        answers=rules.get("answers"),
        fail_on=rules.get("fail_on"),
    )


def checked_rules(given: GivenRules, baseline: object, *, writes: bool = False) -> Rules:
    """Return rules that go together.

    Args:
        given: As calls take them.
        baseline: What is held against; None for nothing.
        writes: Whether a baseline is written, which needs no rule.

    Raises:
        UsageError: They do not, or one cannot be read.
    """
    rules = rules_of(given)
    if not rules.n_checks and not writes:
        raise UsageError("nothing to check: give min, max_drop or max_failures")
    if rules.drops and baseline is None:
        raise UsageError("max_drop needs a baseline: a file, last or main")
    return rules


def allowances(given: Allowance | Collection[Allowance]) -> list[Allowance]:
    """Return what is allowed.

    Raises:
        UsageError: There is no such allowance.
    """
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if name not in ALLOWANCES:
            raise UsageError(f"allow {name!r}: there are: {', '.join(ALLOWANCES)}")
    return names


def _texts(given: Mapping[str, float] | Mapping[str, float | str] | None) -> list[str]:
    # numpy's numbers show their type.
    plain = {
        name: value if isinstance(value, int | str) else float(value)
        for name, value in (given or {}).items()
    }
    return [f"{name}={value}" for name, value in plain.items()]


def _thresholds(given: GivenRules) -> list[tuple[Threshold, ...]]:
    """Return those of least, most and drops."""
    rules = {"min": given.least, "max": given.most, "max-drop": given.drops}
    if given.answers is not None:
        return [
            read_thresholds(
                texts, given.name(flag), _of_answers(f"--{flag}"), may_be_sized=flag == "max-drop"
            )
            for flag, texts in rules.items()
        ]
    if given.most:
        raise UsageError(
            f"{given.name('max')}: of no measure of retrieval is less better; it goes with "
            f"{given.name('answers')}{' SYSTEM' if given.dashes else ''}"
        )
    return [
        parse_thresholds(texts, given.name(flag), may_be_sized=flag == "max-drop")
        for flag, texts in rules.items()
    ]


def _of_answers(flag: str) -> Callable[[str], tuple[str, float | None]]:
    from ragforge.pipeline.gating.answers import answer_measure

    return lambda name: (answer_measure(name, flag), 1.0)


class GateBasis(NamedTuple):
    """What a run or a system's answers are held against."""

    baseline: str | None = None
    """A file, `last` or `main`; None for nothing."""
    baseline_file: Path | None = None
    """Which file `main` reads."""
    allowed: Collection[Allowance] = ()
    """What does not refuse the gate."""
    calibration: Calibration | None = None
    """By which means are corrected; None for the judge's alone."""


class DecidedGate(NamedTuple):
    """A verdict with its subject."""

    subject: Subject
    verdict: Verdict


def decide(
    dataset: Dataset,
    run: str | None,
    answers: str | None,
    rules: Rules,
    held: GateBasis,
    settings: EvaluateSettings,
) -> DecidedGate:
    """Hold a run, or the answers of a system, to rules; nothing is written.

    Args:
        dataset: Whose they are.
        run: Its name; the only one where None.
        answers: A system; None for a run.
        rules: What it is held to.
        held: The baseline and what is allowed.
        settings: Measures beside those of the rules, and the threshold.

    Raises:
        UsageError: There are several runs and none is named, or a rule does not fit.
        DataError: There is no such run or baseline, or nothing is judged.
    """
    subject = _subject(dataset, run, answers, rules, settings)
    baseline = None
    if held.baseline is not None:
        baseline = find_baseline(dataset, subject.run, held.baseline, held.baseline_file)
    found = check_subject(dataset, subject, rules, baseline, held.allowed, held.calibration)
    return DecidedGate(subject, found)


def _subject(
    dataset: Dataset,
    run: str | None,
    answers: str | None,
    rules: Rules,
    settings: EvaluateSettings,
) -> Subject:
    if answers is not None:
        from ragforge.pipeline.gating.answers import answers_subject

        return answers_subject(dataset, answers)
    usable = _usable(run, dataset)
    subject = run_subject(evaluate_for(rules, dataset, usable.names[0], settings))
    return replace(subject, warnings=(*usable.warnings, *subject.warnings))


def _usable(name: str | None, dataset: Dataset) -> UsableRuns:
    """Return the run that is named, or the only one that is not stale."""
    usable = usable_runs(dataset, [] if name is None else [name]).require_any().of_now()
    if len(usable.names) != 1:
        raise UsageError(f"--run: expected one of: {', '.join(usable.names) or 'none there yet'}")
    return usable


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GateDecision(Result):
    """Whether a run, or a system's answers, may ship.

    Args:
        verdict: With what it rests on.
        notes: What was told on the way.
    """

    verdict: Verdict
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether it may ship; what is not shown either way stops it with fail_on="not-shown"."""
        return self.verdict.passed

    @property
    def outcome(self) -> VerdictOutcome:
        """PASS: shown to hold. FAIL: shown not to. NOT_SHOWN: neither, by these queries.

        REFUSED: the gate cannot judge it. UNCHECKED: there was no rule.
        """
        return self.verdict.outcome

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it did not pass: refusals, then the checks that failed; () where it did."""
        return tuple(_reasons(self.verdict))

    @property
    def checks(self) -> tuple[Check, ...]:
        """The rules, and how it holds to each."""
        return self.verdict.checks

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge gate --json` prints."""
        return verdict_json(self.verdict)

    def rows(self) -> list[dict[str, Any]]:
        """Return the checks."""
        return [plain_values({"name": one.name, **asdict(one)}) for one in self.checks]

    def table(self) -> str:
        """Return the verdict as text."""
        return render_gate(self.verdict)

    def junit(self) -> str:
        """Return the decision as JUnit XML, which CI services show."""
        from ragforge.report.junit import render_junit

        return render_junit(self.verdict)

    def markdown(self) -> str:
        """Return the decision as a comment of a pull request, below 60 kB."""
        return render_gate_markdown(self.verdict)

    def _repr_html_(self) -> str:
        found = self.verdict
        head = [
            graded_line(found.graded_by, found.correction),
            f"gate: {found.sentence}",
            found.head,
        ]
        tables = [check_table(found)] if found.checks else []
        refused = [f"refused: {item.reason}" for item in found.refusals]
        top = shown_html(head=[*head, *refused], tables=tables, bars=("value",))
        return top + shown_html(head=sentences(found))


def _reasons(verdict: Verdict) -> Iterator[str]:
    yield from (item.reason for item in verdict.refusals)
    if not verdict.passed:
        stopping = {"FAIL"} if verdict.fail_on == "regression" else {"FAIL", "NOT_SHOWN"}
        yield from (check.text for check in verdict.checks if check.outcome in stopping)
