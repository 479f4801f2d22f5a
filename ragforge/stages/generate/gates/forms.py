"""Whether a question has the form of its type: search words, one question, or two."""

import re
from typing import Final

from ragforge.records import QueryType
from ragforge.stages.generate.candidates import Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.lexicon import entries

_MARK_AT_END: Final = re.compile(r"[?!\uff1f\uff01\u061f\u037e]\W*$|[^.\s]\.\s*$|[\u3002]\s*$")
_MARK_WITHIN: Final = re.compile(r"^(?:\S+\s+){2,}\S*\w\s?\?+(?=\s)|[\uff1f\u061f\u037e]")
"""Behind three words and more: "int? nullable" is a query about a sign."""
_MARKS: Final = re.compile(r"[?\uff1f\u061f\u037e]")
_CHOICES: Final = re.compile(
    r"(?:^|[\s?:(])\(?(?:A[).:]\s(?!(?:and|or|vs)\b).{1,200}?[\s(]B[).:]\s|a\)\s(?!(?:and|or|vs)\b).{1,200}?[\s(]b\)\s)|"
    r"[?:]\s*\(?1[).]\s.{1,200}?[\s(]2[).]\s",
)
_MAY_TELL: Final[tuple[QueryType, ...]] = ("keyword", "troubleshooting", "follow_up", "ambiguous")
"""Types whose questions are often no sentence, or tell what goes wrong."""


def bad_form(candidate: Candidate, language: str) -> Rejection | None:
    """Return why a question does not have the form of its type, None where it has."""
    why = _wrong(candidate, re.split(r"[-_]", language.lower())[0])
    return Rejection("question_form", why) if why else None


def _wrong(candidate: Candidate, language: str) -> str:
    question = candidate.question.strip()
    said = spoken_of(question)
    if "\n" in question:
        return "several lines"
    if _CHOICES.search(said):
        return "answers to choose from"
    if candidate.type == "keyword" and (_MARK_AT_END.search(question) or _MARK_WITHIN.search(said)):
        return "a keyword query that is a sentence"
    if candidate.type == "two_in_one" and not _asks_twice(said, language):
        return "one question, not two"
    if candidate.type not in _MAY_TELL and _states(question, said, language):
        return "a statement, not a question"
    return ""


def _asks_twice(question: str, language: str) -> bool:
    """Whether a question may be two; true where the language's words for it are not known."""
    joining = entries(language, "questions.joining")
    if not joining or len(_MARKS.findall(question)) > 1:
        return True
    if ";" in question:
        return True
    asking = "|".join(entries(language, "questions.asking"))
    if re.search(rf"\b(?:{asking})\b.*\w,\s+(?:\w+\s+)?(?:{asking})\b", question, re.IGNORECASE):
        return True
    paired = "|".join(entries(language, "questions.paired"))
    alone = re.sub(paired, " ", question, flags=re.IGNORECASE)
    signs = entries(language, "questions.joining_signs")
    several = "|".join((rf"\b(?:{'|'.join(joining)})\b", *signs))
    return re.search(several, alone, re.IGNORECASE) is not None


def _states(question: str, said: str, language: str) -> bool:
    """Whether a sentence ends like a statement, and opens like one."""
    if not re.search(r"[^.\s]\.\s*$", question) or _MARKS.search(said):
        return False
    if _begins(said, "questions.statement_openings", language):
        return True
    indirect = "|".join(entries(language, "questions.indirect"))
    if indirect and re.search(rf"\b(?:{indirect})\b", said, re.IGNORECASE):
        return False
    return _begins(said, "questions.statements", language)


def _begins(text: str, name: str, language: str) -> bool:
    phrases = entries(language, name)
    return any(re.match(phrase, text, re.IGNORECASE) for phrase in phrases)
