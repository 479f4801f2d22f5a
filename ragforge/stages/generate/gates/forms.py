"""Whether a question has the form of its type: search words, one question, or two."""

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.

import re
from typing import Final

from ragforge.records import QueryType
from ragforge.stages.generate.candidates import Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of

_MARK_AT_END: Final = re.compile(r"[?!\uff1f\uff01\u061f\u037e]\W*$|[^.\s]\.\s*$|[\u3002]\s*$")
_MARK_WITHIN: Final = re.compile(r"^(?:\S+\s+){2,}\S*\w\s?\?+(?=\s)|[\uff1f\u061f\u037e]")
"""Behind three words and more: "int? nullable" is a query about a sign."""
_MARKS: Final = re.compile(r"[?\uff1f\u061f\u037e]")
_CHOICES: Final = re.compile(
    r"(?:^|[\s?:(])\(?(?:A[).:]\s(?!(?:and|or|vs)\b).{1,200}?[\s(]B[).:]\s|a\)\s(?!(?:and|or|vs)\b).{1,200}?[\s(]b\)\s)|"
    r"[?:]\s*\(?1[).]\s.{1,200}?[\s(]2[).]\s",
)
_SEVERAL: Final = {
    "en": r"\b(?:and|or|also|plus)\b|&",
    "de": r"\b(?:und|oder|sowie|auch)\b|&",
    "fr": r"\b(?:et|ou|ainsi)\b|&",
    "es": r"\b(?:y|e|o|u|también)\b",
    "it": r"\b(?:e|ed|o|oppure|anche)\b",
    "pt": r"\b(?:e|ou|também)\b",
    "nl": r"\b(?:en|of|ook)\b|&",
    "ru": r"\b(?:и|или|а|также)\b",
}
_PAIRED: Final = {
    "en": r"\b(?:between|both|either)\b.+?\b(?:and|or)\b",
    "de": r"\b(?:zwischen|sowohl|entweder)\b.+?\b(?:und|oder)\b",
    "fr": r"\b(?:entre|soit)\b.+?\b(?:et|soit)\b",
    "es": r"\bentre\b.+?\b[ye]\b",
    "it": r"\b(?:tra|fra|sia)\b.+?\b(?:e|ed|sia)\b",
    "pt": r"\bentre\b.+?\be\b",
    "nl": r"\b(?:tussen|zowel)\b.+?\ben\b",
    "ru": r"\bмежду\b.+?\bи\b",
}
"""Words that join two things into one: "the difference between A and B"."""
_ASKING: Final = {
    "en": "what which who whom whose when where why how is are was were does do did can could "
    "should will must has have",
    "de": "was welche welcher welches welchen wer wen wem wie warum wieso wann wo wozu wofür womit "
    "ist sind kann muss",
    "fr": "que qui quoi quel quelle quels quelles quand où pourquoi comment combien",
    "es": "qué quién cuál cuáles cuándo dónde cómo cuánto cuánta cuántos por",
    "it": "che chi cosa quale quali qual quando dove perché come quanto quanti quante",
    "pt": "que qual quais quem quando onde como quanto quantos",
    "nl": "wat welke welk wie wanneer waar waarom hoe hoeveel",
    "ru": "что кто какой какая какое какие когда где почему зачем сколько как",
}
_TELLING: Final = {
    "en": r"(?:the|an?|there|they|these|its?|this)\s+",
    "de": r"(?:der|die|das|ein|eine|es)\s+(?!.*\b(?:was|welche\w?|wer|wann|wo|warum|wie|ob)\b)",
    "fr": r"(?:le|la|les|un|une|il|elle)\s+(?!.*\b(?:quel\w*|qui|quand|où|pourquoi|comment)\b)",
    "es": r"(?:el|la|los|las|un|una)\s+(?!.*(?:qué|cuál|quién|cuándo|dónde|cómo))",
    "it": r"(?:il|lo|la|gli|le|un|una)\s+(?!.*\b(?:quale|quali|chi|quando|dove|perché|come)\b)",
}
_STATED: Final = re.compile(
    r"(?!(?:tell|explain|describe|list|name|give|show|compare|find|i|we|my|our|please|create|write|"
    r"check|make|help|state|say|define|summari[sz]e|outline|identify|discuss|assume|suppose|what|"
    r"which|who|how|why|when|where|if|is|are|do|does|can|should|want|need|looking|trying|provide|"
    r"set|get|use|let|count|sort|calculate|convert|walk|recommend|suggest)\b)"
    r"(?:\S+\s+){1,5}?(?:is|are|was|were|has|have|does|can|must|will|should)\s",
    re.IGNORECASE,
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
    several = _SEVERAL.get(language)
    if several is None or len(_MARKS.findall(question)) > 1:
        return True
    if ";" in question:
        return True
    asking = "|".join(_ASKING[language].split())
    if re.search(rf"\b(?:{asking})\b.*\w,\s+(?:\w+\s+)?(?:{asking})\b", question, re.IGNORECASE):
        return True
    alone = re.sub(_PAIRED[language], " ", question, flags=re.IGNORECASE)
    return re.search(several, alone, re.IGNORECASE) is not None


def _states(question: str, said: str, language: str) -> bool:
    """Whether a sentence ends like a statement, and opens like one."""
    if not re.search(r"[^.\s]\.\s*$", question) or _MARKS.search(said):
        return False
    telling = _TELLING.get(language)
    opens = telling is not None and re.match(telling, said, re.IGNORECASE) is not None
    if language != "en":
        return opens
    asks = re.search(r"\b(?:what|which|who|when|where|why|how|whether)\b", said, re.IGNORECASE)
    return opens or (asks is None and _STATED.match(said) is not None)
