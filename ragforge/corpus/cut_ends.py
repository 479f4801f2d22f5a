"""Stretches of texts that end within a word or number: "set to 100" in "set to 1005"."""

from typing import Final

from ragforge.corpus.letters import folded_letters
from ragforge.corpus.signs import NOTHING, begins_at, ends_at, signs_of

_CLOSED: Final = frozenset(" \t\n")
_PER: Final = tuple("%\u2030\u00b0")


def whole_ends(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Return whether a stretch begins, and ends, where words and numbers do.

    Args:
        text: With what stands around the stretch.
        start: Of the stretch.
        end: Behind it.
    """
    letters = [at for at in range(start, end) if text[at].isalnum()]
    if not letters:
        return True, True
    signs = signs_of(text[start:end])
    n_letters = sum(len(folded_letters(text[at])) for at in range(start, end))
    first, behind = letters[0], letters[-1] + 1
    return (
        begins_at(text, first, signs.get(0, NOTHING)),
        ends_at(text, behind, signs.get(n_letters, NOTHING)),
    )


def is_cut_anew(text: str, start: int, end: int, before: str, after: str) -> bool:
    """Whether a stretch ends within a word or number here, and did not where it stood before.

    Where it is not known what stood around it, numbers count alone: whoever quotes may have cut
    words.

    Args:
        text: Where it stands now.
        start: Of the stretch.
        end: Behind it.
        before: What stood right before it; "" where that is not known.
        after: Likewise, behind it.
    """
    if _are_apart(text, start, end):
        return False
    said = text[start:end]
    then = whole_ends(f"{before}{said}{after}", len(before), len(before) + len(said))
    begins = then[0] if before else said[:1].isdigit()
    ends = then[1] if after else said[-1:].isdigit()
    now = whole_ends(text, start, end)
    return (begins and not now[0]) or (ends and not now[1])


def cuts_number(text: str, start: int, end: int) -> bool:
    """Whether a stretch ends within a number, or before the signs of a name such as C++."""
    begins, ends = whole_ends(text, start, end)
    is_number_cut = (not begins and text[start].isdigit()) or (not ends and text[end - 1].isdigit())
    return is_number_cut or (not ends and text[end : end + 1] in ("+", "#"))


def _are_apart(text: str, start: int, end: int) -> bool:
    """Whether blanks are around a stretch, so that nothing has to be looked at."""
    before, behind = text[max(0, start - 1) : start], text[end : end + 2]
    closes = not behind or (behind[0] in _CLOSED and behind[1:] not in _PER)
    return closes and (not before or before in _CLOSED) and text[start : start + 1].isalnum()
