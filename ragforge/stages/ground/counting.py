"""Claims that share words of an answer: what is said once counts once."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragforge.corpus.quote_locations import Location
from ragforge.stages.ground.settling import Checked
from ragforge.stages.words import content_stems


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two claims of which each begins or ends within the other.

    Args:
        earlier, later: Which ones.
        shared: The words of both.
        shorter: How many content words the shorter of the two has there.
    """

    earlier: int
    later: int
    shared: Location
    shorter: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How the places of claims lie to each other.

    Args:
        own: For each claim, its places that lie in no other claim.
        around: For each claim, the claims that others of its places lie in.
        overlaps: Those that share words that carry content.
    """

    own: tuple[list[Location], ...]
    around: tuple[set[int], ...]
    overlaps: tuple[Overlap, ...]

    def is_within(self, claim: int) -> bool:
        """Whether all of a claim lies in others."""
        return not self.own[claim]


def lay_out(places: Sequence[Sequence[Location]], words: str) -> Layout:
    """Return which claims overlap or contain each other; of two in one place the later is inside.

    Args:
        places: Of each claim, without overlaps.
        words: The answer's text, as long as it is, its marks blank.
    """
    own: tuple[list[Location], ...] = tuple([] for _ in places)
    around: tuple[set[int], ...] = tuple(set() for _ in places)
    overlaps: list[Overlap] = []
    ordered = [(one.start, -one.end, claim) for claim, all_ in enumerate(places) for one in all_]
    widest, holder = Location(0, 0), -1
    for start, minus_end, claim in sorted(ordered):
        here = Location(start, -minus_end)
        if here.end <= widest.end:
            around[claim].add(holder)
            continue
        own[claim].append(here)
        shared = Location(here.start, widest.end)
        if _n_stems(shared, words):
            shorter = min(_n_stems(here, words), _n_stems(widest, words))
            overlaps.append(Overlap(holder, claim, shared, shorter))
        widest, holder = here, claim
    return Layout(own, around, tuple(overlaps))


def contradiction(layout: Layout, supported: Sequence[bool], words: str) -> tuple[int, int] | None:
    """Return two claims that say the same, one supported and one not; None where there are none.

    One of them lies in the other, or they share half of the shorter one's content words.
    """
    for claim, outer in enumerate(layout.around):
        within = layout.is_within(claim)
        if within and all(supported[around] != supported[claim] for around in outer):
            return claim, min(outer)
    for overlap in layout.overlaps:
        differ = supported[overlap.earlier] != supported[overlap.later]
        if differ and 2 * _n_stems(overlap.shared, words) >= overlap.shorter:
            return overlap.later, overlap.earlier
    return None


def counted_once(claims: Sequence[Checked], words: str) -> list[Checked]:
    """Return claims in the order of the answer, no two of one support sharing content words.

    A claim that lies within others is left out; those that overlap become one.

    Args:
        claims: Without a `contradiction`.
        words: The answer's text, as long as it is, its marks blank.
    """
    layout = lay_out([claim.spans for claim in claims], words)
    group = list(range(len(claims)))
    for one in layout.overlaps:
        if bool(claims[one.earlier].places) == bool(claims[one.later].places):
            old, new = group[one.later], group[one.earlier]
            group = [new if number == old else number for number in group]
    joined: dict[int, list[int]] = {}
    for claim, number in enumerate(group):
        if not layout.is_within(claim):
            joined.setdefault(number, []).append(claim)
    found = [_joined(members, claims, layout) for members in joined.values()]
    return sorted(found, key=lambda claim: (claim.spans[0].start, claim.spans[0].end))


def _joined(members: Sequence[int], claims: Sequence[Checked], layout: Layout) -> Checked:
    spans: list[Location] = []
    for here in sorted(
        (place for member in members for place in layout.own[member]), key=lambda one: one.start
    ):
        if spans and here.start < spans[-1].end:
            spans[-1] = Location(spans[-1].start, here.end)
        else:
            spans.append(here)
    places = dict.fromkeys(place for member in members for place in claims[member].places)
    return Checked(tuple(spans), tuple(places), claims[members[0]].quote)


def _n_stems(place: Location, words: str) -> int:
    return len(content_stems(words[place.start : place.end]))
