"""A decision by as few judged pairs as it took, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragforge.evaluating.formatting import Table, both_ends, one_line, plural, share, signed

if TYPE_CHECKING:
    from ragforge.measures.sequential import DecidedDifference
    from ragforge.measures.sequential_several import Standings

FALSE_WINNERS = (
    "where runs do not differ, a winner is named in at most 5 % of comparisons (3 to 4 % on "
    "human-judged runs)"
)


def decision_lines(
    *,
    names: tuple[str, str],
    measure: str,
    winner: str,
    why: str,
    decided: "DecidedDifference",
    pool: int,
    n_queries: int,
    looks: int,
    judge: str,
) -> list[str]:
    """Return what was decided and what it rests on, a sentence a line.

    Args:
        names: Of the runs, A and B.
        measure: It was decided by.
        winner: Name of a run, TIE or UNKNOWN.
        why: It is unknown.
        decided: The decision.
        pool: Pairs that judging both runs as a whole would take.
        n_queries: Of the comparison.
        looks: How often the grades were looked at.
        judge: Who graded, in words.
    """
    look = decided.look
    a, b = (both_ends(name, 60) for name in names)
    ends = f"[{signed(decided.low, 4)}, {signed(decided.high, 4)}]"
    used = f"{look.n_judged:,} of {pool:,} pairs judged ({share(look.n_judged, pool)})"
    lines = [
        f"{_verdict(winner, why, a, b)} by {measure}, graded by {judge}",
        f"{b} less {a}: {signed(look.difference, 4)} {ends} over "
        f"{plural(n_queries, 'query', 'queries')}",
        f"{used}, in {plural(looks, 'look')}; {FALSE_WINNERS}",
    ]
    if winner == "TIE":
        missed = max(abs(decided.low), abs(decided.high))
        lines.append(f"not shown: a difference of more than {missed:.4f} would hardly be a tie")
    if look.share < 1:
        lines.append("an early estimate is 3 to 8 % too large; its interval allows for that")
    return lines


def gate_lines(
    *,
    outcome: str,
    names: tuple[str, str],
    measure: str,
    allowed: float,
    decided: "DecidedDifference",
    worst: tuple[float, float] | None,
    pool: int,
    n_queries: int,
    judge: str,
) -> list[str]:
    """Return whether a run may take another's place, and what that rests on, a sentence a line.

    Args:
        outcome: PASS, FAIL, NOT_SHOWN or REFUSED.
        names: Of the run that ships now, and of the one that is to.
        measure: It was decided by.
        allowed: How much lower the mean may be.
        decided: The difference, now less before.
        worst: Its interval with all failures at their worst; None where none moves it.
        pool: Pairs that judging both runs as a whole would take.
        n_queries: Of the comparison.
        judge: Who graded, in words.
    """
    look = decided.look
    base, run = (both_ends(name, 60) for name in names)
    said = {
        "PASS": f"a drop of more than {allowed:g} is ruled out",
        "FAIL": "a drop is shown",
        "NOT_SHOWN": f"neither a drop is shown, nor is one of {allowed:g} ruled out",
        "REFUSED": "no judge graded, a baseline or ragforge mock did: nothing is decided",
    }[outcome]
    ends = f"[{signed(decided.low, 4)}, {signed(decided.high, 4)}]"
    if worst is not None and outcome != "REFUSED":
        said += ", with all failures at their worst"
        ends += f" (failures at their worst: [{signed(worst[0], 4)}, {signed(worst[1], 4)}])"
    used = f"{look.n_judged:,} of {pool:,} pairs judged ({share(look.n_judged, pool)})"
    return [
        f"gate: {outcome.replace('_', ' ')}: {said}",
        f"{measure} of {run} less {base}: {signed(look.difference, 4)} {ends} over "
        f"{plural(n_queries, 'query', 'queries')}, graded by {judge}; {used}",
    ]


def standings_table(names: Sequence[str], decided: "Standings", *, is_baseline: bool) -> Table:
    """Return a row for each run, the best by the estimate first.

    Args:
        names: Of the runs.
        decided: Its runs are places in the names.
        is_baseline: Whether the grades are no judge's, so that nothing is shown.
    """
    first = one_line(names[decided.runs[0].run], 40)
    rows = []
    for each in decided.runs:
        told = "UNKNOWN"
        if not is_baseline:
            by = each.beaten_by
            told = "may be best" if by is None else f"worse than {one_line(names[by], 40)}"
        ends = f"[{signed(each.low, 4)}, {signed(each.high, 4)}]"
        is_first = each is decided.runs[0]
        cells = ("", "") if is_first else (signed(each.difference, 4), ends)
        rows.append((one_line(names[each.run], 40), told, *cells, f"{each.n_queries:,}"))
    headers = ("run", "", f"less {first}", "interval", "queries")
    is_same = len({each.n_queries for each in decided.runs}) == 1
    n_columns = len(headers) - is_same
    return Table("", headers[:n_columns], tuple(row[:n_columns] for row in rows))


def standings_lines(
    *, measure: str, decided: "Standings", pool: int, n_queries: int, judge: str
) -> list[str]:
    """Return what the table of several runs rests on, a sentence a line.

    Args:
        measure: It was decided by.
        decided: The decision.
        pool: Pairs that judging all runs as a whole would take.
        n_queries: Of the comparison.
        judge: Who graded, in words.
    """
    used = f"{decided.n_judged:,} of {pool:,} pairs judged ({share(decided.n_judged, pool)})"
    return [
        f"by {measure} over {plural(n_queries, 'query', 'queries')}, graded by "
        f"{judge}; {used}, in {plural(decided.n_looks, 'look')}",
        "the best run is among those that may be best in at least 95 % of such comparisons; "
        "intervals share 5 % among all pairs of runs",
    ]


def _verdict(winner: str, why: str, a: str, b: str) -> str:
    if winner == "TIE":
        return f"TIE between {a} and {b}"
    if winner == "UNKNOWN":
        return f"UNKNOWN which of {a} and {b} is better: {why},"
    return f"WINNER: {one_line(winner, 60)}"
