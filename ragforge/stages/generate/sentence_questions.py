"""The questions that a sentence of an English text answers by its form.

"To disable timeouts, pass None" says how something is done; others say when, where or why.
A form counts only where what is asked stands before what answers it, in words of the sentence, so
that the question is certain. All other sentences ask nothing.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ragforge.deferred import pattern
from ragforge.records import Difficulty, QueryType
from ragforge.stages.words import content_stems, words

LINK: Final = pattern(r"!?\[([^\]]{0,300})\](?:\([^)]{0,2000}\)|\[[^\]]{0,300}\])")
"""A link with a text."""
EMPHASIS: Final = pattern(r"[`*]|\b_+\B|\B_+\b")
"""Marks of Markdown around words."""
_DEFINITION: Final = pattern(
    r"(?P<article>(?:A|An|The)\s+)?(?P<term>[^\s,.;:()|#>-][^,.;:()|#>\n]{1,60}?)\s+"
    r"(?P<verb>is|are|means|refers to)\s+(?P<rest>(?:a|an|the|any|our|one)\s.{12,}[.!])\Z"
)
_STATEMENT: Final = (
    r"(?:(?:a|an|the|its?|they|no|all|any|each|every|both|one)\b"
    r"|\S+ (?:is|are|was|were|has|have|had|will|may|can)\b)"
)
"""Begins what is so, not what somebody should do."""
_TO_DO: Final = (
    r"(?:[^,;:()]{2,60} (?:must|should|needs? to|ha(?:s|ve) to) \w|you (?:can|may) \w"
    rf"|(?!{_STATEMENT}|we\b|(?:then )?(?:see|refer|read|check|consult|visit|take a|have a)\b)\w)"
)
"""Begins an order, or who must do what; where to read on is none."""
_GOALS: Final = (
    pattern(rf"(?:In order to|To) (?P<goal>[^,;:()]{{3,80}}), {_TO_DO}"),
    pattern(r"(?:In order to|To) (?P<goal>[^,;:()]{3,80}?) you (?:need|can|have|should) \w"),
    pattern(rf"If you (?:want|need|wish|would like) to (?P<goal>[^,;:()]{{3,80}}), {_TO_DO}"),
    pattern(r"You can (?:also )?(?P<goal>[^,;:()]{3,80}?) (?:by \w+ing|using|via) \w"),
    pattern(r"Use (?!(?:of|by|it|them|cases?)\b)[^,;:()]{2,80}? to (?P<goal>[^,;:()]{3,80})[.!]\Z"),
)
"""What is to be done stands first, and how behind it."""
_NO_GOALS: Final = frozenset("a an be do my the".split())
"""Begin a state or a place, as in "To the left, click Save"."""
_CONDITION: Final = pattern(
    r"(?P<word>If|When) (?P<clause>(?!you\b|\w+ing\b)[^,;:()]{3,80}), "
    rf"(?:then )?{_STATEMENT}"
)
"""What happens stands behind it."""
_BY_DEFAULT: Final = "By default, "
_BE: Final = frozenset("is are was were".split())
_MODALS: Final = frozenset("can may must should will".split())
_STATES: Final = {
    "accepts": "accept", "contains": "contain", "covers": "cover", "describes": "describe",
    "expects": "expect", "holds": "hold", "includes": "include", "indicates": "indicate",
    "lists": "list", "offers": "offer", "provides": "provide", "raises": "raise",
    "represents": "represent", "requires": "require", "returns": "return", "shows": "show",
    "specifies": "specify", "stores": "store", "supports": "support", "uses": "use",
}  # fmt: skip
"""What is so of a subject, and the word for it in a question."""
_ACTS: Final = frozenset(
    "adds applies checks configures connects controls converts copies creates defines deletes "
    "determines disables downloads enables ensures establishes exports generates handles imports "
    "installs limits loads manages maps merges parses prevents prints processes produces reads "
    "rejects removes replaces runs sends sets sorts starts stops transfers transforms updates "
    "uploads validates verifies wraps writes".split()
)
"""What a subject does."""
_ALSO_PLURALS: Final = frozenset(
    "checks controls copies covers downloads exports imports limits lists loads offers prints "
    "processes raises reads returns runs sets shows sorts starts stops stores supports transfers "
    "updates uploads".split()
)
"""Nouns as well, unless a word follows that begins what is acted on."""
_BEGINS_OBJECT: Final = frozenset("a an the all any each every both its one two three no".split())
_NOT_ACTED_ON: Final = frozenset("and at by for from in of on or to with".split())
_PLACE: Final = pattern(
    r"located (?:in|at|on|under|inside|beside)\b"
    r"|(?:stored|saved|installed) (?:in|at|on|under|inside|beside) (?:the|your|[~./\\])"
)
_CONDITIONS: Final = frozenset("when whenever if after before until".split())
_DATE: Final = pattern(
    r"(?:in|on) (?:(?:early|late|[A-Z][a-z]{2,8}|\d{1,2}(?:st|nd|rd|th)?),? ){0,2}"
    r"(?:1[5-9]|20)\d\d(?=\Z|[,;]| (?:and|as|at|by|for|in|on|to|under|when|with)\b)"
)
_WITHIN: Final = pattern(r"within (?:\w+ ){1,2}(?:second|minute|hour|day|week|month|year)s?\b")
_NAMED: Final = pattern(
    r"An? (?:[\w-]*[^s\W],? ){0,5}[\w-]*[^s\W](?:\.\Z| (?:for|of|that|to|which|with)\b)"
)
"""A thing without a verb before what is told of it."""
_MEANS: Final = pattern(r"(?:using|via)\b|by \w+ing (?:(?:a|an|the|one|your)\b|[^a-z])")
_USED: Final = pattern(r"to (?!(?:a|an|the|it|them|\w+ing)\b)\w|for (?!(?:it|them)\b)\w")
_ABOUT_OTHERS: Final = frozenset(
    "asked considered described informed known looked named regarded seen told viewed".split()
)
"""What stands behind is no time and no way, as in "named after"."""
_NO_VALUE: Final = frozenset("available higher if lower not that what where".split())
_SIZED: Final = frozenset("default maximum minimum recommended required".split())
_PARTICIPLES: Final = frozenset(
    "built chosen found given held kept known lost made paid read run sent set shown taken thrown "
    "written".split()
)
_NOT_FIRST: Final = frozenset(
    "after all alongside also although and another any as asked at because before behind "
    "beneath beside between beyond both but by during each even every everyone everything few "
    "for from half having here how however if in inside instead just like many most my near "
    "nearby never no nobody none not note nothing of often on once one only or other others "
    "otherwise part please several since so some somebody someone something sometimes such "
    "then there therefore thus to two today together tomorrow under unlike until using usually "
    "via what when where which while who why with within without yes".split()
)
"""Begins no name of what is told of, or one of something said elsewhere."""
_POINTING: Final = frozenset(
    "above below either first following former he her here him his it its last latter neither "
    "next our previous same second she such that their them there these they this those us we "
    "you your yourself".split()
)
"""What a question that stands alone does not say."""
_JOINING: Final = frozenset(
    "because how if not than what when where whether which who whose why".split()
)
_ARTICLES: Final = frozenset("the a an".split())
_NO_ADVERBS: Final = frozenset("assembly anomaly family reply supply".split())
_VERB_OF_CLAUSE: Final = pattern(r" (?:\w+[^s\W]s|is|are|have|do|can|may|must|should)\b")
_SAYS_LITTLE: Final = frozenset(
    "advantage answer aim behavior behaviour best better choice configuration difference exception "
    "goal good idea main number option output point problem purpose reason rest result setting "
    "solution thing value way".split()
)
_PART_OF_TEXT: Final = pattern(
    r"(?:appendix|chapter|clause|example|figure|line|page|paragraph|section|step|table) "
    r"(?:\w|[\d.ivx]{1,6})",
    re.IGNORECASE,
)
_POINTS_AWAY: Final = frozenset("this these those above below following".split())
"""Of a sentence that is not understood without another."""
_LONGEST_TERM: Final = 6
_LONGEST_SUBJECT: Final = 8
_LONGEST_HEADED: Final = 3
_LONGEST_QUESTION: Final = 16
_FEWEST_STEMS: Final = 2
"""What a subject does by which the question must tell it from others."""


class AskedByRule(NamedTuple):
    """A question, and of what kind it is."""

    text: str
    difficulty: Difficulty
    type: QueryType


def sentence_question(sentence: str, text: str) -> AskedByRule | None:
    """Return the question that a sentence answers by its form; None where it has none of them.

    Args:
        sentence: Of an English text, with its markup.
        text: The whole text, which tells names from words with a capital at the start.
    """
    said = EMPHASIS.sub("", LINK.sub(r"\1", " ".join(sentence.split())))
    is_gone = "  " in said  # Of code such as `*` no word is left.
    if is_gone or not said.endswith((".", "!")) or _POINTS_AWAY & {*words(said)}:
        return None
    if definition := _defined(said, text):
        return definition
    told = said[:-1].removeprefix(_BY_DEFAULT)
    found = _goal(said) or _consequence(said)
    found = found or _told_of_subject(told.split(), text, by_default=len(told) < len(said) - 1)
    return found if found and _stands_alone(found.text) else None


def continued_heading(heading: str, answer: str) -> str:
    """Return what a heading is asked about that a sentence without a subject goes on from; "" else.

    Args:
        heading: As it stands in the middle of a sentence.
        answer: Such as "Provides a fixture for tests." or "A library for HTTP."
    """
    first, *rest = [word.lower() for word in answer.split()]
    if first in _STATES and first not in _ALSO_PLURALS:
        return f"What does {heading} {_STATES[first]}?"
    if first in _ACTS and (first not in _ALSO_PLURALS or {*rest[:1]} & _BEGINS_OBJECT):
        return f"What does {heading} do?"
    named = heading.split()
    is_term = len(named) <= _LONGEST_HEADED and _is_subject(named) and not heading.endswith("s")
    if is_term and _NAMED.match(answer):
        return f"What is {heading}?"
    return ""


def _defined(said: str, text: str) -> AskedByRule | None:
    match = _DEFINITION.match(said)
    if match is None:
        return None
    term = match["term"].strip("\"'` ").split()
    if term and _is_adverb(term[-1]):
        term.pop()
    if not 0 < len(term) <= _LONGEST_TERM or not _is_subject(term):
        return None
    subject = _within_sentence([*(match["article"] or "").split(), *term], text)
    if match["verb"] in ("means", "refers to"):
        return AskedByRule(f"What does {subject} mean?", "easy", "definition")
    return AskedByRule(f"What {match['verb']} {subject}?", "easy", "definition")


def _goal(said: str) -> AskedByRule | None:
    """Return how the goal is reached that a sentence names."""
    for each in _GOALS:
        if found := each.match(said):
            goal = re.sub(r"\byour\b", "my", found["goal"])
            verb, *acted_on = goal.split()
            is_verb = verb.isalpha() and not verb.endswith(("ing", "ly")) and verb not in _NOT_FIRST
            is_whole = acted_on and acted_on[-1] not in ("and", "only", "or")
            if is_whole and is_verb and verb not in _NO_GOALS:
                return AskedByRule(f"How do I {goal}?", "medium", "procedure")
    return None


def _consequence(said: str) -> AskedByRule | None:
    """Return what happens under the condition that a sentence names."""
    found = _CONDITION.match(said)
    if found is None or not _VERB_OF_CLAUSE.search(found["clause"]):
        return None
    if found["word"] == "When" and {"was", "were", "had"} & {*found["clause"].split()}:
        return None
    return AskedByRule(f"What happens {found['word'].lower()} {found['clause']}?", "medium", "fact")


def _told_of_subject(said: Sequence[str], text: str, *, by_default: bool) -> AskedByRule | None:
    """Return what is told of the subject of a sentence."""
    verbs = _BE | _MODALS | _STATES.keys() | _ACTS
    at = next((place for place, word in enumerate(said) if place and word in verbs), 0)
    named = said[: at - 1] if at and _is_adverb(said[at - 1]) else said[:at]
    if not named or not _is_subject(named):
        return None
    subject, verb, rest = _within_sentence(named, text), said[at], said[at + 1 :]
    if verb not in _BE | _MODALS:
        return _done(subject, verb, rest, by_default=by_default)
    if by_default:
        return None
    if "because" in rest:
        return _reason(f"{verb} {subject}", rest[: rest.index("because")])
    rest = [word for word in rest if not _is_adverb(word)]
    if verb in ("is", "are") and named[0] == "The" and _SIZED & set(named):
        sized = {*named[1:]} - _SIZED - _SAYS_LITTLE
        is_value = rest and not _is_participle(rest[0]) and rest[0] not in _NO_VALUE
        return (
            AskedByRule(f"What {verb} {subject}?", "easy", "fact") if sized and is_value else None
        )
    if verb in _BE:
        return _done_to(f"{verb} {subject}", rest)
    return _done_to(f"{verb} {subject} be", rest[1:]) if rest[:1] == ["be"] else None


def _reason(asked: str, predicate: Sequence[str]) -> AskedByRule | None:
    """Return why something is so; of what is not so the reason may be another one."""
    while predicate and _is_adverb(predicate[-1]):
        predicate = predicate[:-1]
    if not predicate or "not" in predicate or any("," in word for word in predicate):
        return None
    return AskedByRule(f"Why {asked} {' '.join(predicate)}?", "medium", "why")


def _done(subject: str, verb: str, rest: Sequence[str], *, by_default: bool) -> AskedByRule | None:
    """Return what the subject does."""
    if not rest or rest[0] in _BE | _MODALS | _NOT_ACTED_ON:
        return None
    if verb in _ALSO_PLURALS and rest[0] not in _BEGINS_OBJECT:
        return None
    if len(content_stems(subject)) + by_default < _FEWEST_STEMS or subject.count(" -") > 1:
        return None
    usually = " by default" if by_default else ""
    return AskedByRule(f"What does {subject} {_STATES.get(verb, 'do')}{usually}?", "easy", "fact")


def _done_to(asked: str, rest: Sequence[str]) -> AskedByRule | None:
    """Return when, where, how or for what something is done to the subject.

    Args:
        asked: The verb and its subject in the order of a question, such as "is the token".
        rest: What stands behind the verb.
    """
    done = rest[:2] if rest[:1] == ["not"] else rest[:1]
    if not done or not _is_participle(done[-1]) or done[-1] in _ABOUT_OTHERS:
        return None
    how, behind = " ".join(done), rest[len(done) :]
    told, next_word = " ".join(behind), behind[0] if behind else ""
    if how == "used" and _USED.match(told):
        return AskedByRule(f"What {asked} used for?", "medium", "fact")
    if (how, next_word) == ("limited", "to"):
        return AskedByRule(f"What {asked} limited to?", "easy", "fact")
    if next_word in _CONDITIONS or _DATE.match(told):
        return AskedByRule(f"When {asked} {how}?", "medium", "fact")
    if _PLACE.match(f"{how} {told}"):
        return AskedByRule(f"Where {asked} {how}?", "easy", "fact")
    if _WITHIN.match(told) and len(done) == 1:
        return AskedByRule(f"Within what time {asked} {how}?", "medium", "fact")
    is_made_so = asked.endswith(" be") and told.startswith(("as a ", "as an "))
    if _MEANS.match(told) or is_made_so:
        return AskedByRule(f"How {asked} {how}?", "medium", "procedure")
    return None


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or re.fullmatch(r"[a-z]{2,}ed", word) is not None


def _is_adverb(word: str) -> bool:
    is_formed = word.endswith("ly") and word.lower() not in _NO_ADVERBS
    return is_formed or word in ("also", "always", "then")


def _is_subject(said: Sequence[str]) -> bool:
    """Whether words name one thing, and point at nothing said elsewhere."""
    low = [word.lower() for word in said]
    return (
        len(said) <= _LONGEST_SUBJECT
        and low[0] not in _NOT_FIRST
        and not _is_adverb(low[0])
        and not (low[0].endswith(("ing", "s")) and {*low[1:2]} & _ARTICLES)
        and not (low[0].endswith("ed") and len(low) == 1)
        and not set(low) & (_POINTING | _JOINING)
        and not any(word.endswith((",", ";", ":", ".")) or "(" in word for word in said)
        and not _PART_OF_TEXT.fullmatch(" ".join(said))
        and bool(content_stems(" ".join(word for word in low if word not in _SAYS_LITTLE)))
    )


def _within_sentence(subject: Sequence[str], text: str) -> str:
    """Return a subject as it stands in the middle of a sentence; names keep their capitals."""
    first, *others = subject
    low = first.lower()
    is_title = first.istitle() and low in text  # Most are not, and need no pattern of their own.
    is_title = is_title and not (others and others[0].istitle())
    if low in _ARTICLES or (is_title and re.search(rf"\b{re.escape(low)}\b", text)):
        first = low
    return " ".join((first, *others))


def _stands_alone(question: str) -> bool:
    said = question[:-1].lower().split()
    return (
        len(said) <= _LONGEST_QUESTION
        and not _POINTING & set(said)
        and question.count('"') % 2 == 0
        and not set("()[]{}<>|\n") & set(question)
    )
