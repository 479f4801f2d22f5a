"""Why a gate decides nothing: too little was measured, or the baseline is none for this."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.evaluating.chunkings import COMPARED_ON_EVIDENCE, differ_in_words, has_other_chunks
from ragforge.evaluating.formatting import one_line, plural
from ragforge.evaluating.gate import Refusal, Rules
from ragforge.evaluating.graded_by import (
    GradedBy,
    drift_text,
    judge_command,
    missing_grades_text,
    silent_of,
)
from ragforge.evaluating.history.changes import is_of_same_part, part_in_words
from ragforge.evaluating.history.common_items import (
    LEFT_OUT,
    CommonItem,
    common_items,
    lacking_of,
    mixed_of,
)
from ragforge.evaluating.judgments import Judge
from ragforge.evaluating.same_judge import Reading
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import recall
from ragforge.files.set.unknown_hits import unknown_run_text
from ragforge.measures.measure_names import is_of_evidence
from ragforge.measures.strata import Design
from ragforge.pipeline.evaluated import rescoring_basis_of
from ragforge.pipeline.gating.judge_changes import have_other_judges, models_text
from ragforge.pipeline.gating.subjects import Subject
from ragforge.records import Baseline, Evaluation, MixedGrades

MOST_OFFLINE: Final = 0.5
"""Share of the grades from which on the offline baseline refuses a gate."""
_WHY: Final = (
    "their grades changed or are gone, and the baseline's rankings hold chunks that are not in the "
    "corpus any more, or are kept less deep than the measure looks; make the baseline anew with "
    "`ragforge gate --write-baseline`"
)


class AtWorst(NamedTuple):
    """What an item that cannot be compared could have come to: the drop is at its largest."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class SharedItems:
    """The items that a subject and its baseline have in common, unchanged."""

    before: Mapping[str, Mapping[str, float]]
    """Query id to measure to value of the baseline, on the grades of now, where that is known."""
    now: Mapping[str, Mapping[str, float]]
    """The same queries now."""
    known: Mapping[str, Mapping[str, float]]
    """All queries of the baseline; where judgments failed, with the most that they could be."""
    left_out: Mapping[str, Mapping[str, AtWorst]]
    """Measure to the items in common that cannot be compared by it."""
    n_changed: int
    """Queries of both whose items differ."""
    n_new: int
    """Queries without a value in the baseline."""
    n_rescored: int
    """Items on which the baseline's rankings were scored again, as their grades changed."""
    has_same_rankings: bool
    """Whether it ranks (or answers) all as the baseline did."""
    is_identical: bool
    """Whether nothing failed besides that could have come out otherwise: of runs no retrieval, as
    a failed judgment moves the values of one ranking equally."""
    alike: Mapping[str, frozenset[str]]
    """Query id to the measures that see one and the same ranking; see `CommonItem`."""
    is_bounded: bool = True
    """Whether what is left out counts at its worst."""
    mixed: MixedGrades | None = None
    """What keeps items from being compared on the grades of one judge."""
    design: Design | None = None
    """What the items in common are a sample of; None where neither side was measured on one."""
    dataset: str = ""
    """Where it is, for what is to be done about it."""
    has_other_chunks: bool = False
    """Whether the baseline's rankings are of other chunks, so that grades must not tell them
    apart."""

    @property
    def n_gone(self) -> int:
        """Queries of the baseline without a value now."""
        return len(self.known) - len(self.now) - self.n_changed

    @property
    def in_words(self) -> str:
        """How the items of two evaluations relate, in words."""
        counts = {"changed": self.n_changed, "new": self.n_new, "gone or failed": self.n_gone}
        parts = [f"{count:,} {what}" for what, count in counts.items() if count]
        if not parts:
            parts = ["what differs has no value"]
        return f"{plural(len(self.now), 'item')} the same, {', '.join(parts)}"

    def n_compared(self, measures: Iterable[str]) -> int:
        """Return the number of items with a value in both, by the measure with fewest."""
        pairs = [(then, self.now[query_id]) for query_id, then in self.before.items()]
        counts = (sum(name in then and name in now for then, now in pairs) for name in measures)
        return min(counts, default=len(self.before))

    def n_left_out(self, measures: Iterable[str]) -> int:
        """Return the number of items that cannot be compared, by the measure with most."""
        return max((len(self.left_out.get(name, ())) for name in measures), default=0)


def shared_items(
    dataset: Dataset, subject: Subject, before: Baseline, *, is_bounded: bool = True
) -> SharedItems:
    """Return the items that a subject and a baseline share: the same query, its item unchanged.

    Args:
        dataset: Says which chunks there are.
        subject: As it is now.
        before: The baseline.
        is_bounded: Count what is left out at its worst.
    """
    basis = None
    if subject.run is not None:
        basis = rescoring_basis_of(dataset, subject.run)
    common = common_items(before, subject.baseline, basis)
    of_now = subject.baseline.by_query()
    same = {key: item for key, item in common.items() if key in of_now}
    stored = {item.query_id: item.values for item in before.items}
    in_both = of_now.keys() & stored.keys()
    design = _design(dataset, subject, before)
    # What a sample ranks alike may differ in what was not drawn.
    has_same_rankings, is_identical = (False, False) if design else _identity(subject, before)
    return SharedItems(
        before={key: _values(item.before) for key, item in same.items()},
        now={key: {**of_now[key].values, **_values(item.now)} for key, item in same.items()},
        known={key: _highest(common, key, values) for key, values in stored.items()},
        left_out=_left_out(common),
        n_changed=len(in_both) - len(same),
        n_new=len(of_now) - len(in_both),
        n_rescored=sum(item.is_rescored for item in same.values()),
        has_same_rankings=has_same_rankings,
        is_identical=is_identical,
        alike={key: item.alike for key, item in same.items() if item.alike},
        is_bounded=is_bounded,
        mixed=mixed_of(lacking_of(common), len(common), basis),
        design=design,
        dataset=str(dataset.path),
        has_other_chunks=_is_cut_otherwise(dataset, before, subject),
    )


def _is_cut_otherwise(dataset: Dataset, before: Baseline, subject: Subject) -> bool:
    task = subject.run.task if subject.run else None
    if task is None or task.is_by_document:
        return False
    earlier = {item.query_id: item.ranking for item in before.items}
    by_document = task.level.query_ids
    return has_other_chunks(dataset, subject.evaluation.run, earlier, by_document)


def _design(dataset: Dataset, subject: Subject, before: Baseline) -> Design | None:
    """Return the sample design of the shared items: by the subject, else by the baseline."""
    if subject.design is not None:
        return subject.design
    selection = before.evaluation.selection
    if selection is None or selection.sample is None:
        return None
    design = recall(dataset.accepted_queries(), selection).design
    assert design is not None
    if subject.of == "answers":
        return design.within(item.query_id for item in subject.baseline.items)
    answerable = (item.query_id for item in dataset.accepted_queries() if item.answerable)
    return design.within(answerable)


def _identity(subject: Subject, before: Baseline) -> tuple[bool, bool]:
    old, new = before.evaluation, subject.evaluation
    is_graded_alike = old.digests.judgments == new.digests.judgments
    is_same = old.digests.rankings == new.digests.rankings
    # A ranking has one value by the grades of now; the same answer may have been graded anew.
    has_same_rankings = is_same and (is_graded_alike or subject.run is not None)
    # Where the rankings are the same and none failed now, none had failed in the baseline.
    has_failed = old.n_failed != new.n_failed
    if subject.run is not None:
        has_failed = bool(subject.run.scores.failed)
    return has_same_rankings, has_same_rankings and not has_failed


def _values(readings: Mapping[str, Reading]) -> dict[str, float]:
    return {name: of.value for name, of in readings.items() if of.value is not None}


def _highest(
    found: Mapping[str, CommonItem], query_id: str, stored: Mapping[str, float]
) -> dict[str, float]:
    readings = found[query_id].before if query_id in found else {}
    return {**stored, **{name: of.high for name, of in readings.items()}}


def _left_out(found: Mapping[str, CommonItem]) -> dict[str, dict[str, AtWorst]]:
    left_out: dict[str, dict[str, AtWorst]] = {}
    for query_id, item in found.items():
        # Of answers a side may lack a measure: what is lacking now has failed, what was is new.
        for name in item.before.keys() & item.now.keys():
            before, now = item.before[name], item.now[name]
            if before.value is None or now.value is None:
                left_out.setdefault(name, {})[query_id] = AtWorst(before.high, now.low)
    return left_out


def find_refusals(
    subject: Subject, rules: Rules, baseline: Baseline | None, shared: SharedItems | None
) -> Iterator[Refusal]:
    """Yield why nothing can be decided, what may be allowed included."""
    now = subject.evaluation
    measure, n = _fewest_values(now, rules)
    of = f" of {measure}" if measure and subject.of == "answers" else ""
    if of and not n:
        # In a run without a value all failed. These answers have grades that do not tell it.
        yield Refusal(f"no answer has a value{of}", None)
    elif n < rules.min_queries:
        text = f"{plural(n, 'query has', 'queries have')} a value{of}"
        yield Refusal(f"{text}; at least {rules.min_queries} are needed (--min-queries)", "few")
    if not rules.rests_on_evidence:
        yield from _of_grades(subject, rules, baseline, shared)
    if baseline is not None and shared is not None:
        yield from _baseline_refusals(subject, rules, baseline, shared)


def unknown_refusals(dataset: Dataset, subject: Subject, rules: Rules) -> Iterator[Refusal]:
    """Refuse a run of which the set knows no hit: its ids are other names, and each value is 0."""
    if subject.run is None or not rules.measures:
        return
    text = unknown_run_text(dataset, subject.run.measured.ranked, subject.run.qrels)
    if text:
        yield Refusal(text, None)


def drift_refusals(
    subject: Subject, rules: Rules, baseline: Baseline | None, graded_by: Iterable[GradedBy]
) -> Iterator[Refusal]:
    """Refuse a drop where a judge drifted, and grades are not those of the baseline.

    The chunks that are new would be graded by another judge than those of before.
    """
    if baseline is None or not rules.drops or rules.rests_on_evidence:
        return
    before, now = baseline.evaluation, subject.evaluation
    if before.digests.judgments == now.digests.judgments:
        return
    drift = drift_text(graded_by)
    if drift:
        yield Refusal(f"grades changed since the baseline, and {drift}", "grading-change")


def _of_grades(
    subject: Subject, rules: Rules, baseline: Baseline | None, shared: SharedItems | None
) -> Iterator[Refusal]:
    """Refuse to decide by grades that are few, or say nothing about quality."""
    now = subject.evaluation
    if now.n_retrieved and now.n_holes > rules.max_holes * now.n_retrieved:
        holes = f"{100 * now.n_holes / now.n_retrieved:.1f} %"
        most = f"{100 * rules.max_holes:g} %"
        text = f"{holes} of the chunks in the top 10 have no grade and would count as not relevant"
        yield Refusal(f"{text}; at most {most} may be so (--max-holes)", "holes")
    counted = counted_judges(subject, rules)
    if _offline_share(counted) > MOST_OFFLINE:
        text = f"{offline_sentence(counted)}, which shows that things run"
        yield Refusal(f"{text} and not how good they are", "baseline-judge")
    elif baseline is not None and rules.drops and not (shared and shared.has_same_rankings):
        yield from _silent_drops(now, baseline.evaluation)


def _baseline_refusals(
    subject: Subject, rules: Rules, baseline: Baseline, shared: SharedItems
) -> Iterator[Refusal]:
    before, now = baseline.evaluation, subject.evaluation
    if before.dataset != now.dataset:
        names = f"{one_line(before.dataset)!r}, this is {one_line(now.dataset)!r}"
        yield Refusal(f"the baseline is of another dataset, {names}", "dataset-change")
    elif not is_of_same_part(before, now):
        parts = f"the baseline is of {part_in_words(before)}, this is of {part_in_words(now)}"
        text = f"{parts}: {shared.in_words}"
        yield Refusal(f"{text}; a drop is looked for on those in common only", "dataset-change")
    elif before.digests.queries != now.digests.queries:
        versions = f" (version {before.version}, this is version {now.version})"
        text = f"the baseline is of other items: {shared.in_words}"
        is_other = before.version != now.version
        yield Refusal(f"{text}{versions if is_other else ''}", "dataset-change")
    changes = () if rules.rests_on_evidence else _grading_changes(before, subject)
    for change in (*changes, *_counting_changes(before, now)):
        yield Refusal(change, "grading-change")
    if not rules.drops:
        return
    by_grades = [item.measure for item in rules.drops if not is_of_evidence(item.measure)]
    if shared.has_other_chunks and by_grades:
        yield Refusal(_of_other_chunks(by_grades, before, subject, shared.dataset), None)
    else:
        yield from _uncomparable(now, rules, shared)


def _of_other_chunks(
    measures: Sequence[str], before: Evaluation, subject: Subject, dataset: str
) -> str:
    """Return why grades tell nothing of runs of different chunks, and by what rule to decide."""
    queries = subject.run.task.queries if subject.run else ()
    if not any(query.evidence for query in queries):
        return differ_in_words(measures, has_evidence=False)
    advised = COMPARED_ON_EVIDENCE[0]
    told = differ_in_words(measures, has_evidence=True)
    reason = f"{told}: `--max-drop {advised}=…` can be decided"
    if advised in before.measures:
        return reason
    words = ["ragforge", "gate", "--dataset", dataset, "--run", before.run]
    command = one_line(shlex.join([*words, "--min", f"{advised}=0", "--write-baseline"]), 1000)
    return f"{reason}, once `{command} FILE` made the baseline anew"


def _uncomparable(now: Evaluation, rules: Rules, shared: SharedItems) -> Iterator[Refusal]:
    """Refuse differences that too few items are left for."""
    measures = [item.measure for item in rules.drops]
    n, n_left_out = shared.n_compared(measures), shared.n_left_out(measures)
    if not shared.now:
        yield Refusal("no item is the same as in the baseline: nothing can be compared", None)
    elif not n:
        why = _why(now, shared) if n_left_out else "none has a value on both sides"
        yield Refusal(f"no item can be compared with the baseline: {why}", None)
    elif n < rules.min_queries <= _fewest_values(now, rules)[1]:
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


def _why(now: Evaluation, shared: SharedItems) -> str:
    """Return the reason why items cannot be compared, and what to do about it."""
    mixed = shared.mixed
    if mixed is None:
        return _WHY
    command = judge_command(mixed.ask, shared.dataset, [now.run], n_earlier=1)
    return (
        "no one judge graded both rankings of them, so that a difference would be one of the "
        f"judges; {missing_grades_text(mixed, command)}"
    )


def _fewest_values(evaluation: Evaluation, rules: Rules) -> tuple[str, int]:
    """Return the measure of the rules that fewest queries have a value of, and how many these are.

    Where rules name none, they are those with a value of any, and the measure is "".
    """
    counts = {name: mean.n for name, mean in evaluation.measures.items()}
    of_any = "", max(counts.values(), default=0)
    named = ((name, counts.get(name, 0)) for name in rules.measures)
    return min(named, key=lambda item: item[1], default=of_any)


def _silent_drops(now: Evaluation, before: Evaluation) -> Iterator[Refusal]:
    """Refuse a difference of which a part rests on grades that say nothing about quality."""
    silent = [of for of in (silent_of(now.graders), silent_of(before.graders)) if of.any]
    if silent:
        text = f"the drop is told {silent[0].basis}, which says nothing about quality"
        yield Refusal(text, "baseline-judge")


def counted_judges(subject: Subject, rules: Rules) -> Sequence[Judge]:
    """Return who made the grades of the rule that rests most on the offline baseline or a mock."""
    of_rules = [subject.valued[name].judges for name in rules.measures]
    known = [judges for judges in of_rules if judges is not None]
    return max(known, key=_offline_share, default=subject.judges)


def offline_sentence(judges: Sequence[Judge]) -> str:
    """Return a sentence on the grades of the offline baseline, and those a mock made up.

    It is "" where there are none.
    """
    n_grades = _n_of(judges)
    givers = {"baseline": "of the offline baseline judge", "mock": "made up by ragforge mock"}
    parts = [
        f"{100 * n / n_grades:.1f} % of the grades ({n:,} of {n_grades:,}) are {words}"
        for kind, words in givers.items()
        if (n := _n_of(judges, kind))
    ]
    return ", and ".join(parts)


def _offline_share(judges: Sequence[Judge]) -> float:
    return sum(_n_of(judges, kind) for kind in ("baseline", "mock")) / max(1, _n_of(judges))


def _n_of(judges: Iterable[Judge], kind: str = "") -> int:
    """Return the number of grades of judges of a kind; of all kinds where none is named."""
    return sum(judge.count - judge.n_failed for judge in judges if kind in ("", judge.kind))


def _grading_changes(before: Evaluation, subject: Subject) -> Iterator[str]:
    now = subject.evaluation
    if have_other_judges(before, subject):
        yield (
            f"the baseline was judged by {models_text(before)}, this is judged by "
            f"{models_text(now)}: a difference may be that of the judges"
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


def _counting_changes(before: Evaluation, now: Evaluation) -> Iterator[str]:
    if before.only_retrieved != now.only_retrieved:
        yield "queries that the run lacks were left out on one side, and count 0 on the other"
