"""The words and numbers of a text that have a sign: -11, <= 12, $5, C++."""

from typing import Final

from ragforge.corpus.letters import letters_of
from ragforge.corpus.signs import signs_of
from ragforge.deferred import pattern

_WORD: Final = pattern(r"[^\W_]+(?:[.,:][0-9]+)*")
_WORD_BACKWARDS: Final = pattern(r"(?:[0-9]+[.,:])*[^\W_]+")
_BEHIND: Final = ("%", "\u2030", "\u00b0", "++", "#")
_MONEY: Final = ("$", "\u20ac", "\u00a3", "\u00a5")
_LONGEST: Final = 40


def signed_words(text: str) -> set[str]:
    """Return the words of a text with the signs before or behind them; those without are left out.

    Signs that may be markup count as such, and points and groups within numbers as nothing: they
    are parts of these.
    """
    places = letters_of(text)[1]
    found = set()
    for at, readings in signs_of(text).items():
        sign = min(readings, key=lambda each: (len(each), each)).strip()
        before = (
            text[max(0, int(places[at - 1]) + 1 - _LONGEST) : int(places[at - 1]) + 1] if at else ""
        )
        is_number = before[-1:].isdigit()
        if not sign or (sign in (".", ",") and is_number):
            continue
        is_behind = sign.startswith(_BEHIND) or (is_number and sign.startswith(_MONEY))
        if is_behind or at == len(places):
            word = _WORD_BACKWARDS.match(before[::-1])
            found.add(f"{word[0][::-1] if word else ''}{sign}".casefold())
        else:
            word = _WORD.match(text, int(places[at]))
            found.add(f"{sign}{word[0] if word else ''}".casefold())
    return found
