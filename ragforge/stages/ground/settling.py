"""From checked claims to the record: everything that is counted is counted here.

What claims say that share words of the answer counts once.
"""

from collections.abc import Iterator, Sequence

from ragforge.corpus.quote_locations import Location, fold
from ragforge.deferred import dataclass
from ragforge.records import Citation, Claim, Grounding, Provenance
from ragforge.stages.answer.refusals import abstains
from ragforge.stages.ground.citations import CitedText, Mark
from ragforge.stages.ground.parts import Exchange, spans
from ragforge.stages.words import content_stems

RULES = Provenance(kind="rule", model="ground-rules-1")


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim that was held against the passages.

    Args:
        spans: Where it stands in the answer without marks; at least once.
        places: The passages that say it, from 0, the quoted one first; empty where none does.
        quote: The words of the first of them.
    """

    spans: tuple[Location, ...]
    places: tuple[int, ...]
    quote: str


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


def counted_once(claims: Sequence[PlacedClaim], words: str) -> list[PlacedClaim]:
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


def _joined(members: Sequence[int], claims: Sequence[PlacedClaim], layout: Layout) -> PlacedClaim:
    spans: list[Location] = []
    for here in sorted(
        (place for member in members for place in layout.own[member]), key=lambda one: one.start
    ):
        if spans and here.start < spans[-1].end:
            spans[-1] = Location(spans[-1].start, here.end)
        else:
            spans.append(here)
    places = dict.fromkeys(place for member in members for place in claims[member].places)
    return PlacedClaim(tuple(spans), tuple(places), claims[members[0]].quote)


def _n_stems(place: Location, words: str) -> int:
    return len(content_stems(words[place.start : place.end]))


def settled_by_rule(exchange: Exchange, cited: CitedText) -> Grounding | None:
    """Return the grounding of an answer in which there is nothing to check; None where there is."""
    words = cited.words
    if not any(character.isalnum() for character in words):
        return _unmeasured(exchange, cited, "nothing said", RULES)
    if abstains(words, exchange.question):
        return _unmeasured(exchange, cited, "abstains", RULES)
    if not exchange.lost and not any(passage.text.strip() for passage in exchange.passages):
        return _unmeasured(exchange, cited, "no context", RULES)
    return None


def settle(
    exchange: Exchange,
    cited: CitedText,
    claims: Sequence[PlacedClaim],
    unclaimed: Sequence[str],
    by: Provenance,
) -> Grounding:
    """Return the grounding that claims come to.

    Args:
        exchange: What was checked.
        cited: Its answer, taken apart.
        claims: No two with the same words; in the order of the answer.
        unclaimed: What claims nothing.
        by: Who checked the claims.
    """
    if not claims:
        unmeasured = _unmeasured(exchange, cited, "nothing claimed", by)
        return unmeasured.model_copy(update={"unclaimed": tuple(unclaimed)})
    claims = [_with_repeats(claim, exchange) for claim in claims]
    supported = sum(bool(claim.places) for claim in claims)
    citations = _citations(exchange, cited, claims)
    return Grounding(
        query_id=exchange.query_id,
        is_grounded=supported == len(claims),
        faithfulness=supported / len(claims),
        claims=tuple(_claim(claim, exchange, cited) for claim in claims),
        unclaimed=tuple(unclaimed),
        citations=citations,
        citation_precision=_precision(citations),
        citation_recall=_recall(cited, claims),
        provenance=by,
    )


def _unmeasured(exchange: Exchange, cited: CitedText, rule: str, by: Provenance) -> Grounding:
    citations = _citations(exchange, cited, ())
    return Grounding.model_validate(
        {
            "query_id": exchange.query_id,
            "is_grounded": None,
            "faithfulness": None,
            "citations": citations,
            "citation_precision": _precision(citations),
            "rule": rule,
            "provenance": by,
        }
    )


def _with_repeats(claim: PlacedClaim, exchange: Exchange) -> PlacedClaim:
    """Return a claim with the passages that have the same text as one that says it."""
    if not claim.places:
        return claim
    said = {fold(exchange.passages[place].text) for place in claim.places}
    repeats = (
        place
        for place, passage in enumerate(exchange.passages)
        if place not in claim.places and fold(passage.text) in said
    )
    return PlacedClaim(claim.spans, (*claim.places, *repeats), claim.quote)


def _claim(claim: PlacedClaim, exchange: Exchange, cited: CitedText) -> Claim:
    first = claim.spans[0]
    names = (exchange.passages[place].chunk_id for place in claim.places)
    return Claim(
        text=cited.text[first.start : first.end],
        is_supported=bool(claim.places),
        quote=claim.quote,
        chunk_ids=tuple(dict.fromkeys(names)),
    )


def _citations(
    exchange: Exchange, cited: CitedText, claims: Sequence[PlacedClaim]
) -> tuple[Citation, ...]:
    """Return the citations, each chunk once a sentence; none for sentences that claim nothing."""
    citations: dict[tuple[str, str], Citation] = {}
    for mark in cited.marks:
        about = [claim for claim in claims if _touches(claim, mark.scope)]
        sentence = cited.text[mark.scope.start : mark.scope.end].strip()
        for ref in mark.refs:
            supports = any(not ref.places.isdisjoint(claim.places) for claim in about)
            if not ref.places:
                status = "not in the context"
            elif about:
                status = "supports" if supports else "does not support"
            else:
                continue
            citations[sentence, ref.name] = Citation.model_validate(
                {"sentence": sentence, "chunk_id": ref.name, "status": status}
            )
    return tuple(citations.values())


def _precision(citations: Sequence[Citation]) -> float | None:
    supporting = sum(citation.status == "supports" for citation in citations)
    return supporting / len(citations) if citations else None


def _recall(cited: CitedText, claims: Sequence[PlacedClaim]) -> float | None:
    """Return the share of sentences with claims that are borne out by what is cited for them.

    Source: after the citation recall of Gao et al. 2023, arXiv 2305.14627.
    """
    if not cited.marks:
        return None
    borne_out = []
    for sentence in spans(cited.text):
        said = [claim for claim in claims if _touches(claim, sentence)]
        if said:
            places = set(_cited_for(sentence, cited.marks))
            borne_out.append(all(not places.isdisjoint(claim.places) for claim in said))
    return sum(borne_out) / len(borne_out) if borne_out else None


def _cited_for(sentence: Location, marks: Sequence[Mark]) -> Iterator[int]:
    for mark in marks:
        if mark.scope.start < sentence.end and sentence.start < mark.scope.end:
            for ref in mark.refs:
                yield from ref.places


def _touches(claim: PlacedClaim, part: Location) -> bool:
    return any(span.start < part.end and part.start < span.end for span in claim.spans)
