"""What each type of query means, each difficulty and each who asks: as a writer is told."""

import hashlib
from collections.abc import Mapping
from typing import Final, Literal

from ragforge.deferred import dataclass
from ragforge.records import Behaviour, Difficulty, QueryType

QUERIES: Final = "generate_queries"
FOLLOW_UPS: Final = "generate_follow_ups"
UNANSWERABLE: Final = "generate_unanswerable"
PROMPTS: Final = (QUERIES, FOLLOW_UPS, UNANSWERABLE)
"""The prompts that a writer needs, by name."""

Missing = Literal["detail", "entity", "time", "condition", "reason", "quantity"]
"""What keeps a near miss from being answered."""
GAPS: Final[tuple[Missing, ...]] = ("detail", "entity", "time", "condition", "reason", "quantity")

_USUAL_WORDS = 11
"""The middle of the length of a question about a fact."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a type of query is.

    Args:
        meaning: In words, for the writer: what is asked, quoted and answered.
        fewest, most: Words that such a query has.
        behaviour: What a good system does with it.
        passages: How many passages must be put together.
        prompt: That asks for it.
    """

    meaning: str
    fewest: int = 6
    most: int = 16
    behaviour: Behaviour = "answer"
    passages: int = 1
    prompt: str = QUERIES


KINDS: Final[Mapping[QueryType, Kind]] = {
    "fact": Kind(
        "One particular thing: a value, a name, a place, a default, whether something is so."
    ),
    "definition": Kind(
        "What a term, name or option means or is for, in the sense it has there.", 3, 12
    ),
    "procedure": Kind(
        "How to get something done. The question names the goal, not the steps; the answer gives "
        "the steps in their order, with the commands or settings they need.",
        6,
        18,
    ),
    "comparison": Kind(
        "How two things differ, or which of them suits a need. The question names both, the quotes "
        "speak of both, and the answer says what holds for each.",
        8,
        20,
    ),
    "why": Kind(
        "The reason, cause or purpose of something. The passage must give it in words; that two "
        "things stand beside each other is no reason.",
    ),
    "list": Kind(
        "All things of a sort, or how many there are. The passage must give them completely; the "
        "answer names every one of them, and the quotes hold every one.",
    ),
    "troubleshooting": Kind(
        "Something goes wrong: the question tells what the user sees (a symptom, a message, an "
        "unwanted result), not the cause; the answer gives the cause and what to do about it.",
        8,
        26,
    ),
    "temporal": Kind(
        "When something was, is or will be so: since or until which version or date, what changed "
        "with it, or what holds at a given time. The passage must say the version or date.",
    ),
    "keyword": Kind(
        "Search words as typed into a search box: two to six of them, no sentence, no question "
        "word, no question mark, small letters but for names. They leave no doubt about what is "
        "looked for; the answer tells it.",
        2,
        6,
    ),
    "two_in_one": Kind(
        "One sentence that asks two different things about one subject, joined by a word like "
        '"and". There is a quote for each, and the answer answers both in that order.',
        12,
        28,
    ),
    "multi_hop": Kind(
        "Two passages of one document are needed: one gives a name, value or condition with which "
        "the other is found or understood. Neither alone is enough to answer. The question does "
        "not name what links them. There is a quote of each passage, in the order they are needed. "
        "If nothing links the passages, the list is empty.",
        10,
        28,
        passages=2,
    ),
    "multi_hop_across": Kind(
        "Two passages of two documents are needed: one gives a name, value or condition with which "
        "the other is found or understood, or both speak of one thing and are held together. "
        "Neither alone is enough to answer. The question does not name what links them. There is a "
        "quote of each passage, in the order they are needed. If nothing links the passages, the "
        "list is empty.",
        10,
        28,
        passages=2,
    ),
    "false_premise": Kind(
        "The question takes for granted, in passing and as a user who is mistaken would, something "
        "that the passage plainly contradicts, and asks on from there. The quotes are the words "
        "that contradict it; to leave it unmentioned is not to contradict it. The answer says that "
        "it is not so and what is so instead.",
        8,
        20,
        behaviour="correct_premise",
    ),
    "ambiguous": Kind(
        "A short question that can be read in two ways, both of which the passage tells apart and "
        "answers differently: two things of one name, two modes, two versions, two groups. The "
        "question does not say which is meant. There is a quote for each reading; the answer names "
        "the readings and answers each.",
        4,
        10,
        behaviour="clarify",
    ),
    "follow_up": Kind(
        "The next question in a conversation, understood only after what was said before.",
        3,
        10,
        prompt=FOLLOW_UPS,
    ),
    "unanswerable": Kind(
        "A near miss: about the subject of the passage, plausible, and not told by it.",
        behaviour="abstain",
        prompt=UNANSWERABLE,
    ),
}

DIFFICULTIES: Final[Mapping[Difficulty, str]] = {
    "easy": "One statement of the passage is the answer.",
    "medium": "Two or more statements that stand apart must be combined; each has its quote.",
    "hard": "No statement is the answer: it follows from what is said, by applying a rule to a "
    "case, ruling out, ordering or reckoning, and follows without doubt. Each step has its quote.",
}
_NEAR_MISS: Final[Mapping[Difficulty, str]] = {
    "easy": "Anybody who reads the passage sees that it does not tell.",
    "medium": "Only close reading shows that the passage does not tell.",
    "hard": "Something in the passage looks like the answer and is not.",
}
_PERSONAS: Final[Mapping[str, str]] = {
    "newcomer": "somebody new to the subject: everyday words, knows the goal but not its terms",
    "practitioner": "somebody who works with it: the usual terms, a task at hand, short of time",
    "expert": "somebody who knows it well: precise terms, asks for limits, exceptions, details",
}

_PLACES = (
    "what the passage says first",
    "the middle of the passage",
    "what the passage says last",
    "the conditions, exceptions and limits that the passage names",
    "the names, figures and settings that the passage gives",
    "what somebody who only skims the passage would miss",
)
"""Writers keep to the first sentences where nothing sends them on."""


def degree_of(difficulty: Difficulty, query_type: QueryType) -> str:
    """Return the meaning of a difficulty for a type of query, as the prompt has it."""
    return (_NEAR_MISS if query_type == "unanswerable" else DIFFICULTIES)[difficulty]


def persona_of(persona: str) -> str:
    """Return who asks, in words; a user's own words stand as they are."""
    return _PERSONAS.get(persona.strip().casefold(), persona)


def length_of(query_type: QueryType, usual_words: int) -> str:
    """Return the wanted length of a query in words of the prompt.

    Args:
        query_type: Types differ in length.
        usual_words: Of a question about a fact; 0 for what people usually need.
    """
    kind = KINDS[query_type]
    share = (usual_words or _USUAL_WORDS) / _USUAL_WORDS
    fewest = max(1, round(kind.fewest * share))
    return f"{fewest} to {max(fewest + 1, round(kind.most * share))} words"


def focus_of(query_type: QueryType, slot_id: str, count: int) -> str:
    """Return where in the passages to look, so that two slots about one passage ask differently.

    Args:
        query_type: Of the slot.
        slot_id: Decides, by hashing.
        count: How many queries are asked for.
    """
    digest = hashlib.sha256(slot_id.encode()).digest()
    kind = KINDS[query_type]
    if query_type == "unanswerable":
        first = digest[0] % len(GAPS)
        gaps = [GAPS[(first + step) % len(GAPS)] for step in range(min(count, len(GAPS)))]
        return f"gaps of the kinds {', '.join(gaps)}, in that order, where the passage has them"
    if kind.passages > 1:
        return "what only the passages together tell"
    return f"{_PLACES[digest[0] % len(_PLACES)]}, if it carries such a query; else anywhere"
