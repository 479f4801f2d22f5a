"""Talk around an item: replies to the prompt, leftovers of formats, and orders to its reader."""

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

_HOLE: Final = (
    r"(?i:answers?|questions?|quer(?:y|ies)|topics?|product(?:[ _]name)?|placeholder|subject|"
    r"entity|concept|"
    r"(?:your|insert|fill in|specify|e\.g\.)\b[^\]}>\n]{0,40})|"
    r"(?:NAME|VALUE|NUMBER|DATE|TERM|VERSION|COMPANY|PERSON|PLACE|FEATURE|TOOL|LIBRARY|CONTEXT|X|Y)"
)
_PLACEHOLDER: Final = re.compile(
    rf"(?<![\w/.\[{{<])(?:\[(?:{_HOLE})\]|\{{\{{?\s?(?:{_HOLE})\s?\}}?\}}|<(?:{_HOLE})>)(?![\w/(])|"
    r"(?<!\S)_{4,}(?=[\s.?!]|$)"
)
EMPTY: Final = re.compile(
    rf"\A\W*(?:\[(?:{_HOLE})\]|\{{\{{?(?:{_HOLE})\}}?\}}|<(?:{_HOLE})>|"
    r"(?i:tbd|todo|lorem ipsum)\b)\W*\Z|\A[\s.\u2026]+\Z",
)
"""An answer that was never filled in."""
_LABELLED: Final = re.compile(
    r"[(\[](?:(?:difficulty|level|type)\s*[:=]\s*)?(?:easy|medium|hard)[)\]]\s*\Z|"
    r"[?.!\uff1f]\s*[(\[](?:type\s*[:=]\s*)?(?:fact|definition|procedure|comparison|list|temporal|"
    r"keyword|why|multi[_ -]?hop|unanswerable|two[_ -]in[_ -]one|follow[_ -]up|false[_ -]premise|"
    r"ambiguous|troubleshooting)[)\]]\s*\Z|"
    r"\b(?:difficulty|level)\s*[:=]\s*(?:easy|medium|hard)\W*\Z",
    re.IGNORECASE,
)
_MARKUP: Final = re.compile(
    r"<script\b[^>]*>[^<]*</script|<(?:script|iframe|img|svg|a|object|embed|div|span|p|font|style|"
    r"body)\b[^>]{0,200}=[^>]{0,200}>|<\w+\b[^>]{0,200}\bon\w+\s*=|"
    r"<(b|i|em|strong|p|span|u|mark|h\d)>[^<]{1,300}</\1>",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"`[^`]{0,300}`")
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


def leftover(question: str) -> re.Match[str] | None:
    """Return what a form left in a question; None where there is nothing of it."""
    return (
        _PLACEHOLDER.search(spoken_of(question))
        or _LABELLED.search(question)
        or _MARKUP.search(_CODE.sub(" ", question))
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
