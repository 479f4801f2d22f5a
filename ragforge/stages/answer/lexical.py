"""The offline baseline for answers: exact match and token F1, and words no chunk holds."""

import re
from collections import Counter

from ragforge.deferred import dataclass
from ragforge.records import AnswerGrade, Provenance, Verdict
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.answer.stage import Case
from ragforge.stages.words import content_stems, numbers, sentences, words

_NAME = "offline-token-f1-1"
_ARTICLES = frozenset({"a", "an", "the"})
_CORRECT_FROM = 0.6
_PARTIAL_FROM = 0.3
_SUPPORTED_FROM = 0.5
"""Share of a sentence's content words that the chunks must hold; chosen by hand, like the rest."""


@dataclass(frozen=True, slots=True)
class LexicalAnswerJudge:
    """Grades by the words an answer shares with the expected one."""

    @property
    def provenance(self) -> Provenance:
        """The baseline's name."""
        return Provenance(kind="baseline", model=_NAME)

    async def judge(self, case: Case) -> AnswerGrade:
        """Return the grade of an answer; never fails."""
        score, verdict, why = _compare(case)
        silent = verdict == "not_attempted"
        unsupported = [] if silent else unsupported_sentences(case.answer, case.contexts)
        note = f"; not in the chunks: {unsupported[0]!r}" if unsupported else ""
        return AnswerGrade(
            query_id=case.query.query_id,
            verdict=verdict,
            score=score,
            has_hallucination=bool(unsupported) if case.contexts else None,
            explanation=f"{why}{note}",
            provenance=self.provenance,
        )


def _compare(case: Case) -> tuple[float, Verdict, str]:
    if not case.query.answerable:
        return 0.0, "incorrect", "the question is not answerable, but the answer claims something"
    expected_text = case.query.expected_answer or ""
    expected = _tokens(expected_text)
    given = _tokens(case.answer)
    if given == expected and (given or case.answer.split() == expected_text.split()):
        return 1.0, "correct", "exact match"
    score = token_f1(given, expected)
    if score < _PARTIAL_FROM and abstains(case.answer, case.query.asked):
        return 0.0, "not_attempted", "the answer says that it does not know"
    verdict: Verdict = "incorrect"
    if score >= _CORRECT_FROM:
        verdict = "correct"
    elif score >= _PARTIAL_FROM:
        verdict = "partial"
    return score, verdict, f"token F1 {score:.2f}"


def token_f1(given: list[str], expected: list[str]) -> float:
    """Return the harmonic mean of precision and recall over tokens counted with repeats, in [0, 1].

    Source: Rajpurkar et al. 2016, arXiv 1606.05250.
    """
    common = sum((Counter(given) & Counter(expected)).values())
    return 2 * common / (len(given) + len(expected)) if common else 0.0


def unsupported_sentences(answer: str, contexts: tuple[str, ...]) -> list[str]:
    """Return the sentences of an answer with a number, or most content words, in no context."""
    held = {stem for text in contexts for stem in content_stems(text)}
    held_numbers = {number for text in contexts for number in numbers(text)}
    unsupported = []
    for sentence in sentences(answer):
        stems = [stem for stem in content_stems(sentence) if not re.search(r"\d", stem)]
        share = sum(stem in held for stem in stems) / len(stems) if stems else 1.0
        if not numbers(sentence) <= held_numbers or share < _SUPPORTED_FROM:
            unsupported.append(sentence)
    return unsupported


def _tokens(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]
