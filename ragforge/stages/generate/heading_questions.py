"""The question that a heading of an English text stands for, as a user of a manual puts it."""

import re
from typing import Final

from ragforge.deferred import pattern
from ragforge.stages.generate.sentence_questions import AskedByRule, continued_heading

ABOUT: Final = "What should I know about"
"""Begins the question of a heading that says no more than what its section is about."""
_VERBS: Final = frozenset(
    "add adjust allow analyze apply assign attach automate avoid back cancel change choose "
    "collect combine compare compile configure connect convert create customize debug declare "
    "define delete deploy detect determine diagnose disable disconnect discover download edit "
    "embed enable encrypt ensure evaluate expand expose extend fetch find fix generate get give "
    "handle hide identify ignore implement improve include increase inspect install integrate "
    "invite join keep launch let limit locate lock make manage measure merge migrate modify "
    "move obtain optimize organize override parse pass perform pin prepare prevent protect "
    "provide publish receive record reduce register reload remove rename renew reorder replace "
    "replicate require reset resize resolve restart restore restrict retrieve reuse revert "
    "revoke rotate run save scale schedule secure select send serve share show simulate skip "
    "sort specify split start stop store submit subscribe switch sync throttle track train "
    "transfer transform translate troubleshoot trust turn uninstall unlock update upgrade "
    "upload use validate verify view wait work wrap write".split()
)
_ALSO_NOUNS: Final = frozenset(
    "access build call check design document export filter import link list load log map monitor "
    "open order process query read release report request return search set sign test "
    "upload".split()
)
"""Verbs only where something that is acted on follows: "Import maps" are no order."""
_ACTED_ON: Final = pattern(
    r"\w+ (?:up |in |out |on )?(?:an?|the|your|all|any|multiple|several|from|it)\b"
)
_DOUBLING: Final = frozenset(
    "debug embed get let pin reset run set skip split stop submit transfer wrap".split()
)
"""Verbs whose last letter is doubled before "ing"."""
_IDENTIFIER: Final = pattern(
    r"--?[\w-]{1,80}|\w{1,80}_[\w.]{1,80}(?:\(\))?|[a-z]{1,40}[A-Z]\w{0,80}|[\w.]{1,80}\(\)"
)
_VERSUS: Final = pattern(r"(?P<one>.+?) (?:vs\.?|versus) (?P<other>.+)", re.IGNORECASE)
_CLAUSE: Final = pattern(
    r"(?P<word>What|How(?: (?:far|long|much|often|soon|well|\w+ly))?|Why|When|Where) "
    r"(?P<subject>(?!many\b)\w+(?: \w+){0,4}) "
    r"(?P<verb>(?P<be>is|are)(?: \w+)?|work|applies|costs|happens|includes|means|needs|takes|works)"
)
"""What a section tells, in the order of a clause: "What a return costs"."""
_OTHERS: Final = frozenset("i it our that these they this those we who you".split())
"""Stand for something that the heading does not say."""
_BACK: Final = frozenset("it its that these they this those".split())
_DOING: Final = pattern(
    r"\w+ing (?:(?:an?|the|your|my|all|multiple|with|without|for|from|in|into|on|to) \S"
    r"|(?:and|or) \w+ing\b)"
)
_LETTERS: Final = pattern(r"[A-Z0-9](?: ?(?:to|[-\u2013\u2014]) ?[A-Z0-9])?")
_WRONG: Final = pattern(
    r"(?P<what>(?:\S+ )?(?:Errors?|Failures?|Problems|Trouble)) (?P<rest>(?:when|with|while) .+)",
    re.IGNORECASE,
)
_GENERAL: Final[dict[str, str]] = {
    "about": "What is {} about?",
    "how it works": "How does {} work?",
    "introduction": "What is {} about?",
    "overview": "What is {} about?",
    "name": "What is {}?",
    "description": "What is {}?",
    "synopsis": "How do I use {}?",
    "options": "Which options does {} have?",
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
_OF_CODE: Final[dict[str, str]] = {
    "parameters": "Which parameters does {} take?",
    "arguments": "Which arguments does {} take?",
    "returns": "What does {} return?",
    "return value": "What does {} return?",
}
"""Those of headings that mean something else below a title that names no function."""
_TELL_NOTHING: Final = frozenset(
    "faq faqs recap summary conclusion notes note tip tips warning details more next see".split()
) | {
    "check it", "try it", "run it", "technical details", "see also", "next steps", "learn more",
    "frequently asked questions", "glossary", "what's new", "what's next", "references", "appendix",
    "further reading", "welcome", "added", "changed", "deprecated", "fixed", "removed",
}  # fmt: skip


def heading_question(heading: str, title: str, answer: str) -> AskedByRule | None:
    """Return the question that a heading stands for; None where it says nothing of its section.

    Args:
        heading: Plain text, no question by itself.
        title: Of the document or section around it; "" for none.
        answer: The sentence of its section that is to answer it.
    """
    within = f" ({title})" if title else ""
    low = heading.lower()
    if low.rstrip("!") in _TELL_NOTHING or _LETTERS.fullmatch(heading):
        return None
    general = _GENERAL.get(low) or (_IDENTIFIER.fullmatch(title) and _OF_CODE.get(low))
    is_name = not title.lower().startswith("how to ") and not title.endswith("?")
    is_name = is_name and title.lower().rstrip("!") not in _TELL_NOTHING
    if title and general and is_name:
        return _fact(general.format(lower_first(title)))
    heading = re.sub(r"\b([Yy])our\b", lambda y: "My" if y[1] == "Y" else "my", heading)
    asked = _done(heading) or _said_of(heading, answer)
    return asked._replace(text=f"{asked.text[:-1]}{within}?")


def points_back(heading: str) -> bool:
    """Whether a heading is understood with the title above it alone: "Who's this for?"."""
    return not _BACK.isdisjoint(heading.lower().rstrip("?").split())


def _done(heading: str) -> AskedByRule | None:
    """Return how something is done that a heading names; None where it names no such thing."""
    if heading.lower().startswith("how to "):
        return _procedure(f"How do I {heading[7:]}?")
    if done := _what_is_done(heading):
        return _procedure(f"How do I {done}?")
    if _DOING.match(heading):
        return _procedure(f"How do I go about {lower_first(heading)}?")
    return None


def _said_of(heading: str, answer: str) -> AskedByRule:
    """Return what is asked about the thing that a heading names."""
    if (clause := _CLAUSE.fullmatch(heading)) and not _OTHERS & {*heading.lower().split()}:
        return _fact(_in_order(clause))
    if re.match(r"(?:If|When) \S+ \S", heading):
        return _fact(f"What happens {lower_first(heading)}?")
    if wrong := _WRONG.fullmatch(heading):
        what = lower_first(wrong["what"])
        article = "" if what.endswith(("s", "trouble")) else "an " if what[0] in "aeiou" else "a "
        text = f"What can I do about {article}{what} {wrong['rest']}?"
        return AskedByRule(text, "medium", "troubleshooting")
    if _IDENTIFIER.fullmatch(heading):
        return _fact(f"What does {heading} do?")
    if versus := _VERSUS.fullmatch(heading):
        one, other = lower_first(versus["one"]), versus["other"]
        return _fact(f"What is the difference between {one} and {other}?")
    about = lower_first(heading)
    return _fact(continued_heading(about, answer) or f"{ABOUT} {about}?")


def lower_first(heading: str) -> str:
    """Return a heading for the middle of a sentence; names and titles in capitals stay."""
    first, *others = heading.split()
    if first != first.capitalize() or any(
        word[0].isupper() and not word.isupper() for word in others
    ):
        return heading
    return heading[0].lower() + heading[1:]


def _in_order(clause: re.Match[str]) -> str:
    """Return the question of a clause."""
    word, verb, subject = clause["word"], clause["verb"], lower_first(clause["subject"])
    if be := clause["be"]:
        return f"{word} {be} {subject}{verb.removeprefix(be)}?"
    if verb == "work":
        return f"{word} do {subject} work?"
    return f"{word} does {subject} {'apply' if verb == 'applies' else verb[:-1]}?"


def _fact(text: str) -> AskedByRule:
    return AskedByRule(text, "medium", "fact")


def _procedure(text: str) -> AskedByRule:
    return AskedByRule(text, "medium", "procedure")


def _what_is_done(heading: str) -> str:
    """Return an order, or what somebody is doing, as "add types"; "" for other headings."""
    first, _, rest = heading.partition(" ")
    verb = first.lower()
    if not rest or first != first.capitalize():
        return ""
    if verb in _GERUNDS and not rest.startswith("of "):
        joined, second, *others = f"{rest} ".split(" ", 2)
        if joined not in ("and", "or"):
            return f"{_GERUNDS[verb]} {rest}"
        also = _GERUNDS.get(second)
        return f"{_GERUNDS[verb]} {joined} {also} {''.join(others)}".strip() if also else ""
    is_order = verb in _VERBS or (verb in _ALSO_NOUNS and _ACTED_ON.match(heading))
    return f"{verb} {rest}" if is_order else ""


def _gerund(verb: str) -> str:
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    return f"{stem}{verb[-1] if verb in _DOUBLING else ''}ing"


_GERUNDS: Final = {
    _gerund(verb): verb
    for verb in sorted(_VERBS - {"edit", "work"} | {"import", "export", "monitor", "set"})
}
"""What somebody is doing, to the verb; those of others are often nouns: "Opening hours"."""
