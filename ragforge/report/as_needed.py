"""A decision by as few judged pairs as it took, in words."""

from typing import TYPE_CHECKING

from ragforge.evaluating.formatting import one_line, plural, share

if TYPE_CHECKING:
    from ragforge.measures.sequential import Decided

FALSE_WINNERS = (
    "where runs do not differ, a winner is named in at most 5 % of comparisons (3 to 4 % on "
    "human-judged runs)"
)


def decision_lines(
    *,
    names: tuple[str, str],
    measure: str,
    winner: str,
    decided: "Decided",
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
        decided: The decision.
        pool: Pairs that judging both runs as a whole would take.
        n_queries: Of the comparison.
        looks: How often the grades were looked at.
        judge: Who graded.
    """
    look = decided.look
    a, b = (one_line(name, 60) for name in names)
    ends = f"[{decided.low:+.4f}, {decided.high:+.4f}]"
    used = f"{look.n_judged:,} of {pool:,} pairs judged ({share(look.n_judged, pool)})"
    lines = [
        f"{_verdict(winner, a, b)} by {measure}, graded by {one_line(judge, 60)}",
        f"{b} less {a}: {look.difference:+.4f} {ends} over {plural(n_queries, 'query', 'queries')}",
        f"{used}, in {plural(looks, 'look')}; {FALSE_WINNERS}",
    ]
    if winner == "TIE":
        missed = max(abs(decided.low), abs(decided.high))
        lines.append(f"not shown: a difference of more than {missed:.4f} would hardly be a tie")
    if look.share < 1:
        lines.append("an early estimate is 3 to 8 % too large; its interval allows for that")
    return lines


def _verdict(winner: str, a: str, b: str) -> str:
    if winner == "TIE":
        return f"TIE between {a} and {b}"
    if winner == "UNKNOWN":
        return f"UNKNOWN which of {a} and {b} is better: no judge graded, a baseline did,"
    return f"WINNER: {one_line(winner, 60)}"
