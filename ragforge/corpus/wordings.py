"""What texts say, whatever marks, blanks and letters they are written with.

Texts are compared by their letters and digits, as `letters` folds them, and by the signs that
change what is said, see `signs`.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from ragforge.corpus.cut_ends import whole_ends
from ragforge.corpus.letters import GRAM, as_text, letters_of
from ragforge.corpus.signs import NOTHING, begins_at, ends_at, say_the_same, signs_of
from ragforge.deferred import pattern

_WHOLE: Final = (True, True)
_CUT: Final = (False, False)
_MARKS: Final = pattern(r"[^\w\s]")
_PUNCTUATION: Final = pattern(r"[.,;:!?\"'()](?!\w)")


class Wording:
    """A text by what it says, in which others are looked for, and which is looked for in others.

    Args:
        text: Such as a document, or a quote.
        ends: Whether it begins and ends where words and numbers do, as far as that is known; what
            was cut within a word may stand within one elsewhere.
    """

    def __init__(self, text: str, ends: tuple[bool, bool] = _WHOLE) -> None:
        self.letters = as_text(letters_of(text)[0])
        self.text = text
        self.ends = ends

    @classmethod
    def within(cls, text: str, start: int, end: int) -> "Wording":
        """Return the wording of text[start:end], which knows whether it cuts words.

        Args:
            text: A whole document.
            start: Of the stretch.
            end: Behind it.
        """
        return cls(text[start:end], whole_ends(text, start, end))

    @cached_property
    def signs(self) -> dict[int, frozenset[str]]:
        """The signs of the text, as `signs_of` returns them."""
        return signs_of(self.text)

    @property
    def head(self) -> frozenset[str]:
        """The signs before its first letter."""
        return self.signs.get(0, NOTHING)

    @property
    def tail(self) -> frozenset[str]:
        """The signs behind its last letter."""
        return self.signs.get(len(self.letters), NOTHING)

    def says_the_same(self, other: "Wording") -> bool:
        """Whether another text has the same letters, and between them the same signs."""
        return self.letters == other.letters and (
            self.text == other.text or say_the_same(self.signs, other.signs, len(self.letters))
        )

    def places(self, wanted: "Wording") -> Iterator[tuple[int, int]]:
        """Yield the offsets [start, end) at which this text says what another does, in order.

        They are no part of a longer word or number: 80 does not stand in 1980, nor in -80.

        Args:
            wanted: Has one letter or more.
        """
        size = len(wanted.letters)
        at = self.letters.find(wanted.letters)
        # Not kept: it takes eight times as much as the letters, and few texts hold any.
        offsets = letters_of(self.text)[1] if at >= 0 else ()
        while at >= 0:
            start, end = int(offsets[at]), int(offsets[at + size - 1]) + 1
            is_apart = (at == 0 or offsets[at - 1] < start) and (
                at + size == len(offsets) or offsets[at + size] >= end
            )
            if is_apart and self._says(wanted, start, end):
                yield start, end
            at = self.letters.find(wanted.letters, at + 1)

    def n_shared(self, quote: "Wording") -> int:
        """Return how many letters of a quote this has if it holds it, ends in it, or is in it.

        0 where that is less than half: what two texts begin or end with alike may be chance.

        Args:
            quote: Of `GRAM` letters or more.
        """
        if any(self.places(quote)):
            return len(quote.letters)
        wanted, text = quote.letters, self.letters
        least = max(GRAM, (len(wanted) + 1) // 2)
        if text in wanted:
            part = Wording(self.text, _CUT)
            return len(text) if len(text) >= least and any(quote.places(part)) else 0
        if wanted[:least] not in text and wanted[-least:] not in text:
            return 0
        for n in range(min(len(wanted), len(text)) - 1, least - 1, -1):
            if text.endswith(wanted[:n]) and self._shares(quote, len(text) - n, 0, n):
                return n
            if text.startswith(wanted[-n:]) and self._shares(quote, 0, len(wanted) - n, n):
                return n
        return 0

    def _says(self, wanted: "Wording", start: int, end: int) -> bool:
        found = self.text[start:end]
        begins, ends = wanted.ends
        return (
            (found == wanted.text or Wording(found).says_the_same(wanted))
            and begins_at(self.text, start, wanted.head, may_cut=not begins)
            and ends_at(self.text, end, wanted.tail, may_cut=not ends)
        )

    def _shares(self, other: "Wording", first: int, first_of_other: int, n: int) -> bool:
        """Whether so many letters of two texts have the same signs between them."""
        return say_the_same(_from(self.signs, first), _from(other.signs, first_of_other), n)


def has_same_signs(text: str, other: str) -> bool:
    """Whether two texts with the same letters say the same by their signs.

    Where a text ends within a character of the other one, as in a syllable of Korean, or an index
    took out all punctuation, nothing is told apart.
    """
    if not _MARKS.search(text) and _PUNCTUATION.search(other):
        return True
    one, two = Wording(text), Wording(other)
    return one.letters != two.letters or one.says_the_same(two)


def _from(signs: dict[int, frozenset[str]], first: int) -> dict[int, frozenset[str]]:
    return {at - first: readings for at, readings in signs.items()}
