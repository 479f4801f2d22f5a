"""Replies to the prompts about queries: writing them of passages, checking and re-checking them.

Each passage gives questions of its own: they hold words of it, in sentences that no passage has.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from ragforge.deferred import dataclass
from ragforge.mock.script import Draws

_PROPOSALS: Final = 3
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
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
_WORD_OR_NUMBER = re.compile(r"[^\W\d_]{4,}|\d+(?:[.,:]\d+)*")
_ALIKE: Final = 0.6
"""Share of common words from which on two sentences say something of the same."""
_ASKED: Final = 0.75
"""Share of the words of a question from which on a sentence is about it."""
_LEAST_ASKED: Final = 2
_LONGEST_SENTENCE: Final = 400
_NO_VERDICT: Final = {"quote": "", "verdict": "none", "answer": ""}
_ANY_WORD = re.compile(r"\w+")
_KNOWN = 5
"""One question in so many is answered without any text."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What a proposal is made of: the quotes, and three words of them or of their passages."""

    quotes: list[dict[str, Any]]
    words: list[str]

    @property
    def answer(self) -> str:
        """An answer out of words of the quotes, without what only their format needs."""
        words = [_telling(quote["quote"])[:_LONGEST_ANSWER] for quote in self.quotes]
        return f"The answer is this: {'; '.join(map(' '.join, words)) or 'nothing'}."


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


def _proposal(
    source: _Source, question: str, data: Mapping[str, Any], draws: Draws
) -> dict[str, Any]:
    wanted = data.get("difficulty")
    difficulty = wanted if wanted in _PLAIN else _PLAIN[draws.below(len(_PLAIN))]
    return {
        "quotes": source.quotes,
        "question": question,
        "answer": source.answer,
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
    parts = [part.strip() for part in _SENTENCE_END.split(body_or_all) if part.strip()]
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


def asked_about(question: str) -> list[str]:
    """Return the words that a question of the mock's own was made of; [] for other questions."""
    frames = [*chain.from_iterable(_FRAMES.values()), *_STANDALONE]
    for frame in sorted(frames, key=len, reverse=True):
        pattern = [re.escape(part) for part in re.split(r"\{\d\}", frame)]
        match = re.fullmatch(r"(\S+?)".join(pattern), question)
        if match is not None:
            return list(match.groups())
    return []


def checked_questions(questions: Iterable[object], draws: Draws) -> dict[str, Any]:
    """Return for each question that it is clear, can be taken in two ways, and is rarely known.

    Args:
        questions: Objects with id and question; others are passed over.
        draws: Advanced.
    """
    return {
        "questions": [
            {
                "id": item["id"],
                "question": item["question"],
                "readings": [f"the use of {item['question']}", f"the name of {item['question']}"],
                "missing": "",
                "clear": "yes",
                "answer": "unknown" if draws.below(_KNOWN) else f"Known is: {item['question']}",
            }
            for item in _objects(questions, "id", "question")
        ]
    }


def answered_from_quotes(question: str, quotes: Iterable[object]) -> dict[str, Any]:
    """Return the quotes as the answer, none where they lack a word that is asked about.

    A question of the mock's own that says "never" is one that takes something wrong for granted.
    """
    texts = [str(item["quote"]) for item in _objects(quotes, "quote")]
    telling = [text for text in texts if any(map(str.isalnum, text))]
    shown = " ".join(texts).lower()
    asked = asked_about(question)
    if not telling or not all(word.lower() in shown for word in asked):
        return {"quote": "", "premise": "ok", "answerable": "no", "answer": ""}
    return {
        "quote": telling[0],
        "premise": "wrong" if asked and NEVER in question else "ok",
        "answerable": "yes",
        "answer": f"It says: {' '.join(texts)}",
    }


def compared_answers(pairs: Iterable[object]) -> dict[str, Any]:
    """Return that two answers agree where they share a word; see `checked_questions`."""
    verdicts = []
    for item in _objects(pairs, "id", "question", "one answer", "other answer"):
        one, other = str(item["one answer"]), str(item["other answer"])
        agrees = one == other or _share_a_word(one, other)
        verdicts.append(
            {
                "id": item["id"],
                "question": item["question"],
                "difference": "" if agrees else "They share no word.",
                "verdict": "agrees" if agrees else "differs",
            }
        )
    return {"pairs": verdicts}


def _share_a_word(one: str, other: str) -> bool:
    """Whether they do; of a script without blanks a word may stand inside a clause."""
    words, others = set(_ANY_WORD.findall(one)), set(_ANY_WORD.findall(other))
    return bool(words & others) or any(not word.isascii() and word in other for word in words)


def no_answer_found() -> dict[str, Any]:
    """Return that no passage gives the answer."""
    return {"id": "", "quote": "", "found": "no"}


def _objects(items: Iterable[object], *names: str) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping) and set(names) <= item.keys()]


def rechecked(
    data: Mapping[str, Any], quotes: Iterable[object], others: Iterable[object]
) -> dict[str, Any]:
    """Return how an answer stands by the sentence that is most like what proved it, or is asked.

    It is the same where that sentence has all telling words of the expected answer that the old
    quotes had, numbers above all; another one where it has not.

    Args:
        data: The question, the expected answer and the passages.
        quotes: What proved it before.
        others: Quotes that prove something else.
    """
    old = [str(quote) for quote in quotes]
    left_out = {_folded(str(other)) for other in others}
    texts = [
        str(item["text"])
        for item in data.get("passages", [])
        if isinstance(item, Mapping) and "text" in item
    ]
    standing = [one for one in old if any(_folded(one) in _folded(text) for text in texts)]
    asked = _SoughtAnswer(data.get("question", ""), data.get("expected answer", ""), old, standing)
    if standing:
        return asked.verdict(standing[0])
    sentences = [one for one in _sentences_or_lines(texts) if _folded(one) not in left_out]
    best = max(sentences, key=asked.likeness, default="")
    if best and asked.likeness(best) >= _ALIKE:
        return asked.verdict(best)
    best = max(sentences, key=asked.nearness, default="")
    if best and asked.nearness(best) >= _ASKED:
        verdict = asked.verdict(best, is_alike=False)
        # A question of the mock's own is about three words, and has no answer but its quote.
        return dict(_NO_VERDICT) if verdict["verdict"] == "changed" and asked.is_own else verdict
    return dict(_NO_VERDICT)


@dataclass(frozen=True, slots=True)
class _SoughtAnswer:
    """What is looked for."""

    question: str
    expected: str
    quotes: list[str]
    standing: list[str]

    @property
    def is_own(self) -> bool:
        """Whether the mock made up the question."""
        return bool(asked_about(self.question))

    def likeness(self, sentence: str) -> float:
        """Return the largest share of words that an old quote and a sentence have in common."""
        held = _word_set(sentence)
        known = [words for words in map(_word_set, self.quotes) if words]
        return max((len(one & held) / max(len(one), len(held)) for one in known), default=0.0)

    def nearness(self, sentence: str) -> float:
        """Return the share of the words of the question that a sentence has."""
        words = _word_set(" ".join(asked_about(self.question)) or self.question)
        return len(words & _word_set(sentence)) / len(words) if len(words) >= _LEAST_ASKED else 0.0

    def verdict(self, sentence: str, *, is_alike: bool = True) -> dict[str, Any]:
        """Return the verdict on the answer by a sentence."""
        quote = shortened(sentence, _LONGEST_SENTENCE)
        known = _word_set(" ".join(self.quotes))
        # A step of an answer may have no word of it: then its own figures must still be there.
        of_quotes = _word_set(self.expected) & known or {
            word for word in known if word[0].isdigit()
        }
        telling = of_quotes if is_alike else of_quotes or _word_set(self.expected)
        figures = {word for word in telling if word[0].isdigit()}
        if (figures or telling) <= _word_set(" ".join([sentence, *self.standing])):
            return {"quote": quote, "verdict": "same", "answer": ""}
        return {"quote": quote, "verdict": "changed", "answer": f"It says: {quote}"}


def _sentences_or_lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (part for part in _SENTENCE_END.split(text) if part.strip())


def _word_set(text: str) -> set[str]:
    return set(_WORD_OR_NUMBER.findall(text.lower()))


def _folded(text: str) -> str:
    return " ".join(text.split())


def shortened(text: str, longest: int) -> str:
    """Return the start of a text up to the end of a word; a longer first word stays whole."""
    found = re.match(rf".{{1,{longest}}}(?!\S)", text, re.DOTALL) or re.match(r"\S*", text)
    assert found is not None
    return found[0].strip()


def _telling(text: str) -> list[str]:
    """Return the longer words of a text, or whatever words it has."""
    return [_cut(word) for word in _WORD.findall(text)] or _tokens(text)


def _tokens(text: str) -> list[str]:
    return [_cut(word) for word in _TOKEN.findall(text)]


def _cut(word: str) -> str:
    return word if word.isascii() and len(word) <= _LONGEST_WORD else word[:_LONGEST_UNSPACED]
