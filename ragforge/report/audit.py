"""The audit of a judge, as tables: what each attack did to its grades, and on which pairs."""

from collections.abc import Iterable
from typing import Final

from ragforge.evaluating.formatting import MISSING, one_line, plural, share
from ragforge.evaluating.judgments import Judge
from ragforge.evaluating.text_table import Table
from ragforge.records import AttackFindings, AuditRate, JudgeAudit, Provenance

TITLE: Final = "Judge audit"
_EXAMPLES: Final = 2
_EXPECTED: Final = {
    "unchanged": "keeps the grade",
    "not raised": "does not raise it",
    "lowered": "lowers it",
    "not relevant": "grades below 2",
}
_NOTE: Final = (
    "Swayed: pairs on which the judge did not do what a sound one does. Crossed: the grade changed "
    "sides between below 2 and 2 or above. Shift: attacked grade less plain grade. All are means "
    "over queries, in brackets with the 95 % interval of queries drawn anew; in parentheses the "
    "bounds within which the failed pairs could have put it. A failure is no flip."
)


def audit_tables(audit: JudgeAudit | None) -> list[Table]:
    """Return the tables about an audit, none where none was made."""
    return [] if audit is None else [_attacks(audit), _examples(audit)]


def of_another_judge(audit: JudgeAudit | None, judges: Iterable[Judge]) -> bool:
    """Whether there is an audit, and none of the relevance judges is the one that it is of."""
    if audit is None:
        return False
    graded = [judge for judge in judges if judge.task == "relevance" and judge.kind != "human"]
    audited = (audit.judge.model, audit.judge.prompt_sha256)
    return bool(graded) and audited not in {(one.model, one.prompt_sha256) for one in graded}


def audit_line(audit: JudgeAudit) -> str:
    """Say who was audited, and on what."""
    counts = ", ".join(f"{count:,} of {grade}" for grade, count in enumerate(audit.grades))
    failed = f"{audit.n_plain_failed:,} of {plural(audit.n_plain, 'plain text')}"
    return (
        f"{judge_in_words(audit.judge)}, on {plural(audit.n_pairs, 'pair')} of "
        f"{plural(audit.n_queries, 'query', 'queries')} (plain grades: {counts}), seed "
        f"{audit.seed}. {failed} got no grade ({share(audit.n_plain_failed, audit.n_plain)})."
    )


def judge_in_words(judge: Provenance) -> str:
    """Return who judges: the model, with its prompt where it has one; the baseline named so."""
    if judge.kind == "baseline":
        return f"the offline baseline ({judge.model})"
    if judge.kind == "mock":
        return f"ragforge mock in the place of {judge.model}"
    prompt = f" with prompt {judge.prompt} {judge.prompt_sha256[:8]}" if judge.prompt else ""
    protocol = f" ({judge.protocol})" if judge.protocol else ""
    return f"{judge.model or judge.kind}{prompt}{protocol}"


def _attacks(audit: JudgeAudit) -> Table:
    headers = (
        "attack",
        "a sound judge",
        "pairs",
        "queries",
        "failed",
        "swayed",
        "changed",
        "raised",
        "crossed",
        "shift",
    )
    rows = tuple(_row(findings) for findings in audit.attacks)
    return Table(TITLE, headers, rows, f"Of {audit_line(audit)} {_NOTE}")


def _row(findings: AttackFindings) -> tuple[str, ...]:
    bounds = _bounds(findings.swayed) if findings.n_failed else ""
    return (
        findings.attack,
        _EXPECTED[findings.expects],
        f"{findings.n_pairs:,}",
        f"{findings.n_queries:,}",
        f"{findings.n_failed:,}",
        _percent(findings.swayed) + bounds,
        _percent(findings.flipped),
        _percent(findings.raised),
        _percent(findings.crossed),
        _shift(findings.shift),
    )


def _examples(audit: JudgeAudit) -> Table:
    rows = tuple(
        (
            findings.attack,
            one_line(pair.query_id, 40),
            one_line(pair.chunk_id, 40),
            str(pair.before),
            str(pair.after),
        )
        for findings in audit.attacks
        for pair in findings.worst[:_EXAMPLES]
    )
    headers = ("attack", "query_id", "chunk_id", "plain grade", "attacked grade")
    note = "Where an attack uses the passage of another query, chunk_id is that passage's."
    return Table(f"{TITLE}: pairs to look at", headers, rows, note)


def _percent(rate: AuditRate) -> str:
    if rate.mean is None:
        return MISSING
    if rate.low is None or rate.high is None:
        return f"{100 * rate.mean:.0f} %"
    return f"{100 * rate.mean:.0f} % [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"


def _bounds(rate: AuditRate) -> str:
    if rate.bound_low is None or rate.bound_high is None:
        return ""
    return f" ({100 * rate.bound_low:.0f}\u2013{100 * rate.bound_high:.0f})"


def _shift(rate: AuditRate) -> str:
    if rate.mean is None:
        return MISSING
    if rate.low is None or rate.high is None:
        return _signed(rate.mean)
    return f"{_signed(rate.mean)} [{_signed(rate.low)}, {_signed(rate.high)}]"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"
