"""The question that a heading of an English text stands for, as a user of a manual puts it."""

import re
from typing import Final, NamedTuple

from ragforge.deferred import pattern
from ragforge.records import Difficulty, QueryType

_VERBS: Final = frozenset(
    "add adjust allow analyze apply assign attach automate avoid back cancel change choose "
    "collect combine compare compile configure connect convert create customize debug declare "
    "define delete deploy detect determine diagnose disable disconnect discover download edit "
    "embed enable encrypt ensure evaluate expand expose extend fetch find fix generate get give "
    "handle hide identify ignore implement improve include increase inspect install integrate "
    "invite join keep launch let limit locate lock make manage measure merge migrate modify "
    "move obtain open optimize organize override parse pass perform pin prepare prevent protect "
    "provide publish receive record reduce register reload remove rename renew reorder replace "
    "replicate require reset resize resolve restart restore restrict retrieve reuse revert "
    "revoke rotate run save scale schedule secure select send serve share show simulate skip "
    "sort specify split start stop store submit subscribe switch sync throttle track train "
    "transfer transform translate troubleshoot trust turn uninstall unlock update upgrade "
    "upload use validate verify view wait work wrap write".split()
)
_ALSO_NOUNS: Final = frozenset(
    "access build call check design document export filter import link list load log map monitor "
    "order process query read release report request return search set sign test upload".split()
)
"""Verbs only where something that is acted on follows: "Import maps" are no order."""
_ACTED_ON: Final = pattern(
    r"\w+ (?:up |in |out |on )?(?:an?|the|your|all|any|multiple|several|from|it)\b"
)
_DOUBLED: Final = pattern(r"(?:[^aeiou]|^)[aeiou][bdgklmnprt]\Z")
_ONE_SYLLABLE: Final = 5
_IDENTIFIER: Final = pattern(
    r"--?[\w-]{1,80}|\w{1,80}_[\w.]{1,80}(?:\(\))?|[a-z]{1,40}[A-Z]\w{0,80}|[\w.]{1,80}\(\)"
)
_VERSUS: Final = pattern(r"(?P<one>.+?) (?:vs\.?|versus) (?P<other>.+)", re.IGNORECASE)
_GENERAL: Final[dict[str, str]] = {
    "about": "What is {} about?",
    "introduction": "What is {} about?",
    "overview": "What is {} about?",
    "name": "What is {}?",
    "description": "What is {}?",
    "synopsis": "How do I use {}?",
    "options": "Which options does {} have?",
    "parameters": "Which parameters does {} take?",
    "arguments": "Which arguments does {} take?",
    "returns": "What does {} return?",
    "return value": "What does {} return?",
    "motivation": "What is the motivation for {}?",
    "rationale": "What is the motivation for {}?",
    "installation": "How do I install {}?",
    "setup": "How do I set up {}?",
    "usage": "How do I use {}?",
    "basic usage": "How do I use {}?",
    "quickstart": "How do I get started with {}?",
    "quick start": "How do I get started with {}?",
    "getting started": "How do I get started with {}?",
    "first steps": "How do I get started with {}?",
    "limitations": "What are the limitations of {}?",
    "known issues": "What are known issues of {}?",
    "requirements": "What is required for {}?",
    "prerequisites": "What is required for {}?",
    "configuration": "How is {} configured?",
    "troubleshooting": "What can I do about problems with {}?",
    "example": "What is an example of {}?",
    "examples": "What is an example of {}?",
}
"""Questions of headings that say nothing without the title above them."""
_TELL_NOTHING: Final = frozenset(
    "faq faqs recap summary conclusion notes note tip tips warning details more next see".split()
) | {
    "check it", "try it", "run it", "technical details", "see also", "next steps", "learn more",
    "frequently asked questions", "what's next", "references", "appendix", "further reading",
}  # fmt: skip


class HeadingQuestion(NamedTuple):
    """A question, and of what kind it is."""

    text: str
    difficulty: Difficulty
    type: QueryType


def heading_question(heading: str, title: str) -> HeadingQuestion | None:
    """Return the question that a heading stands for; None where it says nothing of its section.

    Args:
        heading: Plain text, no question by itself.
        title: Of the document or section around it; "" for none.
    """
    within = f" ({title})" if title else ""
    low = heading.lower()
    if low in _TELL_NOTHING:
        return None
    if title and low in _GENERAL:
        return _fact(_GENERAL[low].format(lower_first(title)))
    if low.startswith("how to "):
        return _procedure(f"How do I {heading[7:]}{within}?")
    if done := _what_is_done(heading):
        return _procedure(f"How do I {done}{within}?")
    if re.match(r"\w+ing (?!of\b)\S+ \S", heading):
        return _procedure(f"How do I go about {lower_first(heading)}{within}?")
    if _IDENTIFIER.fullmatch(heading):
        return _fact(f"What does {heading} do{within}?")
    if versus := _VERSUS.fullmatch(heading):
        one, other = lower_first(versus["one"]), versus["other"]
        return _fact(f"What is the difference between {one} and {other}{within}?")
    return _fact(f"What should I know about {lower_first(heading)}{within}?")


def lower_first(heading: str) -> str:
    """Return a heading for the middle of a sentence; names and titles in capitals stay."""
    first, *others = heading.split()
    if first != first.capitalize() or any(
        word[0].isupper() and not word.isupper() for word in others
    ):
        return heading
    return heading[0].lower() + heading[1:]


def _fact(text: str) -> HeadingQuestion:
    return HeadingQuestion(text, "medium", "fact")


def _procedure(text: str) -> HeadingQuestion:
    return HeadingQuestion(text, "medium", "procedure")


def _what_is_done(heading: str) -> str:
    """Return an order, or what somebody is doing, as "add types"; "" for other headings."""
    first, _, rest = heading.partition(" ")
    verb = first.lower()
    if not rest or first != first.capitalize():
        return ""
    if verb in _GERUNDS and not rest.startswith("of "):
        return f"{_GERUNDS[verb]} {rest}"
    is_order = verb in _VERBS or (verb in _ALSO_NOUNS and _ACTED_ON.match(heading))
    return f"{verb} {rest}" if is_order else ""


def _gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return f"{verb[:-1]}ing"
    is_doubled = len(verb) < _ONE_SYLLABLE and _DOUBLED.search(verb)
    return f"{verb}{verb[-1] if is_doubled else ''}ing"


_GERUNDS: Final = {_gerund(verb): verb for verb in sorted(_VERBS | {"import", "export", "set"})}
"""What somebody is doing, to the verb; those of other verbs are often nouns, as "testing"."""
