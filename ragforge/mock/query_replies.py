"""Replies to the prompts that ask for queries about passages.

Each passage gives questions of its own: they hold words of it, in sentences that no passage has.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from ragforge.mock.draws import Draws

_FACT_SENTENCE = re.compile(r"(?<=[.!?\u3002])\s+|\n+")

_MOST_FACTS = 8
_LONGEST = 300

_PROPOSALS: Final = 3
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t].*$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{4,}")
_TOKEN = re.compile(r"[^\W_]+")
_LONGEST_QUOTE = 200
_TELLS = 12
"""Characters from which on two words are no mere label."""
_LONGEST_ANSWER = 8
"""Words of a quote in an answer: so few that its language stays that of the question."""
_LONGEST_WORD, _LONGEST_UNSPACED = 30, 4
"""Of a script without blanks a match is a whole clause."""
_PLAIN: Final = ("easy", "medium", "hard")
_GAPS: Final = ("detail", "entity", "time", "condition", "reason", "quantity")
_FRAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "keyword": (
        "{0} and {1} {2} overview",
        "compare {0} and {1} {2}",
        "{0} with {1} or {2} explained",
    ),
    "two_in_one": (
        "Which rules decide on {0}, and who takes care of {1} or {2}?",
        "Where do people use {0}, and when should they prefer {1} with {2}?",
        "How do experts describe {0}, and what do they advise on {1} or {2}?",
    ),
    "unanswerable": (
        "Which apothecary brews {0} alongside {1}?",
        "Which monarch knighted {0} before {1} abdicated?",
        "Whose bakery delivers {0} wherever {1} anchors?",
    ),
    "false_premise": (
        "Why does {0} never depend on {1} or {2}?",
        "Which reasons are there that {0} never meets {1} and {2}?",
        "Since when do people never combine {0} with {1} and {2}?",
    ),
    "follow_up": (
        "And how does it go together with {1} or {2}?",
        "Does that change once {1} meets {2}?",
        "What would they say of {1} beside {2}?",
    ),
    "": (
        "Which facts join {0} and {1} with {2}?",
        "How would somebody explain {0} who knows only {1} and {2}?",
        "When does it matter whether {0} agrees with {1} or {2}?",
        "What should a user check about {0} before relying on {1} and {2}?",
        "Under which conditions do {0} and {1} depend on {2}?",
        "Who profits most if {0} takes precedence over {1} and {2}?",
    ),
}
_STANDALONE: Final = (
    "How does {0} go together with {1} or {2}?",
    "Does {0} behave otherwise once {1} meets {2}?",
    "What would people say of {0} beside {1} and {2}?",
)
NEVER: Final = " never "
"""Stands in questions that take something wrong for granted."""


def drawn_facts(expected: str) -> dict[str, Any]:
    """Return the sentences of an expected answer as facts: the first half of them vital."""
    distinct = {
        " ".join(part.split()).casefold().rstrip("."): part
        for part in _parts(expected)
        if any(character.isalnum() for character in part)
    }
    statements = list(distinct.values())[:_MOST_FACTS] or ["It has an answer"]
    vital = (len(statements) + 1) // 2
    return {
        "facts": [
            {"statement": text, "importance": "vital" if number < vital else "okay"}
            for number, text in enumerate(statements)
        ]
    }


def fact_statuses(
    facts: Iterable[object], answer: str, passages: Iterable[object]
) -> dict[str, Any]:
    """Return a status for each fact by the words that the answer shares with it.

    The first part of the answer that shares no word with any fact is a claim.

    Args:
        facts: Objects with id and fact; others are passed over.
        answer: What is graded.
        passages: Texts that a claim may be copied from.
    """
    parts = [part for part in _parts(answer) if any(map(str.isalnum, part))]
    known = [item for item in facts if isinstance(item, Mapping) and "id" in item]
    texts = [str(item.get("fact", "")) for item in known]
    told = [part for part in parts if any(_shared(part, text) for text in texts)]
    claims = [part for part in parts if part not in told][:1]
    return {
        "facts": [
            {"id": item["id"], **_status(text, parts)}
            for item, text in zip(known, texts, strict=True)
        ],
        "claims": [
            _claim(part, [text for text in passages if isinstance(text, str)]) for part in claims
        ],
    }


def _status(fact: str, parts: list[str]) -> dict[str, str]:
    wanted = set(_WORD.findall(fact.lower()))
    best = max(parts, key=lambda part: _shared(part, fact), default="")
    shared = _shared(best, fact)
    same = any(part == fact for part in parts)
    if not shared and not same:
        return {"quote": "", "status": "missing"}
    whole = same or shared == len(wanted)
    return {"quote": fact if same else best, "status": "supported" if whole else "partial"}


def _claim(part: str, passages: list[str]) -> dict[str, Any]:
    held = any(part in text for text in passages)
    return {"claim": part, "quote": part if held else "", "supported": held}


def _shared(part: str, fact: str) -> int:
    return len(set(_WORD.findall(part.lower())) & set(_WORD.findall(fact.lower())))


def _parts(text: str) -> list[str]:
    return [
        shortened(part.strip(), _LONGEST) for part in _FACT_SENTENCE.split(text) if part.strip()
    ]


def shortened(text: str, longest: int) -> str:
    """Return the start of a text up to the end of a word; a longer first word stays whole."""
    found = re.match(rf".{{1,{longest}}}(?!\S)", text, re.DOTALL) or re.match(r"\S*", text)
    assert found is not None
    return found[0].strip()


@dataclass(frozen=True, slots=True)
class _Source:
    """What a proposal is made of: the quotes, and three words of them or of their passages."""

    quotes: list[dict[str, Any]]
    words: list[str]

    @property
    def told(self) -> str:
        """An answer out of words of the quotes, without what only their format needs."""
        told = [_telling(quote["quote"])[:_LONGEST_ANSWER] for quote in self.quotes]
        return f"The answer is this: {'; '.join(' '.join(words) for words in told) or 'nothing'}."


def written_queries(data: Mapping[str, Any], draws: Draws) -> dict[str, Any]:
    """Return candidates with a quote of each passage shown.

    Args:
        data: The passages, and type and difficulty of what is wanted.
        draws: Advanced.
    """
    wanted = str(data.get("type", ""))
    frames = _FRAMES.get(wanted, _FRAMES[""])
    return {
        "candidates": [
            _proposal(source, frame.format(*source.words), data, draws)
            for source, frame in _sources(data, frames, draws)
        ]
    }


def written_follow_ups(data: Mapping[str, Any], draws: Draws) -> dict[str, Any]:
    """Return follow-ups with what was said before; see `written_queries`."""
    follow_ups = []
    for source, frame in _sources(data, _STANDALONE, draws):
        short = _FRAMES["follow_up"][_STANDALONE.index(frame)]
        proposal = _proposal(source, short.format(*source.words), data, draws)
        before = {
            "first_question": f"What is there to know about {source.words[0]}?",
            "first_answer": f"There are several things to know about {source.words[0]}.",
            "standalone": frame.format(*source.words),
        }
        follow_ups.append({"quotes": proposal.pop("quotes"), **before, **proposal})
    return {"follow_ups": follow_ups}


def written_near_misses(data: Mapping[str, Any], draws: Draws) -> dict[str, Any]:
    """Return questions that no passage answers; see `written_queries`."""
    near_misses = []
    for source, frame in _sources(data, _FRAMES["unanswerable"], draws):
        # Of all its long words the corpus has one, so that no passage is graded as an answer.
        question = frame.format(source.words[0], _unheard_of(draws))
        proposal = _proposal(source, question, data, draws)
        proposal["answer"] = f"The documentation does not say that of {source.words[0]}."
        missing = {"missing": _GAPS[draws.below(len(_GAPS))]}
        near_misses.append({"quotes": proposal.pop("quotes"), **missing, **proposal})
    return {"near_misses": near_misses}


def asked_about(question: str) -> list[str]:
    """Return the words that a question of the mock's own was made of; [] for other questions."""
    frames = [*chain.from_iterable(_FRAMES.values()), *_STANDALONE]
    for frame in sorted(frames, key=len, reverse=True):
        pattern = [re.escape(part) for part in re.split(r"\{\d\}", frame)]
        match = re.fullmatch(r"(\S+?)".join(pattern), question)
        if match is not None:
            return list(match.groups())
    return []


def _proposal(
    source: _Source, question: str, data: Mapping[str, Any], draws: Draws
) -> dict[str, Any]:
    wanted = data.get("difficulty")
    difficulty = wanted if wanted in _PLAIN else _PLAIN[draws.below(len(_PLAIN))]
    return {
        "quotes": source.quotes,
        "question": question,
        "answer": source.told,
        "difficulty": difficulty,
    }


def _sources(
    data: Mapping[str, Any], frames: tuple[str, ...], draws: Draws
) -> Iterable[tuple[_Source, str]]:
    """Yield the source of each proposal, with the sentence to put it in."""
    passages = [item for item in data.get("passages", []) if isinstance(item, Mapping)]
    first = draws.below(len(frames))
    for number in range(_PROPOSALS):
        quotes: list[dict[str, Any]] = []
        for item in passages:
            others = [quote["quote"] for quote in quotes]
            quote = _quote(str(item.get("text", "")), others, draws)
            quotes.append({"passage": item.get("passage", 1), "quote": quote})
        yield (
            _Source(quotes, _words(quotes, passages, draws)),
            frames[(first + number) % len(frames)],
        )


def _words(
    quotes: list[dict[str, Any]], passages: list[Mapping[str, Any]], draws: Draws
) -> list[str]:
    """Return three words to ask about: of each quote in turn, then of the passages."""
    own = [quote["quote"] for quote in quotes]
    whole = " ".join(str(item.get("text", "")) for item in passages)
    sources = [*map(_telling, own), *map(_tokens, own), _telling(whole)]
    chosen: list[str] = []
    for candidates in [*sources[: len(own)] * 3, *sources[len(own) :] * 3]:
        known = {word.lower() for word in chosen}
        left = [word for word in dict.fromkeys(candidates) if word.lower() not in known]
        if left:
            chosen.append(left[draws.below(len(left))])
    return [*chosen, "things", "people", "places"][:3]


def _quote(text: str, others: list[str], draws: Draws) -> str:
    """Return a sentence or line of a text as it stands there, rather one that tells something.

    It is none of the others where the text has more than these.
    """
    body = _HEADING.sub("", text)
    body_or_all = body if _TOKEN.search(body) else text
    parts = [part.strip() for part in _SENTENCE.split(body_or_all) if part.strip()]
    for is_better in (
        lambda part: part not in others,
        lambda part: _TOKEN.search(part) is not None,
        lambda part: len(_TOKEN.findall(part)) > 1 and len(part) >= _TELLS,
        lambda part: len(set(_WORD.findall(part))) > 2,
    ):
        parts = list(filter(is_better, parts)) or parts
    return shortened(parts[draws.below(len(parts))], _LONGEST_QUOTE) if parts else ""


def _unheard_of(draws: Draws) -> str:
    """Return a name that no corpus has."""
    return "Q" + "".join("aeiou"[draws.below(5)] + "kvxzqj"[draws.below(6)] for _ in range(4))


def _telling(text: str) -> list[str]:
    """Return the longer words of a text, or whatever words it has."""
    return [_cut(word) for word in _WORD.findall(text)] or _tokens(text)


def _tokens(text: str) -> list[str]:
    return [_cut(word) for word in _TOKEN.findall(text)]


def _cut(word: str) -> str:
    return word if word.isascii() and len(word) <= _LONGEST_WORD else word[:_LONGEST_UNSPACED]
