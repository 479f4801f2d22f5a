"""Calibrations of a dataset: draw a sample, plan one, and apply the labels."""

from collections.abc import Sequence
from dataclasses import replace

from ragforge.calibration.comparing import (
    refuse_left_out,
    require_threshold,
)
from ragforge.calibration.correcting import apply_labels
from ragforge.calibration.planning import LabelPlan, plan_labels
from ragforge.calibration.population import Question, counts_no_more
from ragforge.calibration.sampling import (
    DrawnSample,
    SampleOptions,
    draw_sample,
    sampled_question,
)
from ragforge.errors import UsageError
from ragforge.files.set.calibrations import (
    USUAL_NAME,
    CalibrationFiles,
    calibration_files,
    calibration_names,
    the_calibration,
)
from ragforge.files.set.canaries import stale_warning
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.evaluating import EvaluatedRuns
from ragforge.records import Calibration
from ragforge.records.calibrations import SampleOf


def question_of(
    dataset: Dataset,
    runs: Sequence[str],
    measures: Sequence[str],
    *,
    of: SampleOf = "both",
    judge: str | None = None,
    rel_threshold: int | None = None,
) -> Question:
    """Return what a calibration is to answer.

    Args:
        dataset: Whose author may call grades relevant from another one on than 2.
        runs: At least one; the others are held against the first.
        measures: P@k, DCG@k or nDCG@k.
        of: Whether levels, differences or both are wanted.
        judge: Its model, where several judges graded; where one model graded in several ways, all
            that the refusal says of it, such as "gpt-5-mini (batch 10 x 1)".
        rel_threshold: Lowest relevant grade; the set's where None.

    Raises:
        UsageError: It cannot be answered.
    """
    usual = dataset.rel_threshold("auto")
    return Question(
        runs=tuple(runs),
        measures=tuple(measures),
        of="levels" if len(runs) == 1 else of,
        judge=judge,
        rel_threshold=rel_threshold or (2 if usual == "auto" else usual),
    )


def sample_labels(
    dataset: Dataset, question: Question, options: SampleOptions, name: str = USUAL_NAME
) -> DrawnSample:
    """Draw the pairs that people are asked to grade, or more of them; see `draw_sample`."""
    return draw_sample(dataset, calibration_files(dataset, name), question, options)


def sample_anew(
    dataset: Dataset, name: str | None = None, n: int | None = None, seed: int | None = None
) -> DrawnSample:
    """Draw again for the question of a sample that is there, with runs and grades as they are now.

    Where another judge graded everything since, it is drawn for that one.

    Args:
        dataset: Has the calibration.
        name: Of the calibration; None for the only one.
        n: Pairs in all; as many as before where None.
        seed: Of the draw; that of before where None.

    Raises:
        DataError: There is no such calibration, or what `draw_sample` raises.
        UsageError: As for `draw_sample`.
    """
    files = the_calibration(dataset, name)
    old = files.sample()
    options = SampleOptions(
        len(old.pairs) if n is None else n,
        old.seed if seed is None else seed,
        old.repeat_share,
        again=True,
    )
    question = sampled_question(old)
    if counts_no_more(dataset, old.judge):
        question = replace(question, judge=None)
    return draw_sample(dataset, files, question, options)


def plan_calibration(
    dataset: Dataset, question: Question | None, name: str | None = None, sizes: Sequence[int] = ()
) -> LabelPlan:
    """Return how many labels for which width; by those of a calibration where there is one."""
    is_there = name is not None or question is None or len(calibration_names(dataset)) == 1
    files = the_calibration(dataset, name) if is_there else None
    return plan_labels(dataset, files, question, sizes)


def read_calibration(dataset: Dataset, name: str | None = None) -> Calibration:
    """Return what people would find, by the labels there are; nothing is written.

    Raises:
        DataError: There is no such calibration, or what it is bound to changed.
        UsageError: A part of the queries was chosen.
    """
    if dataset.chosen is not None:
        raise UsageError("calibrated: the labels are of all queries, not of a part of them")
    return _applied(dataset, the_calibration(dataset, name))


def with_levels(found: EvaluatedRuns, calibration: Calibration | None) -> EvaluatedRuns:
    """Return runs that were measured with their corrected levels.

    Raises:
        UsageError: Other grades are relevant than in the calibration, or queries that a run lacks
            are left out.
    """
    if calibration is not None:
        refuse_left_out(
            {
                record.evaluation.run: len(record.scores.missing_from_run)
                for record in found.records
                if record.evaluation.only_retrieved and record.scores.missing_from_run
            }
        )
        by_lists = any(record.relevant for record in found.records)
        require_threshold(calibration, found.rel_threshold, calibration.measures, by_lists=by_lists)
        found = replace(found, warnings=(*found.warnings, *calibration.warnings))
    return replace(found, calibration=calibration)


def apply_calibration(
    dataset: Dataset, name: str | None = None, *, model_assisted: bool = False
) -> Calibration:
    """Return what people would find, and write it to `calibration.json`.

    Raises:
        DataError: There is no such calibration, or what it is bound to changed.
    """
    files = the_calibration(dataset, name)
    found = _applied(dataset, files, model_assisted=model_assisted)
    files.write_calibration(found)
    return found


def _applied(
    dataset: Dataset, files: CalibrationFiles, *, model_assisted: bool = False
) -> Calibration:
    """Return what the labels say, with a warning where the judge drifted since."""
    found = apply_labels(dataset, files, model_assisted=model_assisted)
    stale = stale_warning(dataset, found.judge, files.sample().grades_sha256)
    return found.model_copy(update={"warnings": (stale, *found.warnings)}) if stale else found
