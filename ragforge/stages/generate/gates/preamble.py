"""Talk around an item: replies to the prompt, leftovers of formats, and orders to its reader."""

import re
from functools import cache
from typing import Final

from ragforge.stages.generate.candidates import Brief, Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.words import all_entries, words

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
    """Reject a candidate that follows an order of its document; None where it does not.

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
    """Return the match of an order to drop earlier instructions; orders that are reported pass."""
    return next(
        (
            found
            for found in _any_of("orders.overriding").finditer(text)
            if not _any_of("orders.reported").search(
                text[max(0, found.start() - _BEFORE) : found.start()]
            )
        ),
        None,
    )


def _order(text: str) -> re.Match[str] | None:
    prose = spoken_of(text)
    asks = _any_of("orders.asking").search(prose)
    with_answer = _any_of("orders.with_answer")
    keys = _OUR_KEYS.search(text)
    return (
        overriding(prose)
        or _any_of("orders.grading").search(prose)
        or (asks if asks and with_answer.search(prose, asks.end(), asks.end() + _BEFORE) else None)
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
    asks = [found.end() for found in _any_of("orders.asking").finditer(before)]
    return bool(asks) and not re.search(r"[.?!]\s", before[asks[-1] :])


def leftover(question: str) -> re.Match[str] | None:
    """Return the match of a placeholder, label or markup in a question, None where none is."""
    return (
        _PLACEHOLDER.search(spoken_of(question))
        or _LABELLED.search(question)
        or _MARKUP.search(_CODE.sub(" ", question))
    )


def meta_talk(candidate: Candidate) -> Rejection | None:
    """Reject a candidate with talk around the item or leftovers of formats; None where none are.

    Words in quotation marks and code are spoken of, so a question about them passes. An answer
    may be code or a list; a question is one plain sentence.
    """
    for name, text in (
        ("question", candidate.question),
        ("question on its own", candidate.standalone),
    ):
        leftovers = _anywhere(text) or _in_question(text) or leftover(text)
        if leftovers is not None:
            return _rejection(leftovers, name)
    for name, text in (
        ("answer", candidate.answer),
        *(("history", turn.text) for turn in candidate.history),
    ):
        leftovers = _anywhere(text) or EMPTY.search(text)
        if leftovers is not None:
            return _rejection(leftovers, name)
    return None


def _anywhere(text: str) -> re.Match[str] | None:
    prose = spoken_of(text)
    return (
        _FENCE.search(text)
        or _OWN_KEYS.search(text)
        or _talk().search(text)
        or _label().search(text)
        or _ROLE_MARKS.search(prose)
        or _any_of("orders.grading", "orders.demands").search(prose)
        or overriding(prose)
    )


def _in_question(text: str) -> re.Match[str] | None:
    prose = spoken_of(text)
    return (
        _OPENS.search(text)
        or _NUMBERING.search(text)
        or _ROLE_LINE.search(prose)
        or _LEFTOVERS.search(prose)
    )


def _rejection(match: re.Match[str], name: str) -> Rejection:
    return Rejection("preamble", f"{match.group().strip()[:40]!r} in the {name}")


@cache
def _any_of(*names: str) -> re.Pattern[str]:
    """Return a pattern of all phrases of some lists, in all languages."""
    phrases = [phrase for name in names for phrase in all_entries(name)]
    return re.compile("|".join(phrases), re.IGNORECASE | re.MULTILINE)


@cache
def _talk() -> re.Pattern[str]:
    return re.compile(rf"\A\W*(?:{'|'.join(all_entries('talk.openings'))})", re.IGNORECASE)


@cache
def _label() -> re.Pattern[str]:
    """Return a pattern of what stands before a colon at the start, such as "Question 3:"."""
    labels = "|".join(all_entries("talk.labels"))
    within = "|".join(all_entries("talk.labels_within"))
    return re.compile(
        rf"\A\W*(?:(?:{labels})\s*(?:no\.?\s*)?\d{{0,3}}\s*[:\uff1a]\s|"
        rf"(?:{within})\s*\d*[:\uff1a])",
        re.IGNORECASE,
    )
