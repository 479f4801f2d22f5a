"""The verdict of a gate as data, and the rules that it is given."""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from ragforge.deferred import dataclass, pattern
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import number, plural, signed

if TYPE_CHECKING:
    from ragforge.evaluating.comparison import MovedQuery
    from ragforge.evaluating.graded_by import Correction, GradedBy
    from ragforge.evaluating.history.changes import Change
    from ragforge.records import Calibration

GateOutcome: TypeAlias = Literal["PASS", "FAIL", "NOT_SHOWN", "OPEN"]
"""PASS: shown to hold. FAIL: shown not to hold; of a drop: shown to be one, by its interval and by
the test, and not shown to be small enough. NOT_SHOWN: neither. OPEN: the gate was refused, so that
nothing is decided."""
VerdictOutcome: TypeAlias = Literal["PASS", "FAIL", "NOT_SHOWN", "REFUSED", "UNCHECKED"]
"""Of all checks, the worst. UNCHECKED: there was no rule, and nothing that would refuse one."""
FailOn: TypeAlias = Literal["regression", "not-shown"]
FAIL_ON: Final[tuple[FailOn, ...]] = ("regression", "not-shown")
"""What stops a run: only what is shown not to hold, or also what is not shown either way."""
RuleKind: TypeAlias = Literal["min", "max", "max-drop", "max-failures"]
Allowance: TypeAlias = Literal["few", "holes", "baseline-judge", "dataset-change", "grading-change"]
ALLOWANCES: Final[tuple[Allowance, ...]] = (
    "few",
    "holes",
    "baseline-judge",
    "dataset-change",
    "grading-change",
)
MIN_QUERIES: Final = 25
"""Below it the order of two systems is mostly chance (Buckley and Voorhees 2000, SIGIR)."""
MAX_HOLES: Final = 0.1
"""Share of ungraded chunks in the top 10 from which on reports warn as well."""

_DIGITS: Final = 4

_NUMBER: Final = pattern(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*%?", re.ASCII)
_LONGEST: Final = 200


SIZED: Final = "auto"
"""In the place of a drop: the least that can be ruled out."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a measure is held against."""

    measure: str
    """Canonical name."""
    value: float
    is_sized: bool = False
    """Whether the drop that is allowed is the least that the items compared can rule out, by their
    own spread; `value` is 0 until they are known."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a run has to hold to."""

    least: tuple[Threshold, ...] = ()
    """Means that it must reach."""
    most: tuple[Threshold, ...] = ()
    """Means that it must not go beyond, of measures of which less is better."""
    drops: tuple[Threshold, ...] = ()
    """How much lower than the baseline's its mean may be."""
    max_failures: float | None = None
    """Share of the queries that may have failed."""
    min_queries: int = MIN_QUERIES
    max_holes: float = MAX_HOLES
    """Share of the top 10 that may be without a grade."""
    by_point: bool = False
    """Decide on means, as if these very queries were all that counts."""
    fail_on: FailOn = "regression"

    @property
    def measures(self) -> tuple[str, ...]:
        """All that are named, each once, in the order given."""
        named = (item.measure for item in (*self.least, *self.most, *self.drops))
        return tuple(dict.fromkeys(named))

    @property
    def rests_on_evidence(self) -> bool:
        """Whether all measures are of evidence, so that nothing is decided by grades."""
        return bool(self.measures) and len(self.of_evidence) == len(self.measures)

    @property
    def of_evidence(self) -> tuple[str, ...]:
        """The measures that are computed from places of evidence."""
        from ragforge.measures.measure_names import is_of_evidence

        return tuple(filter(is_of_evidence, self.measures))

    @property
    def n_checks(self) -> int:
        """How many checks there are."""
        failures = self.max_failures is not None
        return len(self.least) + len(self.most) + len(self.drops) + failures


@dataclass(frozen=True, slots=True)
class CheckPower:
    """What so many queries can show, whatever was found."""

    detectable: float
    """Distance from the threshold (for a drop: the drop) that is shown with 80 % chance, by the
    interval that a gate decides on."""
    wanted: float
    """A smaller one: the drop allowed, or half of the distance."""
    n_more: int
    """Queries more that would show it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, and how the run holds to it."""

    kind: RuleKind
    measure: str
    """"" where it is about failures."""
    threshold: float
    value: float | None
    """The mean, the mean difference (now less the baseline), or the share."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval; None where there is none."""
    decided_on: str
    """In words."""
    decided: float | None
    """The number that was held against the threshold."""
    n: int
    n_failed: int
    outcome: GateOutcome
    text: str
    """In a sentence or two."""
    power: CheckPower | None = None
    """Where it failed or nearly did."""
    is_sized: bool = False
    """Whether the threshold is the least drop that these items can rule out."""

    @property
    def name(self) -> str:
        """The flag without its dashes and its value: `min nDCG@10`."""
        return f"{self.kind} {self.measure}".strip()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a gate decides nothing."""

    reason: str
    allowance: Allowance | None
    """What lets it decide all the same; None where nothing does."""

    @property
    def flag(self) -> str:
        """The flag that allows it; "" where none does."""
        return f"--allow-{self.allowance}" if self.allowance else ""


class GatedRun(Protocol):
    """A run as a verdict names it; an `Evaluation` is one."""

    @property
    def evaluation_id(self) -> str:
        """Of its evaluation; "" where there is none."""
        ...

    @property
    def at(self) -> str:
        """When it was measured, as an evaluation says it."""
        ...

    @property
    def dataset(self) -> str:
        """Name of the set."""
        ...

    @property
    def version(self) -> int:
        """Of the set."""
        ...

    @property
    def run(self) -> str:
        """Its name."""
        ...

    @property
    def n_queries(self) -> int:
        """Answerable queries."""
        ...

    @property
    def n_failed(self) -> int:
        """Of these, those that failed."""
        ...


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A `GatedRun` without an evaluation: what decides on it was judged for that alone."""

    dataset: str
    version: int
    run: str
    n_queries: int
    n_failed: int = 0
    evaluation_id: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says about a run."""

    outcome: VerdictOutcome
    evaluation: GatedRun
    baseline: GatedRun | None
    checks: tuple[Check, ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    """What one must know to read it."""
    changes: "tuple[Change, ...]" = ()
    """Since the baseline."""
    fallen: "tuple[MovedQuery, ...]" = ()
    """Queries that are worse than in the baseline, by most first."""
    fallen_by: str = ""
    """Measure by which."""
    graded_by: "tuple[GradedBy, ...]" = ()
    """Who gave the grades, who gave most first."""
    calibration: "Calibration | None" = None
    """By which means are corrected; None where none is used."""
    fail_on: FailOn = "regression"

    @property
    def correction(self) -> "Correction | None":
        """What labels do to the means that are checked; None where no calibration is used."""
        from ragforge.evaluating.graded_by import Correction

        means = [check.measure for check in self.checks if check.kind == "min"]
        return Correction.of(self.calibration, means, means)

    @property
    def passed(self) -> bool:
        """Whether the run may ship: nothing that the gate is to stop was found."""
        let = (
            ("PASS", "UNCHECKED", "NOT_SHOWN")
            if self.fail_on == "regression"
            else ("PASS", "UNCHECKED")
        )
        return self.outcome in let

    @property
    def is_shown(self) -> bool:
        """Whether all rules are shown to be held, so that the run may be the next baseline."""
        return self.outcome in ("PASS", "UNCHECKED")

    @property
    def title(self) -> str:
        """The outcome as it is shown."""
        return {"UNCHECKED": "nothing checked", "NOT_SHOWN": "NOT SHOWN"}.get(
            self.outcome, self.outcome
        )

    def names_of(self, outcome: GateOutcome) -> list[str]:
        """Return the checks that came out so."""
        return [check.name for check in self.checks if check.outcome == outcome]

    @property
    def sentence(self) -> str:
        """What came out and what follows, in one sentence."""
        match self.outcome:
            case "PASS":
                return f"PASS: {plural(len(self.checks), 'rule is', 'rules are')} shown to be held."
            case "FAIL":
                return f"FAIL: shown not to be held: {', '.join(self.names_of('FAIL'))}."
            case "NOT_SHOWN":
                names = ", ".join(self.names_of("NOT_SHOWN"))
                follows = (
                    "the run passes; `--fail-on not-shown` would stop it"
                    if self.passed
                    else "`--fail-on not-shown` stops the run"
                )
                return f"NOT SHOWN either way by these queries: {names}; {follows}."
            case "REFUSED":
                n = plural(len(self.refusals), "reason")
                return f"REFUSED for {n}: nothing is decided, and the run does not pass."
        return "Nothing was checked."

    @property
    def head(self) -> str:
        """What was held against what, in one line."""
        now = self.evaluation
        text = f"{now.dataset} version {now.version}, run {now.run}, {now.n_queries} queries"
        if self.baseline is None:
            return text
        then = self.baseline
        return f"{text}; baseline: {then.dataset} version {then.version}, run {then.run}"


def power_text(check: Check) -> str:
    """Return in words what so many queries can show; "" where that is not the point."""
    power = check.power
    if power is None:
        return ""
    more = f"{power.n_more:,} more would show {power.wanted:.3f}"
    if check.kind == "max-drop":
        detectable = f"drops of {power.detectable:.3f}"
    else:
        side = "below" if check.kind == "max" else "above"
        detectable = f"means that are {power.detectable:.3f} {side} the threshold"
    if check.outcome == "PASS":
        return (
            f"It was close: {check.n:,} queries can only be relied on to show {detectable}; {more}."
        )
    return f"{check.n:,} queries can only show {detectable}; {more}."


def verdict_json(verdict: Verdict) -> dict[str, object]:
    """Return what JSON can hold."""
    from ragforge.evaluating.graded_by import graded_json

    now, then = verdict.evaluation, verdict.baseline
    return {
        "verdict": verdict.outcome,
        "sentence": verdict.sentence,
        "passed": verdict.passed,
        "fail_on": verdict.fail_on,
        "graded_by": graded_json(verdict.graded_by),
        **({"calibration": verdict.calibration.name} if verdict.calibration else {}),
        "dataset": now.dataset,
        "version": now.version,
        "run": now.run,
        "n_queries": now.n_queries,
        "n_failed": now.n_failed,
        "baseline": _named(then) if then else None,
        "checks": [_check(check) for check in verdict.checks],
        "refusals": [{"reason": item.reason, "flag": item.flag} for item in verdict.refusals],
        "notes": list(verdict.notes),
        "changes": [asdict(change) for change in verdict.changes],
        "fallen": list(_fallen(verdict.fallen)),
        "fallen_by": verdict.fallen_by,
    }


@dataclass(frozen=True, slots=True)
class Decision:
    """The value, with its interval, that is compared with a threshold."""

    value: float | None
    """The mean, or the mean difference; None where there is none."""
    low: float | None
    high: float | None
    """Ends of the interval of it."""
    decided: float | None
    """The end, or by point the mean, that decides, failures at their worst."""
    best: float | None
    """The other end, failures at their worst: where not even this one holds, that is shown."""
    n: int
    n_failed: int
    worst: bool
    """Whether failures, or items that cannot be compared, make it worse."""
    by_point: bool
    n_left_out: int = 0
    """Items that cannot be compared, and count at their worst."""
    is_identical: bool = False
    """Whether both are one and the same, so that no difference is possible."""
    p: float | None = None
    """Of the test of a difference; None of a mean."""


def decided_on(kind: RuleKind, decision: Decision) -> str:
    """Return the name of the value that is compared with the threshold."""
    end = "high" if kind == "max" else "low"
    mean = "mean difference" if kind == "max-drop" else "mean"
    what = mean if decision.by_point else f"{end} end of the interval"
    if decision.is_identical:
        what = "identity"
    items = " and items left out" if decision.n_left_out else ""
    return f"{what}, failures{items} at their worst" if decision.worst else what


def bound_sentence(
    kind: RuleKind, decision: Decision, threshold: Threshold, outcome: GateOutcome
) -> str:
    """Return a sentence on a mean against the threshold of a `min` or a `max`."""
    if decision.value is None:
        return "No query has a value."
    sentence = f"{threshold.measure} is {number(decision.value, _DIGITS)}"
    if decision.decided is None:
        return f"{sentence}, of {plural(decision.n, 'query', 'queries')}: too few for an interval."
    bound, reached = number(threshold.value, _DIGITS), number(decision.decided, _DIGITS)
    worst = _worst(decision)
    beyond, far = ("above", "high") if kind == "max" else ("below", "low")
    if outcome == "PASS":
        held = (
            ""
            if decision.by_point and not worst
            else f", and by its interval not {beyond} {reached}"
        )
        return f"{sentence}{held}{worst}."
    if outcome == "FAIL":
        at_best = f", and at best {number(decision.best, _DIGITS)}{worst}"
        if decision.by_point:
            at_best = f", and {reached}{worst}" if worst else ""
        return f"{sentence}{at_best}, which is {beyond} {bound}."
    is_beyond = (decision.value > threshold.value) == (kind == "max")
    if is_beyond and decision.value != threshold.value:
        best = number(decision.best, _DIGITS)
        return (
            f"{sentence}, which is {beyond} {bound}, but could be {best}: it is not shown whether "
            "the threshold is held."
        )
    return (
        f"{sentence}, but could be as {far} as {reached}{worst}: {bound} is not shown to be held."
    )


def drop_sentence(decision: Decision, threshold: Threshold, outcome: GateOutcome) -> str:
    """Return a sentence on a mean difference against the drop that is allowed."""
    if decision.value is None:
        return "No item can be compared with the baseline."
    sentence = f"{threshold.measure} changed by {signed(decision.value, _DIGITS)} on "
    sentence += plural(decision.n, "item")
    if decision.decided is None:
        return f"{sentence}: too few for an interval."
    bound, worst = number(threshold.value, _DIGITS), _worst(decision)
    if outcome == "PASS":
        ruled_out = "is ruled out" if not decision.by_point else "was not found"
        sized = ", the least that so many can rule out" if threshold.is_sized else ""
        return f"{sentence}: a drop of more than {bound} {ruled_out}{worst}{sized}."
    reached = signed(decision.decided, _DIGITS)
    if outcome == "FAIL" and decision.by_point:
        with_failures = f", and by {reached}{worst}" if worst else ""
        return f"{sentence}{with_failures}: that is a drop of more than {bound}."
    if outcome == "FAIL" and worst:
        best = signed(decision.best, _DIGITS)
        return f"{sentence}, and by {best} at best{worst}: {bound} is allowed."
    if outcome == "FAIL":
        drop = f"{sentence}, a drop by its whole interval, and could be {reached}"
        return f"{drop}: {bound} is allowed."
    said = f"{sentence}, but could be {reached}{worst}: a drop of {bound} is not ruled out."
    if decision.high is not None and decision.high < 0 and decision.p is not None:
        said += f" The whole interval is a drop, and the test finds none (p {decision.p:.3f})."
    return said


def failures_text(n_failed: int, n: int, most: float, failed: str) -> str:
    """Return a sentence on how many queries failed, and how many may.

    Args:
        n_failed: Of `n`.
        n: Queries.
        most: Share that may have failed.
        failed: What they did, in words.
    """
    text = f"{n_failed} of {plural(n, 'query', 'queries')} {failed}"
    rate = f", {100 * n_failed / n:.2f} %" if n else ""
    return f"{text}{rate}; allowed is {100 * most:g} %."


def _named(run: GatedRun) -> dict[str, object]:
    fields = ("evaluation_id", "at", "dataset", "version", "run", "n_queries", "n_failed")
    return {name: getattr(run, name) for name in fields}


def _check(check: Check) -> dict[str, object]:
    power = {"text": power_text(check), **asdict(check.power)} if check.power else None
    return {"name": check.name, **asdict(check), "power": power}


def _fallen(queries: "Iterable[MovedQuery]") -> Iterable[dict[str, object]]:
    for query in queries:
        yield {
            "query_id": query.query_id,
            "query": query.text,
            "baseline": query.value_a,
            "now": query.value_b,
            "diff": query.diff,
        }


def parse_thresholds(
    texts: Iterable[str], flag: str, *, may_be_sized: bool = False
) -> tuple[Threshold, ...]:
    """Read thresholds of measures of retrieval.

    Args:
        texts: Each MEASURE=NUMBER.
        flag: What messages call it.
        may_be_sized: Whether MEASURE=auto is one, too.

    Raises:
        UsageError: One cannot be read, is out of the measure's range, or comes twice.
    """
    return read_thresholds(texts, flag, _of_retrieval, may_be_sized=may_be_sized)


def read_thresholds(
    texts: Iterable[str],
    flag: str,
    name_and_top: Callable[[str], tuple[str, float | None]],
    *,
    may_be_sized: bool = False,
) -> tuple[Threshold, ...]:
    """Read thresholds of any measures.

    Args:
        texts: Each MEASURE=NUMBER.
        flag: What messages call it.
        name_and_top: Gives a measure's canonical name and its highest value, None without end.
        may_be_sized: Whether MEASURE=auto is one, too.

    Raises:
        UsageError: As for `parse_thresholds`.
    """
    thresholds: dict[str, Threshold] = {}
    for text in texts:
        where = f"{flag} {text[:_LONGEST]}"
        named, equals, written = text.rpartition("=")
        if not equals or not named.strip() or ")" in written:
            raise UsageError(f"{where}: expected MEASURE=NUMBER, such as nDCG@10=0.7")
        name, top = name_and_top(named)
        is_sized = may_be_sized and written.strip() == SIZED
        value = 0.0 if is_sized else _number(written, where, top)
        if name in thresholds:
            raise UsageError(f"{where}: {name} is given twice; one threshold a measure")
        thresholds[name] = Threshold(name, value, is_sized)
    return tuple(thresholds.values())


def parse_share(text: str, flag: str) -> float:
    """Read a share written as `1%` or `0.01`.

    Raises:
        UsageError: It is no number from 0 to 1, or 0 % to 100 %.
    """
    return _number(text, f"{flag} {text[:_LONGEST]}", 1.0)


def parse_count(text: str, flag: str) -> int:
    """Read a whole number from 1 on.

    Raises:
        UsageError: It is none.
    """
    written = text.strip()
    if not (written.isascii() and written.isdecimal() and len(written) < 10 and int(written)):
        raise UsageError(f"{flag} {text[:_LONGEST]}: expected a whole number of at least 1")
    return int(written)


def _of_retrieval(text: str) -> tuple[str, float | None]:
    from ragforge.measures import parse_measure
    from ragforge.measures.formulas import FORMULAS

    measure = parse_measure(text)
    return str(measure), None if FORMULAS[measure.name].unbounded else 1.0


def _number(text: str, where: str, top: float | None) -> float:
    written = text.strip()
    allowed = "a number from 0 on" if top is None else f"a number from 0 to {top:g}, or 0% to 100%"
    if not _NUMBER.fullmatch(written):
        raise UsageError(f"{where}: {written!r} is no number; expected {allowed}")
    if written.endswith("%") and top is None:
        raise UsageError(f"{where}: a percentage of what? Expected {allowed}")
    value = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    if not isfinite(value) or value < 0 or (top is not None and value > top):
        raise UsageError(f"{where}: {written} is out of range; expected {allowed}")
    return value


def _worst(decision: Decision) -> str:
    if not decision.worst:
        return ""
    items = plural(decision.n_left_out, "item")
    left_out = f" and {items} that cannot be compared" if decision.n_left_out else ""
    return f" with all failures{left_out} at their worst"
