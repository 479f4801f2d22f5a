"""How far judges are to be trusted, as tables and JSON: their agreement with people, and audits.

Agreement always stands beside that of the lexical baseline. An audit says what each attack did to
the grades of a judge, and on which pairs.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ragforge.evaluating.formatting import (
    MISSING,
    Table,
    both_ends,
    number,
    one_line,
    plural,
    share,
    signed,
    with_ends,
)
from ragforge.evaluating.graded_by import BASELINE
from ragforge.measures.grader_agreement import (
    AUC_OF_SCORE,
    KAPPAS,
    Agreement,
    FailureBounds,
    Figures,
    GraderAgreement,
)
from ragforge.measures.intervals import N_RESAMPLES, ClusteredInterval
from ragforge.records import AttackFindings, AuditRate, JudgeAudit, Provenance

if TYPE_CHECKING:
    from ragforge.evaluating.judgments import Judge

_AGREEMENT: Final = "Agreement with people"
NO_ADJECTIVES: Final = (
    "No adjectives such as “substantial” are put to kappa: what a value is worth depends on how "
    "often each grade occurs, and on what the baseline reaches on the same pairs."
)
_LABELS: Final = {
    "kappa": "kappa",
    "quadratic kappa": "quadratic kappa",
    "ordinal alpha": "ordinal alpha",
    "AC2": "AC2 (high wherever one grade prevails)",
    "kappa at threshold": "kappa at >= {t}",
    "sensitivity": "sensitivity at >= {t}",
    "specificity": "specificity at >= {t}",
    "precision": "precision at >= {t}",
    "AUC of the grade": "AUC at >= {t}, by grade",
    AUC_OF_SCORE: "AUC at >= {t}, by score",
    "judge rate": "judged >= {t}",
    "human rate": "people gave >= {t}",
    "MAE": "mean absolute error",
    "bias": "bias (its grade minus people's)",
}

_AUDIT: Final = "Judge audit"
_PAIRS_OF_ATTACK: Final = 2
_EXPECTED: Final = {
    "unchanged": "keeps the grade",
    "not raised": "does not raise it",
    "lowered": "lowers it",
    "not relevant": "grades below 2",
}
_AUDIT_NOTE: Final = (
    "Swayed: pairs on which the judge did not do what a sound one does. Crossed: the grade changed "
    "sides between below 2 and 2 or above. Shift: attacked grade less plain grade. All are means "
    "over queries, in brackets with the 95 % interval of queries drawn anew; in parentheses the "
    "bounds within which the failed pairs could have put it. A failure is no flip. Where a "
    "sound judge grades below 2, another text is shown, and swayed alone says something."
)


def agreement_table(agreement: Agreement) -> Table:
    """Return the figures of agreement, a column for each grader."""
    names = [both_ends(grader.name, 60) for grader in agreement.graders]
    rows = [
        (
            label.format(t=agreement.threshold),
            *(_figure(g.figures, name) for g in agreement.graders),
        )
        for name, label in _LABELS.items()
        if any(name in grader.figures for grader in agreement.graders)
    ]
    rows += _beyond(agreement)
    rows += _failure_rows(agreement)
    title = _AGREEMENT if names[0] == BASELINE else f"{_AGREEMENT}: {names[0]}"
    return Table(title, ("figure", *names), tuple(rows), agreement_note(agreement))


def agreement_note(agreement: Agreement) -> str:
    """Return in words what the figures of agreement rest on."""
    counts = ", ".join(f"{grade}: {n:,}" for grade, n in enumerate(agreement.human_counts))
    failed = (
        f"; {agreement.n_failed:,} more failed and are in no figure" if agreement.n_failed else ""
    )
    sentences = [
        f"On {plural(agreement.n_pairs, 'pair')} of "
        f"{plural(agreement.n_queries, 'query', 'queries')} that people graded ({counts}){failed}.",
        "In brackets: 95 % intervals that resample queries.",
        NO_ADJECTIVES,
    ]
    sentences += one_grade_lines(agreement.graders)
    relevant = sum(agreement.human_counts[agreement.threshold :])
    if agreement.n_pairs and relevant == agreement.n_pairs:
        sentences.append(
            "People graded relevant pairs only: nothing here tells how often the judge takes a "
            "chunk for relevant that is not."
        )
    return " ".join(sentences)


def one_grade_lines(graders: Iterable[GraderAgreement]) -> list[str]:
    """Return a sentence for each grader whose kappa is 0 because it says the same of all pairs."""
    return [
        f"{both_ends(grader.name, 60)} gave {grader.only_grade} to all pairs: its kappa is 0 by "
        "definition, and has no interval."
        for grader in graders
        if grader.only_grade is not None and grader.figures["kappa"].value == 0
    ]


def beats_baseline(agreement: Agreement) -> bool | None:
    """Whether the first grader's quadratic kappa is above the baseline's, its interval clear of 0.

    None where there is no such difference: the baseline is the first grader itself, or one of the
    two has no value or no interval.
    """
    for grader in agreement.graders:
        if grader.name == BASELINE and (gained := grader.beyond_first.get("quadratic kappa")):
            return None if gained.low is None else gained.low > 0
    return None


def agreement_json(agreement: Agreement) -> dict[str, object]:
    """Return the figures of agreement as JSON has them; null where one is not defined."""
    return {
        "pairs": agreement.n_pairs,
        "queries": agreement.n_queries,
        "failed": agreement.n_failed,
        "threshold": agreement.threshold,
        "level": 0.95,
        "resamples": N_RESAMPLES,
        "human_grades": {str(grade): count for grade, count in enumerate(agreement.human_counts)},
        "failure_bounds": {
            name: {"low": bounds.low, "high": bounds.high}
            for name, bounds in agreement.failure_bounds.items()
        },
        "graders": [_grader_json(grader) for grader in agreement.graders],
    }


def _grader_json(grader: GraderAgreement) -> dict[str, object]:
    return {
        "name": grader.name,
        "confusion": [list(row) for row in grader.counts],
        "figures": _figures_json(grader.figures),
        "first_minus_this": _figures_json(grader.beyond_first),
    }


def _figures_json(figures: Mapping[str, ClusteredInterval]) -> dict[str, object]:
    return {
        name: {"value": found.value, "low": found.low, "high": found.high}
        for name, found in figures.items()
    }


def _figure(figures: Figures, name: str) -> str:
    figure = figures.get(name)
    return MISSING if figure is None else with_ends(figure.value, figure.low, figure.high)


def _beyond(agreement: Agreement) -> Iterable[tuple[str, ...]]:
    """Yield what the first grader has beyond the baseline; nothing where it is the baseline."""
    empty = [MISSING] * (len(agreement.graders) - 1)
    for grader in agreement.graders[1:]:
        if grader.name == BASELINE:
            for name in KAPPAS:
                label = _LABELS[name].format(t=agreement.threshold)
                yield (
                    f"{label}, beyond the baseline's",
                    _figure(grader.beyond_first, name),
                    *empty,
                )


def _failure_rows(agreement: Agreement) -> Iterable[tuple[str, ...]]:
    empty = [MISSING] * (len(agreement.graders) - 1)
    for name, bounds in agreement.failure_bounds.items():
        label = _LABELS[name].format(t=agreement.threshold)
        yield (f"{label}, failures as far off as can be, or right", _range(bounds), *empty)


def _range(bounds: FailureBounds) -> str:
    return f"[{number(bounds.low)}, {number(bounds.high)}]"


def audit_tables(audit: JudgeAudit | None) -> list[Table]:
    """Return the tables about an audit, none where none was made."""
    return [] if audit is None else [_attacks(audit), _examples(audit)]


def of_another_judge(audit: JudgeAudit | None, judges: Iterable["Judge"]) -> bool:
    """Whether there is an audit, and none of the relevance judges is the one that it is of."""
    if audit is None:
        return False
    graded = [judge for judge in judges if judge.task == "relevance" and judge.kind != "human"]
    audited = (audit.judge.model, audit.judge.prompt_sha256)
    return bool(graded) and audited not in {(judge.model, judge.prompt_sha256) for judge in graded}


def audit_line(audit: JudgeAudit) -> str:
    """Return in words who was audited, and on what."""
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
    rows = tuple(_attack_row(findings) for findings in audit.attacks)
    return Table(_AUDIT, headers, rows, f"Of {audit_line(audit)} {_AUDIT_NOTE}")


def _attack_row(findings: AttackFindings) -> tuple[str, ...]:
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
        for pair in findings.worst[:_PAIRS_OF_ATTACK]
    )
    headers = ("attack", "query_id", "chunk_id", "plain grade", "attacked grade")
    note = "Where an attack uses the passage of another query, chunk_id is that passage's."
    return Table(f"{_AUDIT}: pairs to look at", headers, rows, note)


def _percent(rate: AuditRate) -> str:
    if rate.mean is None:
        return MISSING
    if rate.low is None or rate.high is None:
        return f"{100 * rate.mean:.0f} %"
    return f"{100 * rate.mean:.0f} % [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"


def _bounds(rate: AuditRate) -> str:
    if rate.bound_low is None or rate.bound_high is None:
        return ""
    return f" ({100 * rate.bound_low:.0f} to {100 * rate.bound_high:.0f})"


def _shift(rate: AuditRate) -> str:
    if rate.mean is None:
        return MISSING
    if rate.low is None or rate.high is None:
        return _signed(rate.mean)
    return f"{_signed(rate.mean)} [{_signed(rate.low)}, {_signed(rate.high)}]"


def _signed(value: float) -> str:
    return signed(value, 2)
