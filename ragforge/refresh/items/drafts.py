"""A query under way: which steps of its answer are proved, and by what.

Quotes of one step each prove it; the steps of an answer are all needed. What stands verbatim is
kept as it is. A step that lost its quotes is proved again by a check of its own, whose words must
not be those that prove another step: so no evidence is ever left that does not prove its step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ragforge.corpus.quote_locations import fold, standing_at
from ragforge.records import Evidence, Provenance, Query
from ragforge.refresh.items.passages import ShownPassage
from ragforge.refresh.quotes.locations import ItemSight, QuoteSight, QuoteState
from ragforge.stages.recheck.subject import Finding

VERBATIM: Final[frozenset[QuoteState]] = frozenset({"kept", "moved", "nearby change", "elsewhere"})
_MULTI_HOP: Final = frozenset({"multi_hop", "multi_hop_across"})


def in_place(sight: QuoteSight) -> Evidence:
    """Return evidence where it stands now, or as it was where nothing moved it."""
    if sight.placement is None or sight.state not in VERBATIM:
        return sight.evidence
    return standing_at(sight.evidence, sight.placement)


@dataclass(slots=True)
class Step:
    """A step of an answer.

    Args:
        sights: The quotes that proved it.
        evidence: What proves it now; () for nothing.
    """

    sights: tuple[QuoteSight, ...]
    evidence: tuple[Evidence, ...] = ()

    @property
    def hop(self) -> int:
        """Its number in the evidence."""
        return self.sights[0].evidence.hop

    @property
    def is_gone(self) -> bool:
        """Whether nothing like its quotes is known to stand anywhere."""
        return all(sight.state == "gone" for sight in self.sights)


def steps_of(sight: ItemSight) -> list[Step]:
    """Return the steps of an answer: its hops, or the quotes of a multi-hop query with one hop."""
    hops = sorted({one.evidence.hop for one in sight.quotes})
    parts: list[tuple[QuoteSight, ...]] = [(one,) for one in sight.quotes]
    if len(hops) > 1 or sight.query.type not in _MULTI_HOP:
        parts = [tuple(one for one in sight.quotes if one.evidence.hop == hop) for hop in hops]
    return [
        Step(part, tuple(in_place(one) for one in part if one.state in VERBATIM)) for part in parts
    ]


@dataclass(slots=True)
class Draft:
    """A query that is checked again.

    Args:
        query: As it was.
        steps: Of its answer.
        answer: The other answer that was found; "" for none.
        by: Who said the last of it.
        is_relinked: Whether a quote took the place of one that is gone.
        is_reworded: Whether a quote came in.
    """

    query: Query
    steps: list[Step]
    answer: str = ""
    by: Provenance | None = None
    is_relinked: bool = False
    is_reworded: bool = False
    focuses: list[int | None] = field(init=False)
    """The steps to be proved again, each by a check of its own; None for the answer as a whole."""

    def __post_init__(self) -> None:
        self.focuses = [at for at, step in enumerate(self.steps) if not step.evidence] or [None]

    @property
    def expected(self) -> str:
        """The answer to be confirmed; of a query without one what its quotes say."""
        said = self.query.expected_answer or ""
        told = " ".join(one.evidence.quote for step in self.steps for one in step.sights)
        return self.answer or (said if said.strip() else told)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What proves the answer now."""
        return tuple(dict.fromkeys(one for step in self.steps for one in step.evidence))

    def quotes(self, focus: int | None) -> tuple[str, ...]:
        """Return the old quotes of a step, or of all."""
        return tuple(one.quote for one in self._before(focus))

    def around(self, focus: int | None) -> tuple[tuple[str, str], ...]:
        """Return what stood before and behind each of these quotes."""
        return tuple((one.prefix, one.suffix) for one in self._before(focus))

    def others(self, focus: int | None) -> tuple[str, ...]:
        """Return what proves the other steps."""
        if focus is None:
            return ()
        return tuple(
            one.quote for at, step in enumerate(self.steps) if at != focus for one in step.evidence
        )

    def take(
        self,
        focus: int | None,
        finding: Finding,
        passages: Sequence[ShownPassage],
        *,
        is_found: bool,
    ) -> bool:
        """Take in what a check found, and say whether every step still has what proves it.

        Args:
            focus: The step that was to be proved; None for the answer as a whole.
            finding: An answer, the same or another.
            passages: The passages.
            is_found: Whether a search in the whole corpus brought some of them.
        """
        assert finding.proof is not None
        self.by = finding.by
        part = passages[finding.proof.passage]
        new = part.evidence(finding.proof.place, 1)
        if finding.verdict == "changed":
            # Whether another answer still corrects a premise, or covers all that may be meant,
            # cannot be read off it; and two other answers are one too many.
            is_plain = self.query.expected_behaviour == "answer" and not self.answer
            self.answer = finding.answer
            at = self._nearest(new) if focus is None else focus
            return is_plain and at is not None and self._put(at, new)
        if focus is not None:
            return self._put(focus, self._wording(focus, new))
        if not is_found or self._has(new):
            return True
        self.is_relinked = True
        return len(self.steps) == 1 and self._put(0, new)

    def _before(self, focus: int | None) -> list[Evidence]:
        steps = self.steps if focus is None else [self.steps[focus]]
        return [one.evidence for step in steps for one in step.sights]

    def _put(self, at: int, new: Evidence) -> bool:
        step = self.steps[at]
        self.is_relinked |= step.is_gone
        self.is_reworded = True
        step.evidence = (new.model_copy(update={"hop": step.hop}),)
        return True

    def _wording(self, focus: int, new: Evidence) -> Evidence:
        """Return the new wording of an old quote where a proof is a part of it, else the proof."""
        for sight in self.steps[focus].sights:
            placed = sight.placement
            if placed is None or not placed.is_whole or sight.doc_id != new.doc_id:
                continue
            if fold(new.quote) in fold(placed.text):
                return standing_at(sight.evidence, placed)
        return new

    def _has(self, new: Evidence) -> bool:
        said = fold(new.quote)
        known = [fold(one.quote) for one in self.evidence]
        return any(said in one or one in said for one in known)

    def _nearest(self, new: Evidence) -> int | None:
        """Return the step whose evidence stands nearest to a new one in its document."""
        if len(self.steps) == 1:
            return 0
        far = {
            at: min(abs((one.start or 0) - (new.start or 0)) for one in here)
            for at, step in enumerate(self.steps)
            if (here := [one for one in step.evidence if one.doc_id == new.doc_id])
        }
        return min(far, key=lambda at: far[at], default=None)
