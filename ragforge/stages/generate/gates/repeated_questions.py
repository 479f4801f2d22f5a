"""Questions that are asked already, the same or nearly, found without comparing each with each.

Two questions of which each has a telling word that the other lacks ask for two things. So one of a
pair that asks for the same has all telling words of the other, the rarest too: only those are
compared, and none is missed. MinHash would find all questions of one template ("What is the default
of X in Y?") near each other, and compare them all.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.retrieval.tokens import tokenize
from ragforge.scripts import has_syllabic
from ragforge.stages.words import all_entries, function_words, stem, words

_WORD: Final = pattern(r"(?<![\w.])[^\W\d_]{6,}(?![\w.]?\w)")
"""Shorter words are too near each other: form and from, http and https."""

_VOWELS: Final = frozenset("aeiouyäöüéèáíóú")
_NEARLY: Final = 0.8
"""Jaccard similarity of the words of two questions from which on they may be one."""
_SHARP: Final = pattern(r"(?<=\w)[#\u266f](?!\w)")
_PLUSES: Final = pattern(r"(?<=\w)\+\+")
_BLANKS: Final = pattern(r"\s+")
_MOST_TITLED: Final = 2
_SAYS_SO: Final = pattern(r"\w[_./\\:@=()<>]\w|\w[A-Z]")
_FEWEST_ALIKE: Final = 4
_POSSESSIVE: Final = pattern(r"(?<=[a-z])['\u2019]s?(?!\w)", re.IGNORECASE)


class Spellings:
    """The long words that were seen, by what is left of them without one letter."""

    def __init__(self) -> None:
        """Start without any."""
        self._seen: set[str] = set()
        self._without: dict[str, str] = {}

    def add(self, question: str) -> None:
        """Take the words of a question."""
        for word in set(_words(question)) - self._seen:
            self._seen.add(word)
            for key in _keys(word):
                self._without.setdefault(key, word)

    def respelt(self, question: str) -> str:
        """Return a question with each unseen word that is a seen one but for a slip as that one.

        A slip is a vowel or one of two equal letters left out or put in, or two letters turned
        round, but not at the ends, where words are inflected. Any other letter makes another
        word too often: contact and contract.
        """
        return _WORD.sub(lambda found: self._meant(found.group()), question)

    def _meant(self, written: str) -> str:
        word = written.casefold()
        if word in self._seen:
            return written
        for key in _keys(word):
            seen = self._without.get(key)
            if seen is not None and _is_slip(word, seen):
                return seen
        return written


def _words(question: str) -> Iterator[str]:
    return (found.group().casefold() for found in _WORD.finditer(question))


def _keys(word: str) -> Iterator[str]:
    yield word
    yield from (word[:at] + word[at + 1 :] for at in range(1, len(word) - 1))


def _is_slip(word: str, other: str) -> bool:
    if len(word) == len(other):
        apart = [at for at in range(len(word)) if word[at] != other[at]]
        return len(apart) == 2 and word[apart[0]] == other[apart[1]] and word[-1] == other[-1]
    short, long = sorted((word, other), key=len)
    at = next(place for place in range(len(long)) if short[place : place + 1] != long[place])
    more = long[at]
    return 0 < at < len(long) - 1 and (more in _VOWELS or more == long[at - 1])


@dataclass(frozen=True, slots=True)
class Clash:
    """A question that is asked already.

    Args:
        query_id: Of the one that was first.
        question: That one.
        similarity: Jaccard similarity of their words; 1 where they are the same.
        exact: Whether they differ in case, blanks and punctuation only.
    """

    query_id: str
    question: str
    similarity: float
    exact: bool


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and the parts that decide whether another is the same.

    Args:
        query_id: Of the question.
        question: As it stands.
        tokens: Its words; of scripts without blanks characters and pairs of them.
        core: The stems of those that tell what is asked for.
        fixed: Numbers, negations and such words, which both have to have.
        names: Tokens of names and identifiers, which the other must not lack.
    """

    query_id: str
    question: str
    tokens: frozenset[str]
    core: frozenset[str]
    fixed: frozenset[str]
    names: frozenset[str]


class QuestionsAsked:
    """The questions that are asked already, whatever became of them."""

    def __init__(self, questions: Iterable[tuple[str, str]] = ()) -> None:
        """Take questions, each with its query id; retired ones too, or they would come again."""
        self._asked: list[_Question] = []
        self._exact: dict[str, int] = {}
        self._holding: dict[str, list[int]] = {}
        self._by_rarest: dict[str, list[int]] = {}
        self._spellings = Spellings()
        for query_id, question in questions:
            self.add(query_id, question)

    def __len__(self) -> int:
        """Return how many different questions are taken."""
        return len(self._asked)

    def add(self, query_id: str, question: str) -> None:
        """Take a question; one that is taken already stays under its first id."""
        normal, at = normal_question(question), len(self._asked)
        if normal in self._exact:
            return
        asked = _read(query_id, question)
        self._exact[normal] = at
        self._by_rarest.setdefault(self._rarest(asked.core), []).append(at)
        for stemmed in asked.core:
            self._holding.setdefault(stemmed, []).append(at)
        self._asked.append(asked)
        self._spellings.add(question)

    def clash(self, question: str) -> Clash | None:
        """Return the question that is the same or nearest, None where none is near.

        Two questions whose words differ in a number, a name, a negation, or each in a word that
        tells what it asks for, are two, however much else they share: "in 0.27" and "in 0.28",
        "enable" and "disable". So are two of which one asks for something narrower: the words
        that tell what is asked for have to be as similar as all words.
        """
        same = self._exact.get(normal_question(question))
        if same is not None:
            return Clash(self._asked[same].query_id, self._asked[same].question, 1.0, True)
        asked = _read("", self._spellings.respelt(question))
        likely = {
            *self._holding.get(self._rarest(asked.core), ()),
            *(at for key in (*asked.core, "") for at in self._by_rarest.get(key, ())),
        }
        near = [
            (-_likeness(asked, self._asked[at]), at)
            for at in likely
            if _one_thing(asked, self._asked[at])
        ]
        similarity, at = min(near, default=(0.0, 0))
        if -similarity < _NEARLY:
            return None
        return Clash(self._asked[at].query_id, self._asked[at].question, -similarity, False)

    def _rarest(self, core: frozenset[str]) -> str:
        return min(core, key=lambda word: (len(self._holding.get(word, ())), word), default="")


def normal_question(question: str) -> str:
    """Return a question in small letters without punctuation, for exact comparison."""
    return " ".join(words(_spelt(question)))


def _spelt(question: str) -> str:
    """Return a question with the signs of C++ and C# as words."""
    return _SHARP.sub(" sharp ", _PLUSES.sub(" plus plus ", question))


def _read(query_id: str, question: str) -> _Question:
    question = _POSSESSIVE.sub("", question)
    tokens = frozenset(tokenize(_spelt(question)))
    telling = {token for token in tokens - _plain() if len(token) == 1 or not has_syllabic(token)}
    return _Question(
        query_id,
        question,
        tokens,
        core=frozenset(map(stem, telling)) - _interchangeable(),
        fixed=frozenset(filter(_decides, tokens)),
        names=_names(question, tokens) - _plain(),
    )


def _one_thing(first: _Question, second: _Question) -> bool:
    """Whether what two questions do not share leaves it open that they ask for the same."""
    return (
        (first.core <= second.core or second.core <= first.core)
        and (first.core == second.core or _jaccard(first.core, second.core) >= _NEARLY)
        and first.fixed == second.fixed
        and first.names <= second.tokens
        and second.names <= first.tokens
    )


def _likeness(first: _Question, second: _Question) -> float:
    """Return how alike two questions are: 1 where they differ in harmless words only."""
    alike = len(first.core) >= _FEWEST_ALIKE and first.core == second.core
    if alike and _frame(first) == _frame(second) and _seeks(first) == _seeks(second):
        return 1.0
    return _jaccard(first.tokens, second.tokens)


def _frame(asked: _Question) -> set[str]:
    """Return the words that neither tell what is asked for nor are harmless."""
    return {token for token in asked.tokens - _optional() if stem(token) not in asked.core}


def _seeks(asked: _Question) -> bool:
    return bool(asked.tokens & {"what", "which"})


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    shared = len(first & second)
    return shared / max(1, len(first) + len(second) - shared)


def _decides(token: str) -> bool:
    return token in _decisive() or any(map(str.isdigit, token))


def _names(question: str, tokens: frozenset[str]) -> frozenset[str]:
    """Return the tokens of names and identifiers: capitals but for the first word, or signs.

    Among characters of a script without blanks all other words are. Where many words have
    capitals the language or the style gives them.
    """
    if has_syllabic(question):
        return frozenset(token for token in tokens if not has_syllabic(token))
    first, *others = _BLANKS.split(question.strip().rstrip("?.!")) or [""]
    signed = [word for word in (first, *others) if _SAYS_SO.search(word)]
    titled = [word for word in others if word[:1].isupper() and word != "I"]
    named = [*signed, *(titled if len(titled) <= _MOST_TITLED else ())]
    return frozenset(token for word in named for token in tokenize(_spelt(word)))


@cache
def _plain() -> frozenset[str]:
    return function_words("en") | function_words("zh") | function_words("ja")


@cache
def _decisive() -> frozenset[str]:
    """Return the words that both questions must have, such as "not"."""
    return frozenset(all_entries("duplicates.decisive"))


@cache
def _interchangeable() -> frozenset[str]:
    """Return stems of words that may stand for each other in a question about the same."""
    return frozenset(map(stem, all_entries("duplicates.interchangeable")))


@cache
def _optional() -> frozenset[str]:
    """Return words that may stand or not, in any order, where all others are the same."""
    return frozenset(all_entries("duplicates.optional"))
