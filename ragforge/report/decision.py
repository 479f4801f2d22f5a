"""What a report opens with: which run is better, by how much, what that rests on, what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from ragforge.calibration.comparing import linear_instead, next_labels
from ragforge.deferred import dataclass
from ragforge.evaluating.comparison import Compared, ComparisonReport
from ragforge.evaluating.formatting import (
    both_ends,
    cost_of_thousand,
    duration,
    enumerated,
    number,
    plural,
    share,
    with_ends,
)
from ragforge.evaluating.graded_by import graded_line
from ragforge.evaluating.summary import Summary
from ragforge.measures.intervals import Ends
from ragforge.report.comparison import findings, has_doubtful_lead, is_of_evidence
from ragforge.report.document import Listing

Kind: TypeAlias = Literal["winner", "careful", "tie", "mixed", "unknown", "level"]
"""`careful`: a winner whose lead missing grades or failures could take away. `mixed`: some of
several are better than others, and none than all. `level`: one run."""

_NAME_CHARS: Final = 48
_JUDGE: Final = "`ragforge compare --judge --model NAME` grades what is missing, and decides again."
_RETRY: Final = "`ragforge judge --retry-failed` asks again for the judgments that failed."
_RETRIEVE: Final = "`ragforge retrieve`, or `ragforge answer`, asks again for what is missing."


@dataclass(frozen=True, slots=True)
class Difference:
    """How much higher B is than A, as it is drawn."""

    a: str
    b: str
    value: float
    interval: Ends


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a report by its first measure."""

    kind: Kind
    headline: str
    """One sentence."""
    measure: str
    found: tuple[str, ...]
    """By how much, and why not more surely; then what the other measures say."""
    rests_on: tuple[tuple[str, str], ...]
    """Terms and what is known of each: queries, grades, holes."""
    next_step: str
    difference: Difference | None = None
    """None where there are not just two, and where the numbers say nothing about quality."""


def decision_of(summary: Summary) -> Decision | None:
    """Return what the report comes to; None where nothing was measured."""
    report = summary.comparison or summary.answers_comparison
    if summary.comparison is None and len(summary.runs) > 1:
        return _not_compared(summary)
    if report is not None and (summary.comparison is not None or not summary.runs):
        return _of_pair(summary, report) if len(report.names) == 2 else _of_several(summary, report)
    return _of_one(summary) if summary.runs else None


def decision_listing(decision: Decision) -> Listing:
    """Return the decision as sentences."""
    rests = [f"{name}: {text}." for name, text in decision.rests_on]
    next_step = decision.next_step.replace("`", "")
    lines = (f"{decision.headline}.", *decision.found, *rests, f"Next: {next_step}")
    return Listing("Decision", lines)


def decision_json(decision: Decision) -> dict[str, object]:
    """Return the decision as JSON has it."""
    return {
        "kind": decision.kind,
        "headline": decision.headline,
        "measure": decision.measure,
        "found": list(decision.found),
        "rests_on": dict(decision.rests_on),
        "next": decision.next_step,
    }


def _of_pair(summary: Summary, report: ComparisonReport) -> Decision:
    measure = report.measures[0]
    (item,) = report.of_measure(measure)
    return Decision(
        _kind(item),
        _headline(item),
        measure,
        (*findings([item]), *_others(report)),
        tuple(_rests_on(summary, report)),
        _next(item, report, summary),
        _difference(item),
    )


def _kind(item: Compared) -> Kind:
    if item.outcome == "UNKNOWN":
        return "unknown"
    if item.better is None:
        return "tie"
    return "careful" if has_doubtful_lead(item) else "winner"


def _headline(item: Compared) -> str:
    names = item.comparison.b, item.comparison.a
    if item.better is None:
        b, a = map(_name, names)
        if item.comparison.is_identity:
            return f"{b} and {a} rank the same"
        if item.outcome == "TIE":
            return f"No difference is shown between {a} and {b}"
        return f"It is not known whether {a} or {b} is better"
    other = next(name for name in names if name != item.better)
    lead = "leads, not yet for sure, before" if has_doubtful_lead(item) else "is better than"
    return f"{_name(item.better)} {lead} {_name(other)}"


def _others(report: ComparisonReport) -> Iterator[str]:
    """Yield in words what measures but the first come to, those of one outcome together."""
    first = report.outcome_by(report.measures[0])
    by_outcome: dict[str, list[str]] = {}
    for measure in report.measures[1:]:
        by_outcome.setdefault(report.outcome_by(measure), []).append(measure)
    for outcome, measures in by_outcome.items():
        verb = "says" if len(measures) == 1 else "say"
        is_same = outcome == first and outcome not in {"MIXED", "SEVERAL"}
        says = "the same" if is_same else _in_words(outcome)
        yield f"{enumerated(measures)} {verb} {says}."


def _in_words(outcome: str) -> str:
    words = {
        "TIE": "nothing: no difference is shown",
        "UNKNOWN": "nothing: it is not known which is better",
        "MIXED": "that some are better than others, and none than all",
        "SEVERAL": "that several are better than the base",
    }
    return words.get(outcome, f"that {_name(outcome)} is better")


def _difference(item: Compared) -> Difference | None:
    found, corrected = item.comparison, item.corrected
    if item.withheld:
        return None
    if corrected is not None:
        ends = Ends(corrected.wide_low, corrected.wide_high)
        return Difference(found.a, found.b, corrected.value, ends)
    if found.diff is None or found.interval is None:
        return None
    return Difference(found.a, found.b, found.diff, found.interval)


def _of_several(summary: Summary, report: ComparisonReport) -> Decision:
    measure = report.measures[0]
    items = report.of_measure(measure)
    outcome, better = report.outcome_by(measure), report.better_by(measure)
    mine = [item for item in items if outcome in (item.comparison.a, item.comparison.b)]
    is_careful = any(map(has_doubtful_lead, mine))
    n_others = len(report.names) - 1
    base = report.baseline
    against = f"than {_name(base)}" if base else f"than each of the other {n_others}"
    lead = "leads, not yet for sure, before all others" if is_careful else f"is better {against}"
    headlines = {
        "TIE": f"No difference is shown among {plural(len(report.names), 'run')}",
        "UNKNOWN": f"It is not known which of {plural(len(report.names), 'run')} is best",
        "MIXED": f"No single best among {plural(len(report.names), 'run')}",
        "SEVERAL": f"{enumerated(list(map(_name, better)))} are better {against}",
    }
    kinds: dict[str, Kind] = {
        "TIE": "tie", "UNKNOWN": "unknown", "MIXED": "mixed", "SEVERAL": "winner",
    }  # fmt: skip
    unknown = [item for item in items if item.outcome == "UNKNOWN"]
    asked = [*mine, *unknown, _of_the_best(report)]
    return Decision(
        kinds.get(outcome, "careful" if is_careful else "winner"),
        headlines.get(outcome, f"{_name(outcome)} {lead}"),
        measure,
        (*_found_of_several(report, items), *_others(report)),
        tuple(_rests_on(summary, report)),
        _next(asked[0], report, summary),
    )


def pair_asked_for(report: ComparisonReport, base: str) -> tuple[str, str]:
    """Return the pair that a reader looks at first: the base and the best of the others.

    Args:
        report: Of two runs or more.
        base: The run that others are held against; "" for none: the two best then.
    """
    item = _of_the_best(report, base)
    return item.comparison.a, item.comparison.b


def _of_the_best(report: ComparisonReport, base: str = "") -> Compared:
    """Return the pair with the highest means by the first measure, of those with the base."""
    means = report.means[report.measures[0]]
    items = report.of_measure(report.measures[0])

    def both(item: Compared) -> float:
        found = (means.get(item.comparison.a), means.get(item.comparison.b))
        return sum(-1.0 if mean is None else mean for mean in found)

    mine = [item for item in items if base in (item.comparison.a, item.comparison.b)]
    return max(mine or items, key=both)


def _found_of_several(report: ComparisonReport, items: Sequence[Compared]) -> Iterator[str]:
    measure = report.measures[0]
    shown = sum(item.better is not None for item in items)
    unknown = [item for item in items if item.outcome == "UNKNOWN"]
    yield f"By {measure}, {shown:,} of {plural(len(items), 'pair')} can be told apart."
    letters = report.letters.get(measure, {})
    best = [name for name in report.names if "a" in letters.get(name, "")]
    if 1 < len(best) < len(report.names):
        yield f"{enumerated(list(map(_name, best)))} are not told apart from the best."
    if unknown:
        first = unknown[0].comparison
        such = "such as" if len(unknown) > 1 else "that of"
        names = enumerated([_name(first.a), _name(first.b)])
        yield f"UNKNOWN in {plural(len(unknown), 'pair')}, {such} {names}: {unknown[0].withheld}."
    if report.outcome_by(measure) == "SEVERAL":
        yield "Which of those is best is not told: they were held against the base only."


def _not_compared(summary: Summary) -> Decision:
    return Decision(
        "unknown",
        f"It is not known which of {plural(len(summary.runs), 'run')} is best",
        summary.measures[0],
        (summary.not_compared or "These runs cannot be compared.",),
        tuple(_grades(summary)),
        f"see to that first. Then {_JUDGE}",
    )


def _of_one(summary: Summary) -> Decision:
    (run,) = summary.runs
    measure = summary.measures[0]
    estimate = run.estimates[measure]
    ends = estimate.interval
    value = number(estimate.mean)
    if ends is not None:
        value = with_ends(estimate.mean, ends.low, ends.high)
    found = "One run says how it does, and not whether a change made it better."
    rests = [("Queries", f"{estimate.n:,} with a value"), *_grades(summary)]
    step = (
        "retrieve with what you want to hold against it, then `ragforge compare --judge`. What to "
        "repair first is under “Worst queries”."
    )
    reaches = f"reaches {value}" if estimate.mean is not None else "has no value"
    headline = f"{_name(run.name)} {reaches} in {measure}"
    return Decision("level", headline, measure, (found,), tuple(rests), step)


def _rests_on(summary: Summary, report: ComparisonReport) -> Iterator[tuple[str, str]]:
    items = report.of_measure(report.measures[0])
    n_left_out = max(item.n_left_out for item in items)
    counted = plural(max(item.comparison.n for item in items), "query", "queries")
    left = f"; {n_left_out:,} left out because something failed" if n_left_out else ""
    yield "Queries", f"{counted}{left}"
    lacking = [
        f"{_name(run.name)} lacks {len(run.attention.missing):,}, which "
        + ("are left out" if run.name in report.n_lacked else "count 0")
        for run in summary.runs
        if run.attention.missing and report.of == "runs" and run.name in report.names
    ]
    if lacking:
        yield "Not retrieved", "; ".join(lacking)
    if is_of_evidence(report):
        yield "Grades", "none needed: the queries' evidence is looked for in what was retrieved"
    else:
        yield from _grades(summary, report.of)
    yield (
        "Chance",
        f"{share(report.alpha)} for any false finding among "
        f"{plural(len(report.items), 'comparison')}",
    )


def _grades(summary: Summary, of: str = "runs") -> Iterator[tuple[str, str]]:
    graded = summary.graded_of(of)
    yield "Grades", graded_line(graded, summary.correction).removeprefix("graded ")
    if of == "answers":
        return
    if summary.several_judges:
        yield "Whose grades", summary.several_judges
    shares = [run.holes.share for run in summary.runs if run.holes.share]
    if shares:
        yield "Without a grade", f"up to {share(max(shares))} of the top 10 of a run"


def _next(item: Compared, report: ComparisonReport, summary: Summary) -> str:
    if item.outcome == "UNKNOWN":
        return _settling(item, report)
    if item.better is None:
        power, keep = item.comparison.power, f"keep the cheaper one{_cheaper(item, summary)}"
        has_no_power = item.comparison.is_identity or item.corrected is not None
        if has_no_power or power is None or power.n_for_half is None:
            return f"{keep}, or compare on more queries."
        return (
            f"{keep}, or compare on more queries: "
            f"{power.n_for_half:,} would show half of the difference that these can."
        )
    if has_doubtful_lead(item):
        return f"do not decide yet. {_JUDGE}"
    return (
        "look at what it loses below, then let `ragforge gate` hold "
        f"{_name(item.better)} at this level in CI."
    )


def _settling(item: Compared, report: ComparisonReport) -> str:
    """Return what would tell which one is better, where that is not known."""
    if item.fair_measure:
        names = f"{_name(item.comparison.a)} {_name(item.comparison.b)}"
        return f'`ragforge compare {names} -m "{item.fair_measure}"` gives both the same prompt.'
    if item.lacks_questions:
        return "compare on more questions: other wordings of the same ones tell nothing more."
    if report.calibration is not None:
        return _by_labels(item, report)
    if item.has_uneven_labels:
        return "`ragforge calibrate sample` draws pairs of both for people to label."
    if item.is_open:
        return f"{_RETRY} {_JUDGE}" if item.n_open > item.n_left_out else _RETRIEVE
    return _JUDGE


def _by_labels(item: Compared, report: ComparisonReport) -> str:
    """Return what labels decide that is unknown, or which measure does by those there are."""
    if instead := linear_instead(report):
        names = f"{_name(item.comparison.a)} {_name(item.comparison.b)}"
        return f"`ragforge compare {names} -m {instead} --calibrated` needs no ideal ranking."
    return f"people's labels are missing: `ragforge calibrate {next_labels(report)[0]}`."


def _cheaper(item: Compared, summary: Summary) -> str:
    """Return in words which of two is cheaper, or else faster; "" where neither is known."""
    names = (item.comparison.a, item.comparison.b)
    priced: dict[str, float | None]
    if summary.comparison is not None:
        priced = {run.name: run.usd_per_query for run in summary.runs}
        timed = {run.name: run.latency for run in summary.runs}
    else:
        priced = {of.system: of.usd_per_query for of in summary.answers if of.is_priced}
        timed = {of.system: of.latency for of in summary.answers}
    costs = {name: usd for name in names if (usd := priced.get(name)) is not None}
    if len(costs) == len(names):
        shown = {name: cost_of_thousand(usd) for name, usd in costs.items()}
        return _less_of(costs, shown, " USD for 1,000 queries")
    times = {name: taken.median_s for name in names if (taken := timed.get(name)) is not None}
    if len(times) < len(names):
        return ""
    return _less_of(times, {name: duration(s) for name, s in times.items()}, " for a median query")


def _less_of(values: Mapping[str, float], shown: Mapping[str, str], of_what: str) -> str:
    less, more = sorted(values, key=lambda name: values[name])
    if shown[less] == shown[more]:
        return ""
    return f" ({_name(less)}: {shown[less]}{of_what}, {_name(more)}: {shown[more]})"


def _name(name: str) -> str:
    return both_ends(name, _NAME_CHARS)
