"""What a gate decides on, by measure: the values of a run, or of answers (`answers`)."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.judgments import Judge
from ragforge.evaluating.same_judge import grades_of_one_judge, lists_without, whose_grades_text
from ragforge.files.git import read_from_branch
from ragforge.files.set.baseline import parse_baseline, read_baseline
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import ChosenQueries
from ragforge.measures import Scores, evaluate
from ragforge.measures.intervals import Ends
from ragforge.measures.measure_names import by_judgments, is_of_evidence
from ragforge.measures.strata import Design, mean_over_queries
from ragforge.measures.unseen_values import ends_by_measure
from ragforge.pipeline.evaluated import (
    EvaluatedRun,
)
from ragforge.records import (
    Baseline,
    Evaluation,
)

FILE_NAME: Final = "baseline.json"

ANSWERS: Final = "answers/"
"""What stands before the name of a system where a run's name is expected; no run's name has it."""


def find_baseline(
    dataset: Dataset, run: EvaluatedRun | None, named: str, file: Path | None = None
) -> Baseline:
    """Return the baseline of a name.

    Args:
        dataset: Has the history.
        run: What is held against it; None for answers, which the history does not hold.
        named: `last` for the newest other evaluation of the history (where all are like now, the
            newest), `main` for the file as it is on the main branch, or the path of a file.
        file: The file that `main` means; that of the dataset's directory where None.

    Raises:
        DataError: There is none, or it cannot be read.
        UsageError: It is the last one of answers.
    """
    if named == "main":
        found = read_from_branch(file or dataset.home / FILE_NAME)
        return parse_baseline(found.text, found.where)
    if named != "last":
        return read_baseline(Path(named))
    if run is None:
        raise UsageError("--baseline last: the history holds runs only; name a file, or main")
    from ragforge.pipeline.history import last_alike, last_other

    last = last_other(dataset, run) or last_alike(dataset, run)
    if last is None:
        raise DataError(
            f"{dataset.path}: the history has no earlier evaluation of {run.evaluation.run!r} to "
            "be the baseline; evaluate it once with `ragforge evaluate`, or name a file"
        )
    return last


@dataclass(frozen=True, slots=True)
class Valued:
    """One measure of a subject."""

    values: Mapping[str, float]
    """By query id."""
    possible: Mapping[str, Ends]
    """What the queries with a failure could have come to, those without a value too."""
    mean: Callable[[Mapping[str, float]], float | None]
    """Gives the mean of values by query."""
    ends: Callable[[Mapping[str, float]], Ends | None]
    """Gives its 95 % interval."""
    design: Design | None = None
    """What the queries are a sample of: then both are of that; None where they are all."""
    judges: tuple[Judge, ...] | None = None
    """Who made the grades that the values rest on; None where they are those of the subject."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a gate decides on."""

    of: Literal["runs", "answers"]
    baseline: Baseline
    """Its evaluation with its values per item."""
    valued: Mapping[str, Valued]
    """By measure."""
    warnings: tuple[str, ...]
    judges: tuple[Judge, ...]
    """Who made the grades it rests on."""
    run: EvaluatedRun | None = None
    """None for answers."""
    chosen: ChosenQueries | None = None
    """The part of the queries it is measured on; None where that is all."""
    design: Design | None = None
    """What its queries are a sample of; None where they are all there is."""
    whose_grades: str = ""
    """What to know of its means where several judges graded."""

    @property
    def evaluation(self) -> Evaluation:
        """The record of it."""
        return self.baseline.evaluation


def run_subject(run: EvaluatedRun) -> Subject:
    """Return a run by all of its measures, on the grades of one judge in each query."""
    of_judgments, whose_grades = _on_one_judge(run)
    valued = {}
    for name in run.evaluation.measures:
        scores = run.scores if is_of_evidence(name) else of_judgments
        possible = {key: Ends(low, high) for key, (low, high) in scores.possible(name).items()}
        valued[name] = _of_design(scores.by_query(name), possible, scores.design_of(name), name)
    scores = run.scores
    return Subject(
        "runs",
        run.baseline,
        valued,
        (*scores.warnings, *_lacked(run)),
        run.judges,
        run,
        chosen=run.chosen,
        design=scores.design,
        whose_grades=whose_grades,
    )


def _lacked(run: EvaluatedRun) -> Iterator[str]:
    """Yield how many queries the run lacks, if any."""
    missing, n = len(run.scores.missing_from_run), run.evaluation.n_queries
    if missing and not run.evaluation.only_retrieved:
        yield f"the run lacks {missing:,} of {plural(n, 'query', 'queries')}, which count 0"


def _on_one_judge(run: EvaluatedRun) -> tuple[Scores, str]:
    """Return the scores of a run by its judgments, and whose grades they are.

    What another judge graded of other runs would only move what values are divided by: a run must
    not fail its gate because a second one was judged. Comparisons leave it out likewise.
    """
    by, measures = run.pair_judges, by_judgments(run.evaluation.measures)
    if not by.mixed or not measures:
        return run.scores, ""
    ranked = run.measured.ranked
    qrels, left = grades_of_one_judge(run.qrels, by, [ranked], measures)
    scores = evaluate(
        qrels,
        ranked,
        measures,
        rel_threshold=run.evaluation.rel_threshold,
        failed=run.measured.summary.attention.failed,
        only_retrieved=run.evaluation.only_retrieved,
        relevant=lists_without(run.relevant, run.qrels, qrels) or None,
    )
    design = run.scores.design
    told = whose_grades_text(run.qrels, qrels, by, left)
    return (scores if design is None else scores.of_sample(design)), told


def _of_design(
    values: Mapping[str, float],
    possible: Mapping[str, Ends],
    design: Design | None,
    measure: str,
) -> Valued:
    mean, ends = partial(mean_over_queries, design), partial(mean_ends, measure, design)
    return Valued(values, possible, mean, ends, design)


def mean_ends(measure: str, design: Design | None, values: Mapping[str, float]) -> Ends | None:
    """Return the ends of the interval of that mean; None where there is none."""
    listed = list(values.values())
    if design is None:
        return ends_by_measure(measure, listed)
    from ragforge.measures.stratified import sample_interval

    found = sample_interval(measure, listed, design.stratified(values))
    return None if found.low is None or found.high is None else Ends(found.low, found.high)
