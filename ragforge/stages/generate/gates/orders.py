"""Orders of a document to the model that reads it, as quoted, repeated or passed on."""

import re
from typing import Final

from ragforge.stages.generate.candidates import Brief, Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.words import words

_OVERRIDES: Final = (
    r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)?(?:of\s+)?"
    r"(?:the\s+|your\s+|my\s+|these\s+|those\s+)?(?:previous|prior|above|earlier|preceding|"
    r"foregoing|former|your|system)\s+(?:\w+\s+)?(?:instructions?|prompts?|rules?|directions?|"
    r"guidelines?|orders?|messages?|context)\b|"
    r"\b(?:ignore|disregard)\s+(?:all\s+|the\s+|your\s+)+(?:instructions?|rules?)\s+and\b|"
    r"\byou are (?:now )?(?:a|an) (?:helpful |ai |language |large )*(?:assistant|model|ai)\b|"
    r"\b(?:new|system)\s+instructions?\s*:|"
    r"(?:ignorier\w*|vergiss|missachte)\s+(?:bitte\s+)?(?:alle\s+|die\s+|deine\s+)*"
    r"(?:vorherigen|bisherigen|obigen)\b|"
    r"\b(?:ignore[zr]?|oubliez)\s+(?:toutes\s+)?les\s+(?:instructions|consignes)\b|"
    r"\b(?:ignora|olvida|ignore|esqueça)\s+(?:todas\s+)?(?:las|le|as)\s+"
    r"(?:instrucciones|istruzioni|instruções)\b|"
    r"(?:忽略|无视|無視)(?:之前|以上|前面|上述|所有)?的?(?:所有)?(?:指令|指示|说明|规则)|"
    r"(?:指示|命令)を無視|игнорируй\w*\s+(?:все\s+)?(?:предыдущие\s+)?(?:инструкции|указания)"
)
"""What tells a model to drop what it was told."""

GRADING: Final = (
    r"(?:^|[.!?:;,]\s*)(?:and\s+)?(?:please\s+)?(?:grade|score|rate)\s+(?:this|it|(?:the|my)\s+"
    r"(?:answer|item|question|pair|reply|candidate|passage))\b[^.!?\n]{0,30}?"
    r"(?:\d|correct|relevant|highest|full|top|max)|"
    r"(?:^|[.!?:;,]\s*)(?:and\s+)?(?:please\s+)?give\s+(?:this|it|the\s+\w+)\s+(?:a\s+|the\s+)?"
    r"(?:(?:full|top|highest|maximum|perfect)\s+(?:grade|score|marks?)|(?:grade|score)\s+(?:of\s+)?\d)|"
    r"\b(?:ignore|disregard|forget|skip)\s+(?:the|your|all|any)\s+(?:\w+\s+)?"
    r"(?:rubric|grading|scoring)\b|"
    r"\b(?:note|message|attention|instructions?)\s*[:,]?\s*(?:to|for)\s+(?:the\s+|all\s+|any\s+)?"
    r"(?:graders?|judges?|evaluators?|annotators?)\s*:|\bdear\s+(?:grader|judge|evaluator)\b"
)
"""What tells the reader of an item how to grade it."""

_REPORTED: Final = re.compile(
    r"\b(?:tell|told|ask|instruct|trick|get|got|caus|urg|attempt|tr(?:y|ied|ies)|want|manipulat|"
    r"persuad|convinc|forc|prompt|mean)\w*\s+(?:\w+\s+){0,4}(?:to|not)\s+$",
    re.IGNORECASE,
)
_OVERRIDE: Final = re.compile(_OVERRIDES, re.IGNORECASE | re.MULTILINE)
_ASKS_FOR: Final = re.compile(
    r"\b(?:write|ask|generate|create|produce|output|formulate|reply with)\s+"
    r"(?:(?:only|exactly|just|the|this|a|one|following|test|search)\s+){0,4}"
    r"questions?\b(?!\s+mark)|"
    r"(?:schreibe?|stelle?|erzeuge?)\s+(?:\w+\s+){0,2}fragen?\b|"
    r"(?:écri(?:s|vez)|pose[zr]?)\s+(?:\w+\s+){0,2}questions?\b|"
    r"(?:escrib[ae]|haz|scriv[ie])\s+(?:\w+\s+){0,2}(?:preguntas?|domand[ae])\b",
    re.IGNORECASE,
)
_WITH_ANSWER: Final = re.compile(
    r"\bwith\s+(?:the\s+)?(?:expected\s+)?answer\b(?!\s+field)|mit\s+der\s+antwort\b|"
    r"avec\s+la\s+réponse\b|con\s+la\s+(?:respuesta|risposta)\b",
    re.IGNORECASE,
)
_GRADING: Final = re.compile(GRADING, re.IGNORECASE | re.MULTILINE)
_OUR_KEYS: Final = re.compile(
    r"[\"'](?:grade|verdicts?|contains_answer|expected_answer|difficulty|candidates|standalone)"
    r"[\"']\s*:",
    re.IGNORECASE,
)
_ASKED_KEY: Final = re.compile(r"[\"'](?:question|query)[\"']\s*:\s*[\"']?$", re.IGNORECASE)
_BEFORE: Final = 160
_FEWEST_WORDS: Final = 3


def order_followed(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Return what of a candidate is an order of its document; None where nothing is.

    A document may be about such orders: what stands in quotation marks or is code is spoken of.
    """
    for quote in candidate.quotes:
        found = _order(quote.text)
        if found is not None:
            return Rejection("order_followed", f"the quote says {found.group().strip()[:60]!r}")
    for chunk in brief.chunks:
        if _dictated(candidate.asked, chunk.text):
            return Rejection("order_followed", "the passage dictates the question")
    return None


def overriding(text: str) -> re.Match[str] | None:
    """Return where a text tells a model to drop what it was told, not that somebody might."""
    return next(
        (
            found
            for found in _OVERRIDE.finditer(text)
            if not _REPORTED.search(text[max(0, found.start() - _BEFORE) : found.start()])
        ),
        None,
    )


def _order(text: str) -> re.Match[str] | None:
    said = spoken_of(text)
    asks = _ASKS_FOR.search(said)
    keys = _OUR_KEYS.search(text)
    return (
        overriding(said)
        or _GRADING.search(said)
        or (asks if asks and _WITH_ANSWER.search(said, asks.end(), asks.end() + _BEFORE) else None)
        or (keys if keys and re.search(r"[\"'](?:question|query)[\"']\s*:", text) else None)
    )


def _dictated(question: str, text: str) -> bool:
    """Whether a question stands in a text word for word, behind an order to ask it."""
    asked = words(question)
    if len(asked) < _FEWEST_WORDS or asked[0] not in text.casefold():
        return False
    pattern = r"[\W_]+".join(map(re.escape, asked))
    for found in re.finditer(pattern, text, re.IGNORECASE):
        before = text[max(0, found.start() - _BEFORE) : found.start()]
        behind = text[found.end() : found.end() + _BEFORE]
        ordered = overriding(before) or _asks_at_end(before)
        keyed = _ASKED_KEY.search(before.rstrip()) and _OUR_KEYS.search(behind)
        if ordered or keyed:
            return True
    return False


def _asks_at_end(before: str) -> bool:
    asks = [found.end() for found in _ASKS_FOR.finditer(before)]
    return bool(asks) and not re.search(r"[.?!]\s", before[asks[-1] :])
