"""Text about nothing in particular, to pad passages with."""

import random
from typing import Final

_SENTENCES: Final = (
    "Thank you for visiting our pages.",
    "Please take a moment to look around and make yourself at home.",
    "The menu at the top takes you to all other parts of the site.",
    "We are always glad to hear from our readers, whatever is on their minds.",
    "Some of the pictures shown here were taken by friends of the house.",
    "Opening hours may differ on public holidays.",
    "If you like what you see, tell others; if you do not, tell us.",
    "This column appears on every second Thursday of the month.",
    "The views of our guests are their own.",
    "Our team is small, but it has been together for a long time.",
    "A printed version can be picked up at the front desk, as long as there are copies left.",
    "The weather was kind to us again this year.",
    "There will be coffee and cake afterwards, and everybody is welcome.",
    "Further down you will find more from the same series.",
    "We wish you a pleasant day and look forward to seeing you again.",
    "The next issue is already in the making.",
)


def filler(length: int, chance: random.Random) -> str:
    """Return whole sentences that come to about that many characters, hardly fewer."""
    chosen: list[str] = []
    room = length
    while room > 0:
        for sentence in chance.sample(_SENTENCES, len(_SENTENCES)):
            if room > 0:
                chosen.append(sentence)
                room -= len(sentence) + 1
    return " ".join(chosen)
