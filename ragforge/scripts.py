"""Scripts that put no blanks between words: a character of theirs says as much as half a word.

A text in ASCII has none, and is not looked through.
"""

from typing import Final

from ragforge.deferred import pattern

HAN_AND_KANA: Final = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
"""As within the brackets of a regular expression, as all here; Han of the basic plane."""
HANGUL: Final = "\u1100-\u11ff\uac00-\ud7ff"
"""It is written with blanks, but particles stick to the words."""
UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    f"\u2e80-\u2fdf{HAN_AND_KANA}"  # with radicals
    "\uf900-\ufaff\U00020000-\U0003ffff"  # Han beyond the common ones
)
_UNSPACED: Final = pattern(f"[{UNSPACED}]")
_SYLLABIC: Final = pattern(f"[{UNSPACED}{HANGUL}]")
_MARK_OF_A_NAME: Final = pattern(r"[#/\\_|=@]|\.[A-Za-z]")
_FEWEST: Final = 8
"""Characters of these scripts that read as words; a title of a document may have as many."""
_ENOUGH: Final = 20
"""So many do, whatever else is in the text."""


def has_unspaced(text: str) -> bool:
    """Whether a text has a character of a script without blanks between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def count_unspaced(text: str) -> int:
    """Return how many characters are of a script without blanks between words."""
    return 0 if text.isascii() else len(_UNSPACED.findall(text))


def reads_as_words(text: str) -> bool:
    """Whether a string is several words, and no id or path, in whatever script."""
    if len(text.split()) > 1:
        return True
    n_unspaced = count_unspaced(text)
    is_name = n_unspaced < _ENOUGH and _MARK_OF_A_NAME.search(text) is not None
    return n_unspaced >= _FEWEST and not is_name


def has_syllabic(text: str) -> bool:
    """Whether a text has a character that says at least a syllable: of those scripts, or Korean."""
    return not text.isascii() and _SYLLABIC.search(text) is not None


def count_syllabic(text: str) -> int:
    """Return how many characters say at least a syllable."""
    return 0 if text.isascii() else len(_SYLLABIC.findall(text))


def without_syllabic(text: str) -> str:
    """Return a text with blanks in the place of such characters."""
    return text if text.isascii() else _SYLLABIC.sub(" ", text)
