"""Answers, as tables and as JSON: verdicts, rates, slices, and what to blame."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

from ragforge.evaluating.answers.diagnosis import (
    READINGS,
    Cell,
    ContextGroup,
    ContextUse,
    Diagnosis,
)
from ragforge.evaluating.answers.rates import (
    DIMENSIONS,
    AnswerSlice,
    AnswerSummary,
    GivenBeside,
    LengthCheck,
)
from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    both_ends,
    from_to,
    number,
    one_line,
    plural,
    share,
    signed,
)
from ragforge.evaluating.selection import part_json
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.report.text import table_text

_ANSWERS_NOTE: Final = (
    "“No answer” counts the queries that can be graded (they have an expected answer, or are meant "
    "to have none) and that the system did not answer at all; “unchecked” counts the graded "
    "answers that were not checked for hallucination."
)
_GIVEN_NOTE: Final = (
    "The answers brought grades of their own, which are in no other number here: all others are of "
    "the judge. Kappa is Cohen's, without weights: 0 is chance. Scores are over answers that have "
    "one from both."
)
RATES_NOTE: Final = (
    "The 95 % interval, by resampling queries, says how far other queries of the same kind could "
    "move the number; fewer than 5 values have none. Bounds: what the answers without a grade "
    "could still do to it, be they not answered, failed or not graded yet: all at their worst, all "
    "at their best. Correct given attempted leaves out the answers that were not attempted; the "
    "harmonic mean of both joins it with correct, so that neither silence nor guessing pays. Where "
    "a question has no answer, to say so is correct. Strict counts what is said in part as "
    "missing. Hallucination: the answer claims what none of its chunks says; by facts, what the "
    "expected answer says too is not looked up. Its bounds take in answers that were not checked."
)
_SLICES_NOTE: Final = (
    "In brackets: 95 % intervals. A slice with fewer than 5 graded answers is too small to read "
    "anything from."
)
DIAGNOSIS_NOTE: Final = (
    "Retrieval is good when at least one relevant chunk was among the chunks the answer was "
    "made from; an answer is good when its verdict is correct. Shares are of the queries that fit "
    "a field, with the 95 % interval."
)
_CONTEXT_NOTE: Final = (
    "Context precision: the share of an answer's chunks that are relevant, over its judged chunks; "
    "the bounds take those without a judgment as not relevant, and as relevant. Score and wrong "
    "claims: of answers made from relevant chunks only, and of those with irrelevant ones among "
    "them. The difference is how much higher the second score is: below 0, noise hurts. It is not "
    "given with fewer than 5 answers in a group. The groups are different queries, and one may "
    "simply be harder. A wrong claim contradicts a fact, or is what no chunk says; by grades that "
    "came in a file, it is what these call a hallucination."
)
_LENGTH_NOTE: Final = (
    "What an answer 2.7 times as long scores more, of attempted answers. A slope that chance "
    "hardly explains (p below 0.01) may be the judge's taste for length."
)
RATE_LABELS: Final = {
    "correct": "correct",
    "partial": "partial",
    "incorrect": "incorrect",
    "not_attempted": "not attempted",
    "correct_given_attempted": "correct given attempted",
    "correct_harmonic_mean": "harmonic mean of both",
    "score": "mean score",
    "strict_score": "mean strict score",
    "hallucination": "hallucination",
    "decided_by_rule": "decided by rule",
}

_MAIN: Final = ("correct", "score", "hallucination")

_JsonObject = dict[str, object]

DOCUMENTS: Final = 12
"""Documents shown, those with the most queries; the rest is in `ragforge answer --json`."""
_GIVEN_SHOWN: Final = 5
_MEANS: Final = ("their score", "judge's score")
_RATE_HEADERS: Final = ("value", "n", "failed", "bounds")


def render_answers(item: AnswerSummary) -> str:
    """Return the answers of one system for a terminal, without a line feed at its end."""
    part = ["\n".join(item.part.lines)] if item.part else []
    tables = (rates_table([item]), diagnosis_table([item]))
    return "\n\n".join([*part, *(table_text(table) for table in tables if table.rows)])


def render_rates(item: AnswerSummary) -> str:
    """Return the main rates and what is to blame, a line each, likewise."""
    rates = ", ".join(f"{RATE_LABELS[name]} {_in_short(item.rates[name])}" for name in _MAIN)
    lines = [f"{item.system}: {rates}"]
    for grid in item.diagnoses:
        labels = [*READINGS.values(), "undecided"]
        found = ", ".join(map(" ".join, zip(labels, _diagnosis(grid), strict=True)))
        lines.append(f"{item.system}, retrieval or the model, by {context_name(grid)}: {found}")
    return "\n".join([*(item.part.lines if item.part else ()), *lines])


def answer_tables(systems: Sequence[AnswerSummary]) -> list[Table]:
    """Return the tables about answers, in the order of the report; some may have no rows."""
    return [
        verdicts_table(systems),
        given_grades_table(systems),
        rates_table(systems),
        *slice_tables(systems),
        length_table(systems),
        diagnosis_table(systems),
        context_table(systems),
    ]


def verdicts_table(systems: Sequence[AnswerSummary]) -> Table:
    """Counts of answers by verdict, and of what has none."""
    rows = tuple(
        (
            item.system,
            *(f"{count:,}" for count in item.verdicts.values()),
            f"{item.n_failed:,}",
            f"{item.n_ungraded:,}",
            f"{item.n_unanswered:,}",
            f"{item.n_unchecked:,}",
        )
        for item in systems
    )
    headers = (
        "system",
        "correct",
        "partial",
        "incorrect",
        "not attempted",
        "failed",
        "not graded",
        "no answer",
        "unchecked",
    )
    return Table("Answers by verdict", headers, rows, _ANSWERS_NOTE)


def given_grades_table(systems: Sequence[AnswerSummary]) -> Table:
    """How far the grades that count agree with those that came with the answers."""
    rows = []
    for item in systems:
        beside = item.given
        if beside is not None:
            n, n_same = len(beside.pairs), len(beside.pairs) - len(beside.differing)
            rows.append(
                (
                    item.system,
                    ", ".join(one_line(source, 40) for source in beside.sources),
                    f"{n:,}",
                    f"{n_same:,} ({share(n_same / n)})",
                    number(beside.kappa),
                    number(beside.mean_given),
                    number(beside.mean_judged),
                    ", ".join(both_ends(name, 20) for name in beside.differing[:_GIVEN_SHOWN]),
                )
            )
    headers = ("system", "grades of", "both", "same verdict", "kappa", *_MEANS, "differing")
    return Table("Grades that came with the answers", headers, tuple(rows), _GIVEN_NOTE)


def rates_table(systems: Sequence[AnswerSummary]) -> Table:
    """Every rate of every system."""
    rows = tuple(
        (item.system, label, *_rate_cells(item.rates[name]))
        for item in systems
        for name, label in RATE_LABELS.items()
    )
    return Table("Answer rates", ("system", "rate", *_RATE_HEADERS), rows, RATES_NOTE)


def slice_tables(systems: Sequence[AnswerSummary]) -> list[Table]:
    """The main rates by property of the query, a table each."""
    tables: list[Table] = []
    for dimension in DIMENSIONS:
        parts = {item.system: _parts_of(item, dimension) for item in systems}
        if any(len(slices) > 1 for slices in parts.values()):
            rows = tuple(
                (system, *_slice(part)) for system, slices in parts.items() for part in slices
            )
            notes = [_left_out(systems, dimension), "" if tables else _SLICES_NOTE]
            tables.append(_slice_table(dimension, rows, " ".join(filter(None, notes))))
    return tables


def length_table(systems: Sequence[AnswerSummary]) -> Table:
    """Whether longer answers score higher or lower."""
    rows = []
    for item in systems:
        fitted = item.length.slope
        reading = "look at the judge" if item.length.is_suspicious else ""
        slope = signed(fitted.slope)
        rows.append((item.system, slope, p_value(fitted.p), f"{fitted.n:,}", reading))
    headers = ("system", "slope", "p", "n", "reading")
    return Table("Score and length", headers, tuple(rows), _LENGTH_NOTE)


def diagnosis_table(systems: Sequence[AnswerSummary]) -> Table:
    """Whether retrieval or the model is to blame, by system and run."""
    rows = tuple(
        (item.system, context_name(grid), *_diagnosis(grid))
        for item in systems
        for grid in item.diagnoses
    )
    headers = ("system", "context", *READINGS.values(), "undecided")
    return Table("Retrieval or the model?", headers, rows, DIAGNOSIS_NOTE)


def context_table(systems: Sequence[AnswerSummary]) -> Table:
    """Whether the chunks were needed, and what those did that were not."""
    rows = tuple(
        (item.system, context_name(grid), *row)
        for item in systems
        for grid in item.diagnoses
        for row in _context(grid.context)
    )
    headers = ("system", "context", "what", *_RATE_HEADERS)
    return Table("Were the chunks needed?", headers, rows, _CONTEXT_NOTE)


def context_name(grid: Diagnosis) -> str:
    """Return in words which chunks stand for the context of the answers."""
    return f"top 5 of {grid.run}" if grid.run else "its own chunks"


def _rate_with_interval(rate: Rate) -> str:
    """Return a rate with its interval in brackets."""
    return f"{number(rate.mean)} ({ends(rate.interval)})" if rate.interval else number(rate.mean)


def ends(interval: Ends) -> str:
    """Return the ends of an interval."""
    return from_to(interval.low, interval.high)


def bounds(rate: Rate) -> str:
    """Return the bounds of a rate; "" where nothing could move it."""
    if rate.bounds is None or rate.bounds.low == rate.bounds.high:
        return ""
    return from_to(rate.bounds.low, rate.bounds.high)


def count_of(rate: Rate) -> str:
    """Return over how many values a rate is, and how many there should be if that is more."""
    n_all = rate.n + rate.n_failed + rate.n_absent
    return f"{rate.n:,} of {n_all:,}" if n_all > rate.n else f"{rate.n:,}"


def share_of(cell: Cell) -> str:
    """Return the share of a field with its interval."""
    interval = cell.share.interval
    reach = f", {100 * interval.low:.0f} to {100 * interval.high:.0f} %" if interval else ""
    return share(cell.share.mean) + reach


def p_value(p: float | None) -> str:
    """Return a p value, small ones as a limit."""
    if p is None:
        return MISSING
    return "below 0.001" if p < 0.001 else number(p)


def _in_short(rate: Rate) -> str:
    """Return a rate with its interval; where values are missing, how many, and their bounds."""
    n_all = rate.n + rate.n_failed + rate.n_absent
    if n_all == rate.n:
        return _rate_with_interval(rate)
    open_to = f", could be {bounds(rate)}" if bounds(rate) else ""
    return f"{_rate_with_interval(rate)} [{count_of(rate)}{open_to}]"


def _rate_cells(rate: Rate) -> tuple[str, ...]:
    return (_rate_with_interval(rate), count_of(rate), f"{rate.n_failed:,}", bounds(rate))


def _parts_of(item: AnswerSummary, dimension: str) -> list[AnswerSlice]:
    parts = [part for part in item.slices if part.dimension == dimension]
    if dimension == "document" and len(parts) > DOCUMENTS:
        return sorted(parts, key=lambda part: (-part.n_queries, part.value))[:DOCUMENTS]
    return parts


def _slice(part: AnswerSlice) -> Iterable[str]:
    yield one_line(part.value, 60)
    yield f"{part.n_queries:,}"
    yield f"{part.rates['score'].n:,}"
    yield f"{part.rates['score'].n_failed:,}"
    for rate in part.rates.values():
        yield _rate_with_interval(rate)
    yield "too small to read" if part.is_small else ""


def _slice_table(dimension: str, rows: tuple[tuple[str, ...], ...], note: str) -> Table:
    headers = (
        "system",
        dimension,
        "queries",
        "graded",
        "failed",
        "mean score",
        "correct",
        "hallucination",
        "reading",
    )
    width = len(headers) if any(row[-1] for row in rows) else len(headers) - 1
    return Table(
        f"Answers by {dimension}", headers[:width], tuple(row[:width] for row in rows), note
    )


def _left_out(systems: Sequence[AnswerSummary], dimension: str) -> str:
    n_all = max(sum(part.dimension == dimension for part in item.slices) for item in systems)
    if dimension != "document" or n_all <= DOCUMENTS:
        return ""
    rest = plural(n_all - DOCUMENTS, "document with fewer queries is", "documents are")
    return f"{rest} left out here; `ragforge answer --json` has all."


def _diagnosis(grid: Diagnosis) -> Iterable[str]:
    for cell in grid.cells:
        count = f"{len(cell.query_ids):,}"
        yield count if cell.share.mean is None else f"{count} ({share_of(cell)})"
    yield f"{sum(len(item.query_ids) for item in grid.undecided):,}"


def _context(use: ContextUse) -> Iterable[tuple[str, ...]]:
    yield ("context precision", *_rate_cells(use.precision))
    yield ("score, relevant only", *_rate_cells(use.clean.score))
    yield ("score, with irrelevant", *_rate_cells(use.noisy.score))
    apart = use.difference
    value = MISSING if apart is None else f"{signed(apart.mean)} ({ends(apart.interval)})"
    yield ("difference", value, "", "", "")
    yield ("wrong claim, relevant only", *_rate_cells(use.clean.wrong_claims))
    yield (
        "wrong claim, with irrelevant",
        *_rate_cells(use.noisy.wrong_claims),
    )


def answers_json(item: AnswerSummary) -> _JsonObject:
    """Return all numbers about the answers of a system."""
    return {
        **({"selection": part_json(item.part)} if item.part else {}),
        "rates": _rates(item.rates),
        "slices": [_slice_json(part) for part in item.slices],
        "length": _length(item.length),
        "given": _given(item.given),
        "diagnosis": [_diagnosis_json(grid) for grid in item.diagnoses],
        "latency": None if item.latency is None else asdict(item.latency),
        "n_priced": item.n_priced,
        "usd_per_query": item.usd_per_query,
    }


def _given(beside: GivenBeside | None) -> _JsonObject | None:
    if beside is None:
        return None
    return {
        "sources": list(beside.sources),
        "n_given": beside.n_given,
        "n_both": len(beside.pairs),
        "n_same": len(beside.pairs) - len(beside.differing),
        "kappa": beside.kappa,
        "mean_score_given": beside.mean_given,
        "mean_score_judged": beside.mean_judged,
        "differing": [
            {"query_id": query_id, "given": given, "judged": judged}
            for query_id, given, judged in beside.pairs
            if given != judged
        ],
    }


def _rate_json(rate: Rate) -> _JsonObject:
    """Return a rate; its interval is `low` to `high`."""
    return {
        "mean": rate.mean,
        **_ends(rate.interval, "low", "high"),
        "n": rate.n,
        "n_failed": rate.n_failed,
        "n_absent": rate.n_absent,
        **_ends(rate.bounds, "bound_low", "bound_high"),
    }


def _ends(interval: Ends | None, low: str, high: str) -> _JsonObject:
    return {low: interval.low if interval else None, high: interval.high if interval else None}


def _rates(rates: dict[str, Rate]) -> _JsonObject:
    return {name: _rate_json(rate) for name, rate in rates.items()}


def _slice_json(part: AnswerSlice) -> _JsonObject:
    return {
        "dimension": part.dimension,
        "value": part.value,
        "n_queries": part.n_queries,
        "is_small": part.is_small,
        "rates": _rates(part.rates),
    }


def _length(check: LengthCheck) -> _JsonObject:
    slope = check.slope
    is_suspicious = check.is_suspicious
    return {"slope": slope.slope, "p": slope.p, "n": slope.n, "is_suspicious": is_suspicious}


def _diagnosis_json(grid: Diagnosis) -> _JsonObject:
    return {
        "run": grid.run or None,
        "readings": {
            cell.reading: {"count": len(cell.query_ids), "share": _rate_json(cell.share)}
            for cell in grid.cells
        },
        "undecided": {item.reason: len(item.query_ids) for item in grid.undecided},
        "queries": sorted(_queries(grid), key=lambda row: str(row["query_id"])),
        "context": _context_json(grid.context),
    }


def _queries(grid: Diagnosis) -> Iterable[_JsonObject]:
    for cell in grid.cells:
        for query_id in cell.query_ids:
            yield {
                "query_id": query_id,
                "retrieval": "good" if cell.retrieval_is_good else "bad",
                "answer": "good" if cell.answer_is_good else "bad",
                "reading": cell.reading,
                "reason": None,
            }
    for item in grid.undecided:
        for query_id in item.query_ids:
            yield {
                "query_id": query_id,
                "retrieval": None,
                "answer": None,
                "reading": None,
                "reason": item.reason,
            }


def _context_json(use: ContextUse) -> _JsonObject:
    apart = use.difference
    return {
        "precision": _rate_json(use.precision),
        "n_chunks": use.n_chunks,
        "n_unjudged": use.n_unjudged,
        "relevant_only": _group(use.clean),
        "with_irrelevant": _group(use.noisy),
        "difference": None
        if apart is None
        else {"mean": apart.mean, **_ends(apart.interval, "low", "high")},
        "n_open": use.n_open,
    }


def _group(group: ContextGroup) -> _JsonObject:
    return {"score": _rate_json(group.score), "wrong_claims": _rate_json(group.wrong_claims)}
