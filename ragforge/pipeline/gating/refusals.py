"""Why a gate decides nothing: too little was measured, or the baseline is none for this."""

from collections.abc import Iterator
from typing import Final

from ragforge.pipeline.gating.shared import Shared
from ragforge.pipeline.gating.subjects import Subject
from ragforge.records import Baseline, Evaluation
from ragforge.report.gate.verdict import Refusal, Rules
from ragforge.report.graded_by import silent_of
from ragforge.report.history.changes import is_of_same_part
from ragforge.report.history.common_items import LEFT_OUT
from ragforge.report.mixed_words import judge_command, missing_grades
from ragforge.report.shown import one_line, plural

MOST_OFFLINE: Final = 0.5
"""Share of the grades from which on the offline baseline refuses a gate."""
_WHY: Final = (
    "their grades changed or are gone, and the baseline's rankings hold chunks that are not in the "
    "corpus any more, or are kept less deep than the measure looks; make the baseline anew with "
    "`ragforge gate --write-baseline`"
)


def find_refusals(
    subject: Subject, rules: Rules, baseline: Baseline | None, shared: Shared | None
) -> Iterator[Refusal]:
    """Yield why nothing can be decided, what may be allowed included."""
    now = subject.evaluation
    n = _n_valued(now)
    if n < rules.min_queries:
        text = f"{plural(n, 'query has', 'queries have')} a value"
        yield Refusal(f"{text}; at least {rules.min_queries} are needed (--min-queries)", "few")
    if now.n_retrieved and now.n_holes > rules.max_holes * now.n_retrieved:
        holes = f"{100 * now.n_holes / now.n_retrieved:.1f} %"
        most = f"{100 * rules.max_holes:g} %"
        text = f"{holes} of the chunks in the top 10 have no grade and would count as not relevant"
        yield Refusal(f"{text}; at most {most} may be so (--max-holes)", "holes")
    n_given, n_grades = n_offline(subject)
    if n_given > MOST_OFFLINE * n_grades:
        text = f"{of_offline(subject)}, which shows that things run"
        yield Refusal(f"{text} and not how good they are", "baseline-judge")
    elif baseline is not None and rules.drops and not (shared and shared.has_same_rankings):
        yield from _silent_drops(now, baseline.evaluation)
    if baseline is not None and shared is not None:
        yield from _baseline_refusals(now, rules, baseline, shared)


def _baseline_refusals(
    now: Evaluation, rules: Rules, baseline: Baseline, shared: Shared
) -> Iterator[Refusal]:
    before = baseline.evaluation
    if before.dataset != now.dataset:
        names = f"{one_line(before.dataset)!r}, this is {one_line(now.dataset)!r}"
        yield Refusal(f"the baseline is of another dataset, {names}", "dataset-change")
    elif not is_of_same_part(before, now):
        text = f"the baseline is of {_part(before)}, this is of {_part(now)}: {shared.told}"
        yield Refusal(f"{text}; a drop is looked for on those in common only", "dataset-change")
    elif before.digests.queries != now.digests.queries:
        versions = f" (version {before.version}, this is version {now.version})"
        text = f"the baseline is of other items: {shared.told}"
        is_other = before.version != now.version
        yield Refusal(f"{text}{versions if is_other else ''}", "dataset-change")
    for change in _grading_changes(before, now):
        yield Refusal(change, "grading-change")
    if not rules.drops:
        return
    yield from _uncomparable(now, rules, shared)


def _part(evaluation: Evaluation) -> str:
    return evaluation.selection.in_words if evaluation.selection else "the whole set"


def _uncomparable(now: Evaluation, rules: Rules, shared: Shared) -> Iterator[Refusal]:
    """Refuse differences that too few items are left for."""
    measures = [item.measure for item in rules.drops]
    n, n_left_out = shared.n_compared(measures), shared.n_left_out(measures)
    if not shared.now:
        yield Refusal("no item is the same as in the baseline: nothing can be compared", None)
    elif not n:
        yield Refusal(f"no item can be compared with the baseline: {_why(now, shared)}", None)
    elif n < rules.min_queries <= _n_valued(now):
        text = f"{plural(n, 'item is', 'items are')} the same as in the baseline"
        and_can = " and can be compared" if n_left_out else ""
        yield Refusal(
            f"{text}{and_can}; at least {rules.min_queries} are needed (--min-queries)", "few"
        )
    if n and n_left_out > LEFT_OUT * (n + n_left_out):
        text = f"{n_left_out:,} of the {n + n_left_out:,} items that are the same as in the"
        yield Refusal(
            f"{text} baseline cannot be compared with it: {_why(now, shared)}", "dataset-change"
        )


def _why(now: Evaluation, shared: Shared) -> str:
    """Say why items cannot be compared, and what to do about it."""
    mixed = shared.mixed
    if mixed is None:
        return _WHY
    command = judge_command(mixed.ask, shared.dataset, [now.run], n_earlier=1)
    return (
        "no one judge graded both rankings of them, so that a difference would be one of the "
        f"judges; {missing_grades(mixed, command)}"
    )


def _n_valued(evaluation: Evaluation) -> int:
    return max((mean.n for mean in evaluation.measures.values()), default=0)


def _silent_drops(now: Evaluation, before: Evaluation) -> Iterator[Refusal]:
    """Refuse a difference of which a part rests on grades that say nothing about quality."""
    silent = [of for of in (silent_of(now.graders), silent_of(before.graders)) if of.any]
    if silent:
        text = f"the drop is told {silent[0].basis}, which says nothing about quality"
        yield Refusal(text, "baseline-judge")


def n_offline(subject: Subject) -> tuple[int, int]:
    """Return how many grades the offline baseline or a mock gave, and how many there are."""
    n_given = sum(_n_of(subject, kind) for kind in ("baseline", "mock"))
    return n_given, _n_of(subject)


def of_offline(subject: Subject) -> str:
    """Say how many grades the offline baseline gave, and how many a mock made up."""
    n_grades = _n_of(subject)
    givers = {"baseline": "of the offline baseline judge", "mock": "made up by ragforge mock"}
    parts = [
        f"{100 * n / n_grades:.1f} % of the grades ({n:,} of {n_grades:,}) are {words}"
        for kind, words in givers.items()
        if (n := _n_of(subject, kind))
    ]
    return ", and ".join(parts)


def _n_of(subject: Subject, kind: str = "") -> int:
    """Return how many grades judges of a kind gave; of all kinds where none is named."""
    judges = (judge for judge in subject.judges if kind in ("", judge.kind))
    return sum(judge.count - judge.n_failed for judge in judges)


def _grading_changes(before: Evaluation, now: Evaluation) -> Iterator[str]:
    if _models(before) != _models(now):
        yield (
            f"the baseline was judged by {_judges(before)}, this is judged by {_judges(now)}: "
            "a difference may be that of the judges"
        )
    if before.rel_threshold != now.rel_threshold:
        yield (
            f"relevant meant grade {before.rel_threshold} or above in the baseline, "
            f"and means {now.rel_threshold} or above here"
        )
    if before.by_lists != now.by_lists:
        said = "lists of relevant chunks", "a threshold on the grades"
        old, new = said if before.by_lists else said[::-1]
        yield f"in the baseline {old} said what is relevant, here {new}"
    if before.only_retrieved != now.only_retrieved:
        yield "queries that the run lacks were left out on one side, and count 0 on the other"


def _models(evaluation: Evaluation) -> set[tuple[str, str, str]]:
    """Return the judges that are models or baselines; people and rules judge alike each time."""
    return {
        (grader.model, grader.prompt, grader.prompt_sha256)
        for grader in evaluation.graders
        if grader.is_judge and grader.kind in ("llm", "baseline", "mock", "file")
    }


def _judges(evaluation: Evaluation) -> str:
    named = (
        f"{one_line(model)} with {one_line(prompt)} {digest[:8]}" if prompt else one_line(model)
        for model, prompt, digest in sorted(_models(evaluation))
    )
    return ", ".join(named) or "no model"
