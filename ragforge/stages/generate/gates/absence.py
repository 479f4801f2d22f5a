"""Whether an answer says what its type needs: a fact, or that there is none."""

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.

import re
from typing import Final

from ragforge.stages.answer.absence import speaks_of_absence
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.generate.candidates import Candidate, Rejection

_BEYOND: Final = {
    "ar": r"(?<!\w)(?:و|ف)?(?:لا|لم|لن|ليس|ليست|غير|دون|بدون|لايوجد)(?!\w)",
    "cs": r"\bne\w|\b(?:není|bez|nic|žádn\w+)\b",
    "el": r"\b(?:δεν|δε|μη|μην|χωρίς|καν[εέ]\w+|άγνωστ\w+)\b",
    "fa": r"(?<!\w)(?:نیست|ندارد|نشده|بدون|هیچ|نمی\w*|ن\w+ه)",
    "fi": r"\b(?:ei|eivät|eikä|ilman|tuntematon|puuttu\w+)\b",
    "he": r"(?<!\w)(?:לא|אין|אינ\w+|בלי|ללא)(?!\w)",
    "hi": r"नहीं|बिना|अज्ञात",
    "hu": r"\b(?:nem|nincs\w*|sem|ismeretlen|nélkül|hiányzik)\b",
    "id": r"\b(?:tidak|belum|tanpa|bukan|tak)\b",
    "ro": r"\b(?:nu|n-\w+|fără|niciun\w*|necunoscut\w*|lipse\w+)\b",
    "th": r"ไม่|ไร้",
    "uk": r"\b(?:не|немає|нема|ні|без|невідом\w+|відсутн\w+)\b",
    "vi": r"\b(?:không|chưa|thiếu)\b",
}
_KNOWN: Final = frozenset("en de fr es it pt nl pl sv da no nb nn tr ru zh ja ko".split())


def no_answer(candidate: Candidate) -> Rejection | None:
    """Return an answer that only says that there is none, where one is needed."""
    if candidate.behaviour != "answer" or not abstains(candidate.answer, candidate.asked):
        return None
    return Rejection("no_answer", _shown(candidate))


def answer_not_absent(candidate: Candidate, language: str) -> Rejection | None:
    """Return what answers an unanswerable question, None where it may say what is missing.

    In a language whose words for it are not known every answer may.
    """
    if candidate.behaviour != "abstain" or abstains(candidate.answer, candidate.asked):
        return None
    code = re.split(r"[-_]", language.lower())[0]
    beyond = _BEYOND.get(code)
    if beyond is None and code not in _KNOWN:
        return None
    if speaks_of_absence(candidate.answer):
        return None
    if beyond is not None and re.search(beyond, candidate.answer, re.IGNORECASE):
        return None
    return Rejection("answer_not_absent", _shown(candidate))


def _shown(candidate: Candidate) -> str:
    return repr(candidate.answer.strip()[:60])
