"""Whether other judges graded than those of the baseline: a difference may then be theirs."""

from collections.abc import Container, Iterable, Sequence, Set
from typing import Final, NamedTuple

from ragforge.evaluating.formatting import one_line
from ragforge.evaluating.graded_by import is_in_batches
from ragforge.pipeline.gating.subjects import Subject
from ragforge.records import Evaluation, Grader, Provenance

_BY_FACTS: Final = "grade_facts"
_AT_ONCE: Final = "grade_answer"
"""What a judge by facts asks where no answer is expected; one without facts asks it of all."""
_ALONE: Final = "judge_relevance"
"""What a judge in batches asks of a text that no other is beside."""


class _Model(NamedTuple):
    model: str
    prompt: str
    prompt_sha256: str


def have_other_judges(before: Evaluation, now: Subject) -> bool:
    """Whether a difference from a baseline may be that of the judges.

    Of answers, those to questions that have an answer are told apart from the others, which a judge
    grades by another prompt. Where rules decided all of one side, no judge was chosen there. Of
    runs, texts that were judged alone are of the judge of the batches.
    """
    graders = now.evaluation.graders
    if now.run is not None:
        old, new = _models(before.graders), _models(graders)
        return any(
            not _is_alone_or_in_batches(model, old, new, now.run.pair_judges.judges)
            for model in {of.model for of in old ^ new}
        )
    return any(
        _differ(_graders_of(before.graders, answerable=kind), _graders_of(graders, answerable=kind))
        for kind in (True, False)
    )


def _is_alone_or_in_batches(
    model: str, before: Set[_Model], now: Set[_Model], judges: Sequence[Provenance]
) -> bool:
    """Whether one judge in batches gave what a model graded, on both sides.

    Which of its two prompts it asks by depends on how many texts of a query were to be judged.

    Args:
        model: Its name.
        before: The models of a baseline.
        now: Those of now.
        judges: Of now, where what a batch left to be judged alone is of the judge of the batch.
    """
    old, new = ({of for of in side if of.model == model} for side in (before, now))
    ways = {(by.prompt_sha256, is_in_batches(by)) for by in judges if by.model == model}
    is_one_judge = [in_batches for _, in_batches in ways] == [True]
    prompts = {of.prompt for of in old | new}
    has_both = len(old | new) == len(prompts) == 2 and _ALONE in prompts
    return is_one_judge and has_both and bool(old & new)


def models_text(evaluation: Evaluation) -> str:
    """Return the judges of an evaluation that are models or baselines, in words."""
    named = (
        f"{one_line(of.model)} with {one_line(of.prompt)} {of.prompt_sha256[:8]}"
        if of.prompt
        else one_line(of.model)
        for of in sorted(_models(evaluation.graders))
    )
    return ", ".join(named) or "no model"


def _models(graders: Iterable[Grader]) -> set[_Model]:
    """Return the judges that are models or baselines; people and rules judge alike each time."""
    return {
        _Model(grader.model, grader.prompt, grader.prompt_sha256)
        for grader in graders
        if grader.is_judge and grader.kind in ("llm", "baseline", "mock", "file")
    }


def _differ(before: Iterable[Grader], now: Iterable[Grader]) -> bool:
    sides = [*before], [*now]
    if any(all(grader.kind == "rule" for grader in side) for side in sides):
        return False
    return _models(sides[0]) != _models(sides[1])


def _graders_of(graders: Sequence[Grader], *, answerable: bool) -> list[Grader]:
    """Return who graded answers to questions that have an answer, or to those that have none."""
    by_facts = {(of.kind, of.model) for of in graders if of.prompt == _BY_FACTS}
    return [of for of in graders if _has_graded(of, by_facts, answerable=answerable)]


def _has_graded(
    grader: Grader, by_facts: Container[tuple[str | None, str]], *, answerable: bool
) -> bool:
    """Whether somebody graded, or where it is not recorded may have graded, such answers.

    Args:
        grader: Of answers.
        by_facts: Kind and model of those that graded by facts beside it.
        answerable: Whether the questions have an answer.
    """
    if grader.n_unanswerable is not None:
        return grader.count > grader.n_unanswerable if answerable else grader.n_unanswerable > 0
    if not answerable:
        return grader.prompt != _BY_FACTS
    return grader.prompt != _AT_ONCE or (grader.kind, grader.model) not in by_facts
