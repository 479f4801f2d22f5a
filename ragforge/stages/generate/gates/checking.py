"""The gates by rule: what a candidate must pass before any model is asked about it."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from ragforge.stages.answer.refusals import abstains, speaks_of_absence
from ragforge.stages.generate.candidates import Anchored, Brief, Candidate, Rejection
from ragforge.stages.generate.gates.anchoring import anchored, bad_quote
from ragforge.stages.generate.gates.languages import wrong_language
from ragforge.stages.generate.gates.preamble import meta_talk, order_followed
from ragforge.stages.generate.gates.repeated_questions import Taken
from ragforge.stages.generate.gates.shape import (
    bad_form,
    bad_length,
    broken_shape,
    hidden_characters,
)
from ragforge.stages.generate.gates.standing_alone import copied_run, given_away, points_away
from ragforge.stages.words import entries, words

_NORWEGIAN: Final = {"nb": "no", "nn": "no"}

_CERTAIN_OF_ANSWER = 4
"""Foreign function words that an answer takes; it may name more foreign things than a question."""


def no_answer(candidate: Candidate) -> Rejection | None:
    """Reject an answer that only says that there is none, where one is needed."""
    if candidate.behaviour != "answer" or not abstains(candidate.answer, candidate.asked):
        return None
    return Rejection("no_answer", _start_of_answer(candidate))


def answer_not_absent(candidate: Candidate, language: str) -> Rejection | None:
    """Reject what answers an unanswerable question; None where it may say what is missing.

    In a language whose words for it are not known every answer may.
    """
    if candidate.behaviour != "abstain" or abstains(candidate.answer, candidate.asked):
        return None
    code = re.split(r"[-_]", language.lower())[0]
    code = _NORWEGIAN.get(code, code)
    if not any(entries(code, f"absence.{name}") for name in ("words", "within", "phrases")):
        return None
    phrases = entries(code, "absence.phrases")
    is_absent = speaks_of_absence(candidate.answer) or any(
        re.search(phrase, candidate.answer, re.IGNORECASE) for phrase in phrases
    )
    return None if is_absent else Rejection("answer_not_absent", _start_of_answer(candidate))


def _start_of_answer(candidate: Candidate) -> str:
    return repr(candidate.answer.strip()[:60])


def check(candidate: Candidate, brief: Brief, taken: Taken, place: int) -> Anchored | Rejection:
    """Return a candidate with its evidence, or the first gate it fails; see `codes`.

    Args:
        candidate: What was proposed.
        brief: What it was proposed for.
        taken: Questions as they stand on their own (`Candidate.asked`) that are in the set, or
            were and are retired. What passes is not added.
        place: Among the candidates of its brief, from 0.
    """
    for stopped in _verdicts(candidate, brief):
        if stopped is not None:
            return stopped
    evidence = anchored(candidate, brief)
    if isinstance(evidence, Rejection):
        return evidence
    stopped = (
        given_away(candidate, brief.slot.language)
        or copied_run(candidate, brief)
        or _asked_already(candidate, taken)
    )
    return stopped or Anchored(brief, place, candidate, evidence)


def _verdicts(candidate: Candidate, brief: Brief) -> Iterator[Rejection | None]:
    """Yield what the gates say that need no look at the text; each may rely on those before it."""
    language = brief.slot.language
    gates: tuple[Callable[[], Rejection | None], ...] = (
        lambda: broken_shape(candidate, brief),
        lambda: bad_length(candidate),
        lambda: hidden_characters(candidate),
        lambda: meta_talk(candidate),
        lambda: bad_form(candidate, language),
        lambda: no_answer(candidate),
        lambda: answer_not_absent(candidate, language),
        lambda: _other_language(candidate, language),
        lambda: points_away(candidate, language),
        lambda: order_followed(candidate, brief),
        lambda: bad_quote(candidate, brief),
    )
    return (gate() for gate in gates)


def _other_language(candidate: Candidate, language: str) -> Rejection | None:
    for text in dict.fromkeys((candidate.question, candidate.asked)):
        other = wrong_language(text, language)
        if other is not None:
            return Rejection("language", f"the question reads as {other}, not {language}")
    # Words of the text are in the text's language, whichever that of the question is.
    answer = f" {' '.join(words(candidate.answer))} "
    if any(answer in f" {' '.join(words(quote.text))} " for quote in candidate.quotes):
        return None
    other = wrong_language(candidate.answer, language, certain=_CERTAIN_OF_ANSWER)
    return Rejection("language", f"the answer reads as {other}, not {language}") if other else None


def _asked_already(candidate: Candidate, taken: Taken) -> Rejection | None:
    clash = taken.clash(candidate.asked)
    if clash is None:
        return None
    if clash.exact:
        return Rejection("duplicate", f"of {clash.query_id}")
    return Rejection("near_duplicate", f"of {clash.query_id}: {clash.question[:80]!r}")
