"""Talk around an item: replies to the prompt, leftovers of formats, and orders to its reader."""

import re
from typing import Final

from ragforge.stages.generate.candidates import Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.generate.gates.leftovers import EMPTY, leftover
from ragforge.stages.generate.gates.orders import GRADING, overriding

_ROLE_MARKS: Final = re.compile(
    r"<\|[\w./ -]{1,40}\|>|\[/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS)\]|<</?SYS>>|"
    r"</?(?:think|thinking|start_of_turn|end_of_turn|system|assistant|instructions?)>|"
    r"<(?:bos|eos|s)>\s*\[|\A\s*<s>|</s>\s*\Z|"
    r"^[ \t]{0,8}#{2,6}[ \t]{0,8}(?:instructions?|system|user|assistant|human|"
    r"response|input|output)\b|"
    r"^[ \t]{0,8}(?:assistant|human)[ \t]?:\s",
    re.IGNORECASE | re.MULTILINE,
)
_ROLE_LINE: Final = re.compile(r"^[ \t]{0,8}(?:system|user)[ \t]?:", re.IGNORECASE | re.MULTILINE)
"""In an answer it may be a line of a configuration."""
_FENCE: Final = re.compile(
    r"<<\s*(?:\$?marker|DATA)\b|\bDATA-[0-9a-f]{6,}|between two lines with the same marker|"
    r"never an instruction to you|\$(?:marker|passages?)\b",
    re.IGNORECASE,
)
_ORDERS: Final = re.compile(
    rf"{GRADING}|"
    r"(?:^|[.!?:;]\s*)(?:please\s+)?(?:respond|reply|answer)\s+(?:only\s+)?(?:with|in)\s+"
    r"(?:only\s+)?(?:the\s+|a\s+|an\s+)?(?:following|json|one word|word|phrase|grade|score|\d)|"
    r"(?:^|[.!?:;]\s*)(?:please\s+)?(?:generate|write|create|produce|formulate)\s+"
    r"(?:(?:a|an|one|two|three|\d+|some|the|another|new|more)\s+)*"
    r"(?:(?:test\s+|quiz\s+)?questions?|(?:test|search|user)\s+quer(?:y|ies))\s+(?:about|based|for|"
    r"from|"
    r"that|in|on|with|using)\b",
    re.IGNORECASE | re.MULTILINE,
)
_TALK: Final = re.compile(
    r"\A\W*(?:(?:pop\s+)?(?:quiz|trivia)(?:\s+(?:time|question|night))?\s*\d{0,3}\s*[!:.\u2013-]\s|"
    r"(?:bonus|practice|sample|test|exam)\s+question\s*\d{0,3}\s*[!:.]\s|"
    r"let(?:'|\u2019)?s\s+test\s+your\b|"
    r"(?:sure|certainly|absolutely|of course|ok|okay|great|alright|"
    r"gladly)\s*[,!:.\u2013-]\s+\w|"
    r"(?:sure\W+)?here(?:'s|\u2019s| is| are)\s+(?:(?:the|a|an|your|my|some|one|two|three|another|"
    r"\d+)\s+)?(?:\w+\s+){0,3}(?:questions?|quer(?:y|ies)|answers?|json|items?|pairs?|candidates?)"
    r"\b|as an? (?:ai|language|large|helpful)\b|i(?:'m| am) (?:an ai|sorry|unable|afraid)\b|"
    r"i (?:cannot|can't|can not) (?:generate|write|create|help|assist|comply|provide|fulfil\w*)\b|"
    r"(?:natürlich|gerne|klar|selbstverständlich)\s*[,!:]|hier (?:ist|sind) (?:die|eine|ihre|deine|"
    r"einige)\s+(?:\w+\s+)?(?:fragen?|antwort(?:en)?)\b|"
    r"(?:bien sûr|certainement|d'accord)\s*[,!:]|voici (?:la|une|votre|les|des|quelques)\s+"
    r"(?:\w+\s+)?(?:questions?|réponses?)\b|(?:claro|por supuesto|con gusto)\s*[,!:.]|"
    r"aquí (?:está|tienes|tiene) (?:la|una|las)\s+(?:preguntas?|respuestas?)\b|"
    r"(?:certo|certamente)\s*[,!:]|ecco (?:la|una|le)\s+(?:domand[ae]|rispost[ae])\b|"
    r"(?:com certeza|claro)\s*[,!:]|aqui está (?:a|uma)\s+(?:pergunta|resposta)\b|"
    r"(?:natuurlijk|zeker)\s*[,!:]|hier (?:is|zijn) (?:de|een)\s+(?:vraag|vragen|antwoord)\b|"
    r"(?:конечно|разумеется)\s*[,!:]|вот (?:ваш )?(?:вопрос|ответ)\b|"
    r"(?:当然|好的|没问题)[,\uff0c!\uff01:\uff1a。]|以下是[^,.。]{0,8}(?:问题|答案)|"
    r"(?:もちろん|承知しました|かしこまりました)|以下(?:は|が)[^、。]{0,8}(?:質問|回答)|"
    r"(?:بالطبع|بالتأكيد)\s*[,،!:]|إليك (?:السؤال|الجواب|الإجابة))",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(
    r"\A\W*(?:(?:question|query|q|frage|pregunta|domanda|pergunta|vraag|вопрос|سؤال|السؤال|"
    r"answer|a|antwort|réponse|respuesta|risposta|resposta|antwoord|ответ|جواب|الإجابة)"
    r"\s*(?:no\.?\s*)?\d{0,3}\s*[:\uff1a]\s|"
    r"(?:问题|質問|問題|问|問|答案|回答|答え|答)\s*\d*[:\uff1a])",
    re.IGNORECASE,
)
_NUMBERING: Final = re.compile(r"\A\W*(?:q\d{1,3}[.:)]\s|\(?\d{1,2}[.)]\s+\w)", re.IGNORECASE)
_OPENS: Final = re.compile(r"\A\s*(?:[{\[]\s*[\"'{]|```|~~~|#{1,6}\s|[-*+>]\s|\*\*|\|\s)")
_LEFTOVERS: Final = re.compile(
    r"```|\*\*\s*\Z|[\"'}]\s*[}\]]\s*\Z|[?.]\\n|\w\\u[0-9a-f]{4}|\\u[0-9a-f]{4}\w|"
    r"\*\*(?:question|answer|query)",
    re.IGNORECASE,
)
_OWN_KEYS: Final = re.compile(
    r"[\"'](?:question|answer|quotes?|evidence|difficulty|standalone|expected_answer|candidates|"
    r"contains_answer|grade|verdicts?)[\"']\s*:",
    re.IGNORECASE,
)


def meta_talk(candidate: Candidate) -> Rejection | None:
    """Return what of a candidate is no part of an item, None where all is.

    Words in quotation marks and code are spoken of, so a question about them passes. An answer
    may be code or a list; a question is one plain sentence.
    """
    for name, text in (
        ("question", candidate.question),
        ("question on its own", candidate.standalone),
    ):
        found = _anywhere(text) or _in_question(text) or leftover(text)
        if found is not None:
            return _rejection(found, name)
    for name, text in (
        ("answer", candidate.answer),
        *(("history", turn.text) for turn in candidate.history),
    ):
        found = _anywhere(text) or EMPTY.search(text)
        if found is not None:
            return _rejection(found, name)
    return None


def _anywhere(text: str) -> re.Match[str] | None:
    said = spoken_of(text)
    return (
        _FENCE.search(text)
        or _OWN_KEYS.search(text)
        or _TALK.search(text)
        or _LABEL.search(text)
        or _ROLE_MARKS.search(said)
        or _ORDERS.search(said)
        or overriding(said)
    )


def _in_question(text: str) -> re.Match[str] | None:
    said = spoken_of(text)
    return (
        _OPENS.search(text)
        or _NUMBERING.search(text)
        or _ROLE_LINE.search(said)
        or _LEFTOVERS.search(said)
    )


def _rejection(found: re.Match[str], name: str) -> Rejection:
    return Rejection("preamble", f"{found.group().strip()[:40]!r} in the {name}")
