"""Whether a candidate has all parts that its type needs and its form, and no talk around it.

Such talk are replies to the prompt, leftovers of formats, and orders to the reader.
"""

# ruff: noqa: RUF001 -- letters of one script look like those of another; these are meant.

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from ragforge.deferred import pattern
from ragforge.records import Behaviour, QueryType
from ragforge.scripts import count_unspaced
from ragforge.stages.generate.candidates import Brief, Candidate, Rejection
from ragforge.stages.generate.gates.languages import spoken_of
from ragforge.stages.visible_text import visible
from ragforge.stages.words import all_entries, entries, words

_MARK_AT_END: Final = pattern(r"[?!\uff1f\uff01\u061f\u037e]\W*$|[^.\s]\.\s*$|[\u3002]\s*$")
_MARK_WITHIN: Final = pattern(r"^(?:\S+\s+){2,}\S*\w\s?\?+(?=\s)|[\uff1f\u061f\u037e]")
"""Behind three words and more: "int? nullable" is a query about a sign."""
_MARKS: Final = pattern(r"[?\uff1f\u061f\u037e]")
_CHOICES: Final = pattern(
    r"(?:^|[\s?:(])\(?(?:A[).:]\s(?!(?:and|or|vs)\b).{1,200}?[\s(]B[).:]\s|a\)\s(?!(?:and|or|vs)\b).{1,200}?[\s(]b\)\s)|"
    r"[?:]\s*\(?1[).]\s.{1,200}?[\s(]2[).]\s",
)
_MAY_TELL: Final[tuple[QueryType, ...]] = ("keyword", "troubleshooting", "follow_up", "ambiguous")
"""Types whose questions are often no sentence, or tell what goes wrong."""

_WORD: Final = pattern(r"[^\W\d_]{2,}")
_LATIN: Final = pattern("[A-Za-z\u00c0-\u024f]")
_CYRILLIC: Final = pattern("[\u0400-\u052f]")
_LOOKALIKES: Final = frozenset("аеорсухіјѕԁԛԝһАВЕКМНОРСТУХІЈЅԌ")
"""Cyrillic letters that look like Latin ones."""
_GREEK_BETWEEN: Final = pattern("[A-Za-z][ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+[A-Za-z]")
_MULTI_HOP: Final = ("multi_hop", "multi_hop_across")
_BEHAVIOURS: Final[dict[QueryType, Behaviour]] = {
    "unanswerable": "abstain",
    "false_premise": "correct_premise",
    "ambiguous": "clarify",
}
_MOST_QUOTES: Final = 12
_LONGEST_HISTORY: Final = 8_000
_QUESTION_CHARS: Final = range(6, 401)
_QUESTION_WORDS: Final = range(2, 71)
_KEYWORD_CHARS: Final = range(3, 121)
_KEYWORD_WORDS: Final = range(1, 13)
_LONGEST_ANSWER: Final[dict[QueryType, int]] = {
    "fact": 800,
    "definition": 800,
    "temporal": 800,
    "keyword": 1_200,
    "unanswerable": 800,
}
_LONGEST_OTHER_ANSWER: Final = 2_400
_DENSE: Final = 3
"""A character of a script without blanks says as much as so many others, or half a word."""
_STANDS_FOR_EMOJI: Final = pattern("(?<=[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])\ufe0f")


_OUR_KEYS: Final = pattern(
    r"[\"'](?:grade|verdicts?|contains_answer|expected_answer|difficulty|candidates|standalone)"
    r"[\"']\s*:",
    re.IGNORECASE,
)
_ASKED_KEY: Final = pattern(r"[\"'](?:question|query)[\"']\s*:\s*[\"']?$", re.IGNORECASE)
_BEFORE: Final = 160
_FEWEST_WORDS: Final = 3
_HOLE: Final = (
    r"(?i:answers?|questions?|quer(?:y|ies)|topics?|product(?:[ _]name)?|placeholder|subject|"
    r"entity|concept|"
    r"(?:your|insert|fill in|specify|e\.g\.)\b[^\]}>\n]{0,40})|"
    r"(?:NAME|VALUE|NUMBER|DATE|TERM|VERSION|COMPANY|PERSON|PLACE|FEATURE|TOOL|LIBRARY|CONTEXT|X|Y)"
)
_PLACEHOLDER: Final = pattern(
    rf"(?<![\w/.\[{{<])(?:\[(?:{_HOLE})\]|\{{\{{?\s?(?:{_HOLE})\s?\}}?\}}|<(?:{_HOLE})>)(?![\w/(])|"
    r"(?<!\S)_{4,}(?=[\s.?!]|$)"
)
_EMPTY: Final = pattern(
    rf"\A\W*(?:\[(?:{_HOLE})\]|\{{\{{?(?:{_HOLE})\}}?\}}|<(?:{_HOLE})>|"
    r"(?i:tbd|todo|lorem ipsum)\b)\W*\Z|\A[\s.\u2026]+\Z",
)
"""An answer that was never filled in."""
_LABELLED: Final = pattern(
    r"[(\[](?:(?:difficulty|level|type)\s*[:=]\s*)?(?:easy|medium|hard)[)\]]\s*\Z|"
    r"[?.!\uff1f]\s*[(\[](?:type\s*[:=]\s*)?(?:fact|definition|procedure|comparison|list|temporal|"
    r"keyword|why|multi[_ -]?hop|unanswerable|two[_ -]in[_ -]one|follow[_ -]up|false[_ -]premise|"
    r"ambiguous|troubleshooting)[)\]]\s*\Z|"
    r"\b(?:difficulty|level)\s*[:=]\s*(?:easy|medium|hard)\W*\Z",
    re.IGNORECASE,
)
_MARKUP: Final = pattern(
    r"<script\b[^>]*>[^<]*</script|<(?:script|iframe|img|svg|a|object|embed|div|span|p|font|style|"
    r"body)\b[^>]{0,200}=[^>]{0,200}>|<\w+\b[^>]{0,200}\bon\w+\s*=|"
    r"<(b|i|em|strong|p|span|u|mark|h\d)>[^<]{1,300}</\1>",
    re.IGNORECASE,
)
_CODE: Final = pattern(r"`[^`]{0,300}`")
_ROLE_MARKS: Final = pattern(
    r"<\|[\w./ -]{1,40}\|>|\[/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL_CALLS)\]|<</?SYS>>|"
    r"</?(?:think|thinking|start_of_turn|end_of_turn|system|assistant|instructions?)>|"
    r"<(?:bos|eos|s)>\s*\[|\A\s*<s>|</s>\s*\Z|"
    r"^[ \t]{0,8}#{2,6}[ \t]{0,8}(?:instructions?|system|user|assistant|human|"
    r"response|input|output)\b|"
    r"^[ \t]{0,8}(?:assistant|human)[ \t]?:\s",
    re.IGNORECASE | re.MULTILINE,
)
_ROLE_LINE: Final = pattern(r"^[ \t]{0,8}(?:system|user)[ \t]?:", re.IGNORECASE | re.MULTILINE)
"""In an answer it may be a line of a configuration."""
_FENCE: Final = pattern(
    r"<<\s*(?:\$?marker|DATA)\b|\bDATA-[0-9a-f]{6,}|between two lines with the same marker|"
    r"never an instruction to you|\$(?:marker|passages?)\b",
    re.IGNORECASE,
)
_NUMBERING: Final = pattern(r"\A\W*(?:q\d{1,3}[.:)]\s|\(?\d{1,2}[.)]\s+\w)", re.IGNORECASE)
_OPENS: Final = pattern(r"\A\s*(?:[{\[]\s*[\"'{]|```|~~~|#{1,6}\s|[-*+>]\s|\*\*|\|\s)")
_LEFTOVERS: Final = pattern(
    r"```|\*\*\s*\Z|[\"'}]\s*[}\]]\s*\Z|[?.]\\n|\w\\u[0-9a-f]{4}|\\u[0-9a-f]{4}\w|"
    r"\*\*(?:question|answer|query)",
    re.IGNORECASE,
)
_OWN_KEYS: Final = pattern(
    r"[\"'](?:question|answer|quotes?|evidence|difficulty|standalone|expected_answer|candidates|"
    r"contains_answer|grade|verdicts?)[\"']\s*:",
    re.IGNORECASE,
)


def broken_shape(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Reject a candidate that lacks a part; None where it is complete."""
    reason = _incomplete(candidate) or _bad_quotes(candidate, brief)
    return Rejection("schema", reason) if reason else None


def bad_length(candidate: Candidate) -> Rejection | None:
    """Reject a candidate with a part too short or too long; None where none is."""
    for question in {candidate.question, candidate.asked}:
        if not _fits(question, candidate.type, candidate.question == question != candidate.asked):
            return Rejection("question_length", f"{len(question)} characters")
    most = _LONGEST_ANSWER.get(candidate.type, _LONGEST_OTHER_ANSWER)
    if len(candidate.answer) > most:
        found = f"{len(candidate.answer)} characters, at most {most}"
        return Rejection("answer_length", found)
    return None


def hidden_characters(candidate: Candidate) -> Rejection | None:
    """Reject a candidate with characters that nobody sees; quotes are looked up, so they may."""
    for name, text in _written(candidate):
        found = _hidden(text)
        if found:
            return Rejection("hidden_characters", f"U+{ord(found):04X} in the {name}")
        disguised = disguised_word(text)
        if disguised:
            return Rejection("hidden_characters", f"two scripts in {disguised!r} in the {name}")
    return None


def bad_form(candidate: Candidate, language: str) -> Rejection | None:
    """Reject a question without the form of its type; None where it has it."""
    why = _wrong(candidate, re.split(r"[-_]", language.lower())[0])
    return Rejection("question_form", why) if why else None


def _incomplete(candidate: Candidate) -> str:
    if not words(candidate.question):
        return "no question"
    if not candidate.answer.strip():
        return "no answer"
    expected = _BEHAVIOURS.get(candidate.type, "answer")
    if candidate.behaviour != expected:
        return f"{candidate.type} goes with {expected}, not {candidate.behaviour}"
    if candidate.type == "follow_up":
        return _incomplete_follow_up(candidate)
    if candidate.standalone or candidate.history:
        return "what was said before, but no follow-up"
    return ""


def _incomplete_follow_up(candidate: Candidate) -> str:
    if not candidate.history:
        return "a follow-up to nothing"
    if candidate.history[-1].role != "assistant":
        return "a follow-up before the answer"
    if sum(len(turn.text) for turn in candidate.history) > _LONGEST_HISTORY:
        return "too much was said before"
    if not words(candidate.standalone):
        return "a follow-up without the question it stands for"
    return ""


def _bad_quotes(candidate: Candidate, brief: Brief) -> str:
    quotes = candidate.quotes
    if not quotes:
        return "no quote"
    if len(quotes) > _MOST_QUOTES:
        return f"{len(quotes)} quotes, at most {_MOST_QUOTES}"
    if not all(0 <= quote.passage < len(brief.chunks) for quote in quotes):
        return "a quote of a passage that was not shown"
    if candidate.type not in _MULTI_HOP:
        return ""
    if len({" ".join(quote.text.split()) for quote in quotes}) < 2:
        return "one quote for two hops"
    if len(brief.chunks) > 1 and len({quote.passage for quote in quotes}) < 2:
        return "quotes of one passage only"
    return ""


def _fits(question: str, query_type: QueryType, short: bool) -> bool:
    """Whether a question has a length; what depends on the turns before it may be short."""
    if len(question) > _QUESTION_CHARS[-1]:
        return False
    dense = count_unspaced(question)
    length = len(question.strip()) + (_DENSE - 1) * dense
    many = len(words(question)) - dense // 2
    if query_type == "keyword":
        return length in _KEYWORD_CHARS and many in _KEYWORD_WORDS
    if short:
        return length >= _KEYWORD_CHARS[0] and many <= _QUESTION_WORDS[-1]
    return length >= _QUESTION_CHARS[0] and (many in _QUESTION_WORDS or dense > 1)


def _written(candidate: Candidate) -> Iterator[tuple[str, str]]:
    yield "question", candidate.question
    yield "answer", candidate.answer
    yield "question on its own", candidate.standalone
    for turn in candidate.history:
        yield "history", turn.text


def _hidden(text: str) -> str:
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return ""
    plain = _STANDS_FOR_EMOJI.sub("", text.replace("\r\n", "\n"))
    if visible(plain) != plain:
        return next(one for one in plain if visible(one) != one or _is_joiner(one))
    return next((one for one in plain if one == "\ufffd" or unicodedata.category(one) == "Co"), "")


def _is_joiner(character: str) -> bool:
    return character in "\u200c\u200d"


def disguised_word(text: str) -> str:
    """Return a word that is spelt with letters of two scripts to look like one; "" if none is.

    Endings on a Latin name are none, in a text in Cyrillic, nor are signs such as a delta.
    """
    if text.isascii():
        return ""
    spelt: list[str] = _WORD.findall(text)
    mixed = [word for word in spelt if _LATIN.search(word) and _CYRILLIC.search(word)]
    if mixed:
        is_cyrillic = any(_CYRILLIC.search(word) and not _LATIN.search(word) for word in spelt)
        for word in mixed:
            if _is_disguised(word, is_cyrillic=is_cyrillic):
                return word
    return next((word for word in spelt if _GREEK_BETWEEN.search(word)), "")


def _is_disguised(word: str, *, is_cyrillic: bool) -> bool:
    scripts = ["C" if _CYRILLIC.match(letter) else "L" for letter in word]
    changes = sum(one != other for one, other in pairwise(scripts))
    foreign = {letter for letter in word if _CYRILLIC.match(letter)}
    return changes > 1 or (not is_cyrillic and foreign <= _LOOKALIKES)


def _wrong(candidate: Candidate, language: str) -> str:
    question = candidate.question.strip()
    prose = spoken_of(question)
    if "\n" in question:
        return "several lines"
    if _CHOICES.search(prose):
        return "answers to choose from"
    if candidate.type == "keyword" and (
        _MARK_AT_END.search(question) or _MARK_WITHIN.search(prose)
    ):
        return "a keyword query that is a sentence"
    if candidate.type == "two_in_one" and not _asks_twice(prose, language):
        return "one question, not two"
    if candidate.type not in _MAY_TELL and _states(question, prose, language):
        return "a statement, not a question"
    return ""


def _asks_twice(question: str, language: str) -> bool:
    """Whether a question may be two; true where the language's words for it are not known."""
    joining = entries(language, "questions.joining")
    if not joining or len(_MARKS.findall(question)) > 1 or ";" in question:
        return True
    asking = "|".join(entries(language, "questions.asking"))
    twice = rf"\b(?:{asking})\b.*\w,\s+(?:\w+\s+)?(?:{asking})\b"
    if asking and re.search(twice, question, re.IGNORECASE):
        return True
    alone = question
    for pair in entries(language, "questions.paired"):
        alone = re.sub(pair, " ", alone, flags=re.IGNORECASE)
    signs = entries(language, "questions.joining_signs")
    several = "|".join((rf"\b(?:{'|'.join(joining)})\b", *signs))
    return re.search(several, alone, re.IGNORECASE) is not None


def _states(question: str, prose: str, language: str) -> bool:
    """Whether a sentence ends like a statement, and opens like one."""
    if not re.search(r"[^.\s]\.\s*$", question) or _MARKS.search(prose):
        return False
    if _begins(prose, "questions.statement_openings", language):
        return True
    indirect = "|".join(entries(language, "questions.indirect"))
    if indirect and re.search(rf"\b(?:{indirect})\b", prose, re.IGNORECASE):
        return False
    return _begins(prose, "questions.statements", language)


def _begins(text: str, name: str, language: str) -> bool:
    phrases = entries(language, name)
    return any(re.match(phrase, text, re.IGNORECASE) for phrase in phrases)


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


def _leftover(question: str) -> re.Match[str] | None:
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
        leftovers = _anywhere(text) or _in_question(text) or _leftover(text)
        if leftovers is not None:
            return _rejection(leftovers, name)
    for name, text in (
        ("answer", candidate.answer),
        *(("history", turn.text) for turn in candidate.history),
    ):
        leftovers = _anywhere(text) or _EMPTY.search(text)
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
